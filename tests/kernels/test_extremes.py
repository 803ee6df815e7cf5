"""Extremes of short and long arrays, wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest

from spanrl.kernels.extremes import extremes


@pytest.mark.parametrize("function", [extremes, extremes.py_func])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 11, 64, 101])
def test_equals_numpy(function, size):
    rng = np.random.default_rng(size)
    for _ in range(20):
        x = np.round(rng.normal(size=size), 1)
        assert function(x) == (x.min(), x.max())
    for s in range(size):
        x = np.zeros(size)
        x[s] = 1.0
        assert function(x) == (x.min(), 1.0)
        assert function(-x) == (-1.0, -x.min())


def test_of_nothing():
    assert extremes(np.empty(0)) == (np.inf, -np.inf)
