"""Compiled loops: arrays in, arrays out (numba only). Letters are the paper's; see docs/symbols.md."""
