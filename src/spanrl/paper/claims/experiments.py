"""The four experiments of the paper: regret against the diameter (G1), the three-state domain (G2, G5, G6, G7, G3), Knight Quest (G4).

Each judge looks at an experiment that was measured before, wherever that was, and says what the paper says of its figure, with the noise
of the runs (:mod:`spanrl.paper.claims.comparing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spanrl.paper.claims.base import CheckResult, Claim, Ledger, Scale
from spanrl.paper.claims.comparing import (
    LEVEL,
    SAME,
    SIGNIFICANT,
    above,
    below,
    bounded_spans,
    diameter_of,
    final,
    fit_line,
    late_slope,
    measured_honestly,
    neighbours,
    ordered,
    sides,
    simultaneous,
    unordered_times,
)
from spanrl.paper.curves import Curves, Experiment, measure
from spanrl.paper.experiments import experiment_spec
from spanrl.paper.system import System

LINEAR, SUBLINEAR = 0.8, 0.6
"""Least slope of a regret called linear, and largest of one called sub-linear, in a log-log plot over the last decade and a half."""

STRAIGHT = 0.9
"""Least R² of regret against diameter for a straight line."""

GROWTH = (0.7, 1.3)
"""Range of the log-log slope of regret against diameter that is called linear growth; the line has an intercept, so it is not exactly 1."""

MARGIN = 0.85
"""SCAL with c = 5 must stay below this fraction of the regret of UCRL on Knight Quest: "a big margin"."""

SMALL = 5.0
"""Bounds up to here are called small: with them SCAL must beat UCRL."""


def _open(system: System, found: Experiment) -> tuple[Ledger, Curves, list[Curves]]:
    """Check how an experiment was measured; return the ledger, UCRL, and SCAL by its bounds, none of which its span exceeds."""
    ledger = Ledger()
    measured_honestly(ledger, system, found)
    ucrl, *scal = found.agents()
    bounded_spans(ledger, scal)
    return ledger, ucrl, scal


def judge_G1(system: System, found: Experiment) -> CheckResult:
    """Fit a line to the mean regret of UCRL at the horizon against 1/δ."""
    ledger = Ledger()
    measured_honestly(ledger, system, found)
    x = [diameter_of(group.env) for group in found.groups]
    y = [float(final(group).mean()) for group in found.groups]
    ledger.note("diameters", x)
    ledger.note("mean pseudo-regret at the horizon", y)
    slope, intercept, r_squared = fit_line(x, y)
    growth = fit_line(np.log(x), np.log(y))[0]
    ledger.note("slope of the line", slope)
    ledger.note("intercept of the line", intercept)
    ledger.note("R² of the line", r_squared)
    ledger.note("log-log slope", growth)
    ledger.true(f"R² ≥ {STRAIGHT:g}", r_squared >= STRAIGHT)
    ledger.true(f"log-log slope in [{GROWTH[0]:g}, {GROWTH[1]:g}]", GROWTH[0] <= growth <= GROWTH[1])
    return ledger.outcome()


def judge_G2(system: System, found: Experiment) -> CheckResult:
    """Require the order of the mean regrets in c, and small bounds below UCRL."""
    ledger, ucrl, scal = _open(system, found)
    ordered(ledger, scal)
    below(ledger, ucrl, [group for group in scal if group.span_bound <= SMALL])
    for group in scal:
        ledger.note(f"mean pseudo-regret relative to UCRL, c = {group.span_bound:g}", _relative(group, ucrl))
    above(ledger, ucrl, scal)
    ledger.note("times at which a larger c does significantly better", unordered_times(scal))
    return ledger.outcome()


def judge_G5(system: System, found: Experiment) -> CheckResult:
    """Look with which bounds SCAL does better than UCRL."""
    ledger, ucrl, scal = _open(system, found)
    better, no_better, unclear = sides(ledger, ucrl, scal)
    ledger.note("better than UCRL with", _listed(better))
    return _decided(ledger, [f"SCAL is no better than UCRL with {_listed(no_better)}"] if no_better else [], unclear)


def judge_G6(system: System, found: Experiment) -> CheckResult:
    """Look which bounds do better than the next larger one."""
    ledger, _, scal = _open(system, found)
    better, no_better, unclear = neighbours(ledger, scal)
    ledger.note("the smaller c is better with", _listed(better))
    return _decided(ledger, [f"the smaller c is no better with {_listed(no_better)}"] if no_better else [], unclear)


def judge_G7(system: System, found: Experiment) -> CheckResult:
    """Look which bounds, on one domain, have another regret than the smallest one."""
    ledger, _, (first, *others) = _open(system, found)
    differ, unclear = [], []
    for group in others:
        low, high, near = simultaneous(ledger, group, first, len(others))
        ledger.note(f"{group.name}: mean pseudo-regret relative to {first.name}", _relative(group, first))
        if low > near or high < -near:
            differ.append(f"c = {group.span_bound:g}")
        elif not -near <= low <= high <= near:
            unclear.append(f"c = {group.span_bound:g}")
    told = f"with {_listed(differ)} the regret is another than with c = {first.span_bound:g}"
    return _decided(ledger, [told] if differ else [], unclear)


def _decided(ledger: Ledger, refuted: Sequence[str], unclear: Sequence[str]) -> CheckResult:
    """Return the verdict on a sentence that says more than the figure shows.

    ``fails`` is drawn only where the runs refute it. Where what was measured is not what it is called, or the runs leave it open, the
    verdict is ``vacuous``.
    """
    if ledger.broken:
        return CheckResult("vacuous", ledger.numbers | {"no conclusion": "; ".join(sorted(ledger.broken))})
    ledger.note("too few runs to tell with", _listed(unclear))
    if refuted:
        return CheckResult("fails", ledger.numbers | {"broken": "; ".join(refuted)})
    if unclear:
        return CheckResult("vacuous", ledger.numbers | {"no conclusion": f"too few runs for {_listed(unclear)}"})
    return ledger.outcome()


def _listed(bounds: Sequence[str]) -> str:
    return ", ".join(bounds) or "no c"


def judge_G3(system: System, found: Experiment) -> CheckResult:
    """Require a linear regret of UCRL and sub-linear ones of SCAL."""
    ledger, ucrl, scal = _open(system, found)
    ledger.note("slope of UCRL", late_slope(ucrl))
    ledger.true(f"UCRL: slope ≥ {LINEAR:g}", late_slope(ucrl) >= LINEAR)
    for group in scal:
        slope = late_slope(group)
        ledger.note(f"slope of SCAL, c = {group.span_bound:g}", slope)
        ledger.true(f"SCAL, c = {group.span_bound:g}: slope ≤ {SUBLINEAR:g}", slope <= SUBLINEAR)
    below(ledger, ucrl, scal)
    ordered(ledger, scal)
    ledger.note("span of UCRL's bias at the horizon", float(ucrl.span[:, -1].mean()))
    return ledger.outcome()


def judge_G4(system: System, found: Experiment) -> CheckResult:
    """Require SCAL far below UCRL on Knight Quest."""
    ledger, ucrl, scal = _open(system, found)
    printed = [group for group in scal if group.span_bound in (SMALL, 10.0)]
    ledger.true("c = 5 is among the bounds", SMALL in {group.span_bound for group in printed})
    below(ledger, ucrl, printed)
    for group in scal:
        ratio = _relative(group, ucrl)
        ledger.note(f"mean pseudo-regret relative to UCRL, c = {group.span_bound:g}", ratio)
        if group.span_bound == SMALL:
            ledger.true(f"c = {SMALL:g}: at most {100 * MARGIN:g} % of UCRL's regret", ratio <= MARGIN)
    ordered(ledger, printed)
    ledger.note("largest span of UCRL's bias", float(ucrl.span.max()))
    return ledger.outcome()


def _relative(group: Curves, ucrl: Curves) -> float:
    return float(final(group).mean() / final(ucrl).mean())


def _claim(
    id: str,  # noqa: A002
    title: str,
    place: str,
    statement: str,
    tolerance: str,
    experiment: str,
    judge: Callable[[System, Experiment], CheckResult],
) -> Claim:
    def check(system: System, scale: Scale) -> CheckResult:
        return judge(system, measure(system, experiment_spec(experiment, scale)))

    return Claim(id, title, place, statement, tolerance, check, experiment, judge)


CLAIMS = (
    _claim(
        "G1",
        "The regret of UCRL grows linearly with the diameter",
        "Sec. 7, regret against the diameter",
        "On the three-state domain the regret of UCRL at a fixed horizon is linear in 1/δ ≈ D, while sp(h*) stays near 1.",
        f"R² ≥ {STRAIGHT:g} for a line through the mean pseudo-regrets, and a log-log slope between {GROWTH[0]:g} and {GROWTH[1]:g}.",
        "diameter",
        judge_G1,
    ),
    _claim(
        "G2",
        "Three states, D = 200: the regret of SCAL does not decrease in c; with small c it is far below UCRL's",
        "Sec. 7, communicating MDPs; App. G.1",
        "With c ≥ sp(h*), the mean regret of SCAL does not decrease in c; with small c it is far below that of UCRL, and with none "
        "above it. (The paper says more: see G5, G6 and G7.) The span of the optimistic bias never exceeds c.",
        f"paired t-tests on common seeds, Holm: below UCRL for c ≤ {SMALL:g} at level {SIGNIFICANT:g}, "
        f"no decrease in c, and none above UCRL, at level {LEVEL:g}.",
        "three-state",
        judge_G2,
    ),
    _claim(
        "G5",
        "Three states, D = 200: SCAL is always better than UCRL",
        "Sec. 7, communicating MDPs",
        "With every c of the figure, 2 to 25, the regret of SCAL is below that of UCRL at the horizon.",
        f"simultaneous {100 * (1 - SIGNIFICANT):g} % intervals of the differences, paired on common seeds (Bonferroni): below 0 is "
        f"better; within {100 * SAME:g} % of UCRL's mean, or above 0, is not.",
        "three-state",
        judge_G5,
    ),
    _claim(
        "G6",
        "Three states, D = 200: the smaller c, the better the regret",
        "Sec. 7, communicating MDPs",
        "Of any two neighbouring bounds of the figure, 2 to 25, the smaller one has the smaller regret at the horizon.",
        f"simultaneous {100 * (1 - SIGNIFICANT):g} % intervals of the differences, paired on common seeds (Bonferroni): below 0 is "
        f"better; within {100 * SAME:g} % of the larger bound's mean, or above 0, is not.",
        "three-state",
        judge_G6,
    ),
    _claim(
        "G7",
        "Three states, D = 200: the regret of SCAL depends on the span alone",
        "Sec. 7, first paragraph",
        "On one domain, and so with one span sp(h*), the regret of SCAL at the horizon is the same with every c of the figure.",
        f"simultaneous {100 * (1 - SIGNIFICANT):g} % intervals of the differences to c = 2, paired on common seeds (Bonferroni): within "
        f"{100 * SAME:g} % of its mean is the same, outside is not.",
        "three-state",
        judge_G7,
    ),
    _claim(
        "G3",
        "Three states, D = ∞: the regret of UCRL is linear, that of SCAL is not",
        "Sec. 7, infinite diameter; App. G.1",
        "With δ = 0 UCRL suffers linear regret; SCAL soon finds the optimal policy for every c.",
        f"log-log slope of the mean over the last decade and a half: ≥ {LINEAR:g} is linear, ≤ {SUBLINEAR:g} is not; "
        f"SCAL below UCRL at level {SIGNIFICANT:g} and no decrease in c at level {LEVEL:g}, by paired t-tests with Holm's correction.",
        "infinite-diameter",
        judge_G3,
    ),
    _claim(
        "G4",
        "Knight Quest: SCAL outperforms UCRL by a big margin",
        "App. G.2",
        "With c = 5 and c = 10, both above sp(h*) ≈ 3.28, the regret of SCAL is significantly below "
        "that of UCRL; with c = 5 by a big margin.",
        f"paired t-tests on common seeds, Holm, level {SIGNIFICANT:g}; with c = 5 at most {100 * MARGIN:g} % of UCRL's mean, "
        f"and no decrease in c at level {LEVEL:g}.",
        "knight-quest",
        judge_G4,
    ),
)
