"""The adaptive sort against numpy's, on input that is random, full of ties, nearly sorted or reversed."""

import numpy as np
import pytest

from spanrl.kernels.order import sort_states


def inputs(S):
    rng = np.random.default_rng(S)
    nearly = np.sort(rng.random(S))[::-1].copy()
    if S > 3:
        nearly[rng.integers(0, S, S // 8 + 1)] += 0.01
    return {
        "random": rng.random(S),
        "ties": rng.integers(0, 3, S).astype(float),
        "equal": np.zeros(S),
        "sorted": np.arange(S)[::-1].astype(float),
        "reversed": np.arange(S).astype(float),
        "nearly": nearly,
    }


@pytest.mark.parametrize("kind", ["random", "ties", "equal", "sorted", "reversed", "nearly"])
@pytest.mark.parametrize("S", [1, 2, 15, 16, 17, 31, 33, 100, 1000, 4097])
def test_sorts_by_falling_value_then_index(S, kind):
    values = inputs(S)[kind]
    order = np.random.default_rng(1).permutation(S).astype(np.uint32)
    keys = values[order]
    sort_states(keys, order, np.empty(S), np.empty(S, dtype=np.uint32))
    expected = np.lexsort((np.arange(S), -values))
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(keys, values[expected])


def test_interpreted_sort_equals_the_compiled_one():
    values = inputs(100)["ties"]
    order = np.arange(100, dtype=np.uint32)
    keys = values.copy()
    sort_states.py_func(keys, order, np.empty(100), np.empty(100, dtype=np.uint32))
    np.testing.assert_array_equal(order, np.lexsort((np.arange(100), -values)))
