"""Figures. This layer reads results and draws them; it computes nothing."""
