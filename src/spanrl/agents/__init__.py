"""Who decides: one file an algorithm."""
