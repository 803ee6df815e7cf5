"""NOSS: a plain version that adds one state at a time, linear programs, and what holds and does not hold of the operator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

from plain_bounds import noss_value
from spanrl.kernels.layout import NOSS, Arrays, new_workspace
from spanrl.kernels.noss import noss_values
from spanrl.kernels.order import rank_states

SEED = 8


class Case(NamedTuple):
    """One pair over S states: its box, dense, what may be given up, and values."""

    low: np.ndarray
    high: np.ndarray
    seen: np.ndarray
    kappa: float
    u: np.ndarray


def cases(n, *, ties=False):
    rng = np.random.default_rng(SEED)
    for _ in range(n):
        S, times = int(rng.integers(1, 9)), int(rng.integers(0, 200))
        counts = rng.multinomial(times, rng.dirichlet(np.full(S, 0.4)))
        seen, width = counts > 0, rng.uniform(0.01, 0.6) if times else 1.0
        p = counts / max(1, times)
        low, high = np.maximum(0, p - width) * seen, np.minimum(1, p + width)
        u = rng.normal(size=S) * rng.choice([0.1, 10])
        yield Case(low, high, seen, float(rng.choice([0.0, 0.01, 0.1, 1.0, 1e9])), np.round(u) if ties else u)


def value(case, u=None):
    """Return what the kernel says."""
    u = case.u if u is None else u
    S, at = len(u), np.flatnonzero(case.seen)
    rest = case.high[~case.seen].max(initial=0.0) if at.size < S else 0.0
    ptr = np.array([0, at.size])
    parts = (
        ptr,
        at.astype(np.uint32),
        case.low[at],
        (case.high - case.low)[at],
        np.array([case.kappa]),
        np.array([rest]),
    )
    ws = new_workspace(S, 1, at.size)
    rank_states(1.0, u, ws)
    noss_values(Arrays(NOSS, np.array([0, 1]), *parts), np.zeros(1), ws, np.arange(1), ws.q)
    return float(ws.q[0])


@pytest.mark.parametrize("ties", [False, True], ids=["apart", "ties"])
def test_a_plain_version_says_the_same(ties):
    sizes = set()
    for case in cases(400, ties=ties):
        wanted, support = noss_value(*case)
        assert value(case) == pytest.approx(wanted, abs=1e-12)
        sizes.add((len(case.u), len(support) - int(case.seen.sum())))
    assert len(sizes) > 15, "supports of all sizes occur"


def inner_maximum(case):
    """Return max pᵀu over the whole box by a linear program."""
    found = linprog(
        -case.u, A_eq=np.ones((1, len(case.u))), b_eq=[1], bounds=list(zip(case.low, case.high, strict=True))
    )
    return None if found.x is None else -found.fun


def check_near_optimism(worth):
    """Assert that a pair is worth the inner maximum of its whole box less κ·sp(u) at the least, and no more than it."""
    below = 0
    for case in cases(200):
        most, found = inner_maximum(case), worth(case)
        if most is None:
            continue
        given_up = min(case.kappa * np.ptp(case.u), found - case.u.min())
        assert most - given_up - 1e-9 <= found <= most + 1e-9
        below += found < most - 1e-6
    assert below > 10, "something is given up"


def seen_alone(case):
    """Leave out all states never seen."""
    return noss_value(case.low, np.where(case.seen, case.high, 0), case.seen, 1e9, case.u)[0]


def test_it_is_near_optimistic():
    check_near_optimism(value)
    with pytest.raises(AssertionError):
        check_near_optimism(seen_alone)
    with pytest.raises(AssertionError):
        check_near_optimism(inner_maximum)


def test_constants_pass_through():
    for case in cases(100):
        assert value(case, case.u + 3.0) == pytest.approx(value(case) + 3.0, abs=1e-12)


def test_it_is_not_monotone():
    """So no certificate is claimed: the best state gains 0.2, κ·sp(u) exceeds 0.05·0.9, and the second best is left out."""
    low, high, seen = np.array([0.85, 0, 0]), np.array([1, 0.05, 0.05]), np.array([True, False, False])
    case = Case(low, high, seen, 0.04, np.array([0.0, 1.0, 0.9]))
    assert value(case) == pytest.approx(0.05 * 1.0 + 0.05 * 0.9)
    assert value(case, np.array([0.0, 1.2, 0.9])) == pytest.approx(0.05 * 1.2)
