"""The page of the reproduction: claims, figures and drawings in one HTML file."""
