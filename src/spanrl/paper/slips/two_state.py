"""Slips about the two-state example: the span of its policies, its set Π_c, Lemma 2."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

import spanrl
from spanrl.models.solution import Evaluation
from spanrl.paper.claims.base import EXACT
from spanrl.paper.claims.evaluation import two_state_policy
from spanrl.paper.slips.base import Finding, Statement

C = 0.75
"""A span bound between ½ and 1, as Lemma 2 asks."""

STEPS = 7
"""Grid of probabilities: multiples of 1/7 hold the best policy of Π_c at c = ¾, y = (1 − c)/(1 + c) = 1/7."""


def _evaluate(x: float, y: float) -> Evaluation:
    found: Evaluation = spanrl.evaluate(spanrl.make("two-state").mdp, two_state_policy(x, y))
    return found


def _keeps(found: Evaluation, c: float = C) -> bool:
    """Tell whether a policy is in Π_c: one gain, and a span of at most c."""
    return bool(np.ptp(found.gain) <= EXACT and found.span <= c + EXACT)


def _span() -> Finding:
    slow = _evaluate(0.01, 0.01).span
    most = max(_evaluate(x, y).span for x, y in product((0, 1), repeat=2))
    return {
        "span at x = y = 0.01": slow,
        "largest span of the four deterministic policies": most,
    }, slow > 1 + EXACT and most <= 1 + EXACT


def _closed() -> Finding:
    spans = [_evaluate(e, e).span for e in (1e-1, 1e-2, 1e-3, 1e-4)]
    grid = [i / STEPS for i in range(STEPS + 1)]
    kept = {(x, y): found.gain[0] for x, y in product(grid, repeat=2) if _keeps(found := _evaluate(x, y))}
    nearest = min(x + y for x, y in kept)
    best = max(kept, key=lambda at: float(kept[at]))
    zero = _evaluate(0, 0)
    return {
        "span at x = y = 0.1, 0.01, 0.001, 0.0001": spans,
        "gains at (0, 0)": zero.gain.tolist(),
        "c": C,
        "smallest x + y in Π_c, on a grid of 1/7": nearest,
        "largest gain in Π_c, on that grid": float(kept[best]),
        "x, y there": list(best),
    }, (
        all(after > 5 * before for before, after in pairwise(spans))
        and not _keeps(zero)
        and nearest > 0.25
        and abs(kept[best] - C) <= EXACT
    )


def _deterministic() -> Finding:
    rules = {at: found for at in product((0, 1), repeat=2) if _keeps(found := _evaluate(*at))}
    second = rules.get((1, 1))
    return {
        "c": C,
        "deterministic policies in Π_c": len(rules),
        "gains of (x, y) = (0, 1) and (1, 1)": [float(_evaluate(*at).gain[0]) for at in ((0, 1), (1, 1))],
        "spans of (x, y) = (0, 1) and (1, 1)": [_evaluate(*at).span for at in ((0, 1), (1, 1))],
    }, second is not None and (0, 1) in rules and len(rules) == 2 and abs(second.gain[0]) <= EXACT


SLIPS = (
    Statement(
        id="two-state-span",
        title="The span of randomised policies is not bounded by 1",
        place="Example 1, Sec. 4",
        printed="0 ≤ sp(h^π) ≤ 1 for every stationary policy π of the two-state example.",
        found="True of the deterministic policies only: a randomised one that rarely leaves either state has a large span.",
        measure=_span,
    ),
    Statement(
        id="second-deterministic-policy",
        title="A second deterministic policy keeps the bound",
        place="Proof of Lemma 2, Sec. 4",
        printed="For ½ < c < 1, x = 0, y = 1 is the only deterministic policy with constant gain and span below c.",
        found="x = y = 1 is another: its gain and its span are 0. The lemma stands, since the best policy has gain c > ½.",
        measure=_deterministic,
    ),
    Statement(
        id="closed-set",
        title="Π_c of the two-state example is closed",
        place="Sec. 4, after Lemma 3",
        printed="The point x = y = 0 is not in Π_c, hence Π_c is not closed.",
        found="It is closed: towards (0, 0) the span grows without bound, so that Π_c keeps away from that point, and its best gain c "
        "is attained. (The gain does jump at (0, 0).)",
        measure=_closed,
    ),
)
