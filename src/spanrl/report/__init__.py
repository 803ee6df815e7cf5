"""Figures and the report on an experiment. This layer reads results and draws them; it runs nothing."""
