"""Experiments: a spec in TOML, its cells, the engines that run them, the store that keeps them, and the results."""
