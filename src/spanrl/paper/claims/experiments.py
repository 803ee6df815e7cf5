"""The four experiments of the paper: regret against the diameter (G1), the three-state domain (G2, G3), Knight Quest (G4).

Each judge looks at an experiment that was measured before, wherever that was, and says what the paper says of its figure, with the noise
of the runs: differences are paired on common seeds and tested by t-tests, corrected by Holm's method. Tests use the pseudo-regret, which
has the same mean as the regret and far less noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.agents.scal import SCAL
from spanrl.agents.ucrl import UCRL
from spanrl.experiments.statistics import log_log_slopes, paired_difference
from spanrl.paper import mutants_learning as wrong
from spanrl.paper.claims.base import Claim, Ledger, Outcome, Scale
from spanrl.paper.curves import Curves, Experiment, measure
from spanrl.paper.experiments import experiment_spec
from spanrl.paper.system import System
from spanrl.report.standings import holm

SIGNIFICANT = 0.01
"""Level, over all tests of a claim together, at which a difference that the paper names must show."""

LEVEL = 1e-3
"""Level at which the data contradict a statement; also that of the check that regret and pseudo-regret belong together."""

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


def diameter_of(env: str) -> float:
    """Return D = 1/δ of a three-state domain by its name.

    >>> diameter_of("three-state[delta=0.01]"), diameter_of("three-state"), diameter_of("three-state[delta=0]")
    (100.0, 200.0, inf)
    """
    delta = float(env.partition("delta=")[2].rstrip("]") or 0.005)
    return 1 / delta if delta else inf


def fit_line(x: ArrayLike, y: ArrayLike) -> tuple[float, float, float]:
    """Return slope, intercept and R² of the least-squares line.

    >>> [round(number, 6) for number in fit_line([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])]
    [2.0, 0.0, 1.0]
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    slope, intercept = np.polyfit(x, y, 1)
    rest, spread = y - slope * x - intercept, y - y.mean()
    return float(slope), float(intercept), float(1 - (rest @ rest) / (spread @ spread))


def late_slope(group: Curves, decades: float = 1.5) -> float:
    """Return the log-log slope of the mean pseudo-regret over the last ``decades`` of t."""
    late = group.t >= group.t[-1] / 10**decades
    mean = group.pseudo_regret[:, late].mean(axis=0, keepdims=True)
    return float(log_log_slopes(group.t[late].astype(np.float64), mean)[0])


def final(group: Curves) -> NDArray[np.float64]:
    """Return the pseudo-regret at the horizon, [k]."""
    return np.asarray(group.pseudo_regret[:, -1])


def judge_G1(system: System, found: Experiment) -> Outcome:
    """Fit a line to the mean regret of UCRL at the horizon against 1/δ."""
    ledger = Ledger()
    _measured_honestly(ledger, system, found)
    x = [diameter_of(group.env) for group in found.groups]
    y = [float(final(group).mean()) for group in found.groups]
    ledger.note("diameters", x)
    ledger.note("mean regret at the horizon", y)
    slope, intercept, r_squared = fit_line(x, y)
    growth = fit_line(np.log(x), np.log(y))[0]
    ledger.note("slope of the line", slope)
    ledger.note("intercept of the line", intercept)
    ledger.note("R² of the line", r_squared)
    ledger.note("log-log slope", growth)
    ledger.true(f"R² ≥ {STRAIGHT:g}", r_squared >= STRAIGHT)
    ledger.true(f"log-log slope in [{GROWTH[0]:g}, {GROWTH[1]:g}]", GROWTH[0] <= growth <= GROWTH[1])
    return ledger.outcome()


def judge_G2(system: System, found: Experiment) -> Outcome:
    """Require the order of the mean regrets in c, and small bounds below UCRL."""
    ledger = Ledger()
    _measured_honestly(ledger, system, found)
    ucrl, *scal = found.agents()
    _bounded_spans(ledger, scal)
    _ordered(ledger, scal)
    _below(ledger, ucrl, [group for group in scal if group.span_bound <= SMALL])
    for group in scal:
        ledger.note(
            f"mean regret beside UCRL, c = {group.span_bound:g}", float(final(group).mean() / final(ucrl).mean())
        )
    ledger.note("times at which a larger c does significantly better", unordered_times(scal))
    return ledger.outcome()


def judge_G3(system: System, found: Experiment) -> Outcome:
    """Require a linear regret of UCRL and sub-linear ones of SCAL."""
    ledger = Ledger()
    _measured_honestly(ledger, system, found)
    ucrl, *scal = found.agents()
    _bounded_spans(ledger, scal)
    ledger.note("slope of UCRL", late_slope(ucrl))
    ledger.true(f"UCRL: slope ≥ {LINEAR:g}", late_slope(ucrl) >= LINEAR)
    for group in scal:
        slope = late_slope(group)
        ledger.note(f"slope of SCAL, c = {group.span_bound:g}", slope)
        ledger.true(f"SCAL, c = {group.span_bound:g}: slope ≤ {SUBLINEAR:g}", slope <= SUBLINEAR)
    _below(ledger, ucrl, scal)
    _ordered(ledger, scal)
    ledger.note("span of UCRL's bias at the horizon", float(ucrl.span[:, -1].mean()))
    return ledger.outcome()


def judge_G4(system: System, found: Experiment) -> Outcome:
    """Require SCAL far below UCRL on Knight Quest."""
    ledger = Ledger()
    _measured_honestly(ledger, system, found)
    ucrl, *scal = found.agents()
    _bounded_spans(ledger, scal)
    printed = [group for group in scal if group.span_bound in (5.0, 10.0)]
    _below(ledger, ucrl, printed)
    for group in scal:
        ratio = float(final(group).mean() / final(ucrl).mean())
        ledger.note(f"mean regret beside UCRL, c = {group.span_bound:g}", ratio)
        if group.span_bound == SMALL:
            ledger.true(f"c = {SMALL:g}: at most {MARGIN:.0%} of UCRL's regret", ratio <= MARGIN)
    _ordered(ledger, printed)
    ledger.note("largest span of UCRL's bias", float(ucrl.span.max()))
    return ledger.outcome()


def _measured_honestly(ledger: Ledger, system: System, found: Experiment) -> None:
    """Require that the domains are the paper's, and that regret, pseudo-regret and reward belong together."""
    gains = {env: _domain(ledger, system, env) for env in dict.fromkeys(group.env for group in found.groups)}
    n_runs = sum(len(group.seeds) for group in found.groups)
    ledger.note("horizon", found.horizon)
    ledger.note("runs an agent", len(found.groups[0].seeds))
    for group in found.groups:
        ledger.within("g* that the regret is measured against", abs(group.gain - gains[group.env]), 1e-6)
        off = np.abs(group.regret - (group.t * group.gain - group.reward)).max()
        ledger.within("regret is t g* − Σ rewards, relative to t", off / found.horizon)
        ledger.true("the last measurement is at the horizon", group.t[-1] == found.horizon)
        # rewards lie in [0, 1]: Hoeffding's inequality for martingales, over all runs together
        widest = sqrt(found.horizon * log(2 * n_runs / LEVEL) / 2)
        noise = np.abs(group.regret[:, -1] - group.pseudo_regret[:, -1]).max()
        ledger.within("|regret − pseudo-regret| beside its bound", noise / widest - 1, 0.0)


def _domain(ledger: Ledger, system: System, env: str) -> float:
    """Check the constants that the paper prints for a domain; return g*."""
    mdp = system.make(env).mdp
    facts = system.analyse(mdp)
    g, h, D = (float(inf if x is None else x) for x in (facts.gain, facts.span, facts.diameter))
    if env == "knight-quest":
        sizes = (mdp.n_states, mdp.n_actions, mdp.max_support)
        ledger.true("Knight Quest: S = 360, A = 8, Γ = 6", sizes == (360, 8, 6))
        ledger.equal("Knight Quest: g*", g, 0.5, 0.005)
        ledger.equal("Knight Quest: sp(h*)", h, 3.28, 0.005)
        ledger.equal("Knight Quest: D", D, 250, 5)
    else:
        printed = diameter_of(env)
        ledger.within("three states: g* = 2/3", abs(g - 2 / 3))
        ledger.within("three states: sp(h*) = 1/(1 − δ)", abs(h - 1 / (1 - 1 / printed)))
        ledger.true("three states: D = 1/δ", printed == D or abs(D / printed - 1) < 1e-9)
    return g


def _bounded_spans(ledger: Ledger, groups: Sequence[Curves]) -> None:
    for group in groups:
        ledger.within("span of the optimistic bias ≤ c", float(group.span.max()) - group.span_bound)


def _below(ledger: Ledger, ucrl: Curves, groups: Sequence[Curves]) -> None:
    """Require that each group has significantly less regret than UCRL on the same seeds."""
    found = {group.name: paired_difference(group.pseudo_regret[:, -1:], ucrl.pseudo_regret[:, -1:]) for group in groups}
    p_values = holm({name: float(one.p_value[0]) for name, one in found.items()})
    for name, one in found.items():
        ledger.note(f"{name}: difference to UCRL with its 95 % interval", [float(x[0]) for x in one[:3]])
        ledger.note(f"{name}: p against UCRL", p_values[name])
        ledger.true(f"{name} is below UCRL (level {SIGNIFICANT:g})", one.mean[0] < 0 and p_values[name] < SIGNIFICANT)


def _ordered(ledger: Ledger, groups: Sequence[Curves]) -> None:
    """Require that no larger bound has significantly less regret than the next smaller one."""
    steps = _steps(groups, -1)
    p_values = holm({name: p for name, (_, p) in steps.items()})
    for name, (difference, _) in steps.items():
        ledger.note(f"mean regret, {name}", difference)
        ledger.true(f"no decrease, {name} (level {LEVEL:g})", difference >= 0 or not p_values[name] < LEVEL)


def _steps(groups: Sequence[Curves], i: int) -> dict[str, tuple[float, float]]:
    """Return (mean difference, p) of each bound to the next smaller one, at the i-th time."""
    out = {}
    for small, large in pairwise(groups):
        one = paired_difference(large.pseudo_regret[:, [i]], small.pseudo_regret[:, [i]])
        out[f"c = {large.span_bound:g} less c = {small.span_bound:g}"] = (float(one.mean[0]), float(one.p_value[0]))
    return out


def unordered_times(groups: Sequence[Curves]) -> list[float]:
    """Return the measured powers of ten at which a larger bound has significantly less regret than the next smaller one."""
    t, out = groups[0].t, []
    for time in 10.0 ** np.arange(2, np.floor(np.log10(t[-1])) + 1):
        steps = _steps(groups, int(np.searchsorted(t, time)))
        p_values = holm({name: p for name, (_, p) in steps.items()})
        if any(difference < 0 and p_values[name] < LEVEL for name, (difference, _) in steps.items()):
            out.append(float(time))
    return out


def _claim(
    id: str,  # noqa: A002
    title: str,
    place: str,
    statement: str,
    tolerance: str,
    experiment: str,
    judge: Callable[[System, Experiment], Outcome],
    mutants: dict[str, Callable[[System], System]],
) -> Claim:
    def check(system: System, scale: Scale) -> Outcome:
        return judge(system, measure(system, experiment_spec(experiment, scale)))

    return Claim(id, title, place, statement, tolerance, check, mutants, experiment, judge)


CLAIMS = (
    _claim(
        "G1",
        "The regret of UCRL grows linearly with the diameter",
        "Sec. 7, regret against the diameter",
        "On the three-state domain the regret of UCRL at a fixed horizon is linear in 1/δ ≈ D, while sp(h*) stays near 1.",
        f"R² ≥ {STRAIGHT:g} for a line through the mean regrets, and a log-log slope between {GROWTH[0]:g} and {GROWTH[1]:g}.",
        "diameter",
        judge_G1,
        {
            "UCRL plans under a bound on the span": wrong.playing(lambda agent: SCAL(2.0)),
            "the domain has twice the δ that its name says": wrong.wider_delta,
            "regret is measured against a gain that is 1e-4 too large": wrong.measured(wrong.against_a_larger_gain),
        },
    ),
    _claim(
        "G2",
        "Three states, D = 200: the smaller c, the smaller the regret of SCAL, and less than UCRL's",
        "Sec. 7, communicating MDPs; App. G.1",
        "With c ≥ sp(h*), the mean regret of SCAL does not decrease in c; with small c it is far below that of UCRL, with large "
        "c it may equal it. The span of the optimistic bias never exceeds c.",
        f"paired t-tests on common seeds, Holm: below UCRL for c ≤ {SMALL:g} at level {SIGNIFICANT:g}, "
        f"no decrease in c at level {LEVEL:g}.",
        "three-state",
        judge_G2,
        {
            "SCAL forgets its bound": wrong.playing(wrong.without_any_bound),
            "SCAL takes the bound 30 − c": wrong.playing(wrong.other_bound(lambda c: 30 - c)),
            "pseudo-regret counts every step half": wrong.measured(wrong.half_the_pseudo_regret),
        },
    ),
    _claim(
        "G3",
        "Three states, D = ∞: the regret of UCRL is linear, that of SCAL is not",
        "Sec. 7, infinite diameter; App. G.1",
        "With δ = 0 UCRL suffers linear regret; SCAL soon finds the optimal policy for every c.",
        f"log-log slope of the mean over the last decade and a half: ≥ {LINEAR:g} is linear, ≤ {SUBLINEAR:g} is not.",
        "infinite-diameter",
        judge_G3,
        {
            "UCRL plans under a bound on the span": wrong.playing(
                lambda agent: SCAL(2.0) if isinstance(agent, UCRL) else agent
            ),
            "SCAL takes a tenth of its bound": wrong.playing(wrong.other_bound(lambda c: c / 10)),
        },
    ),
    _claim(
        "G4",
        "Knight Quest: SCAL outperforms UCRL by a big margin",
        "App. G.2",
        "With c = 5 and c = 10, both above sp(h*) ≈ 3.28, the regret of SCAL is far below that of UCRL.",
        f"paired t-tests on common seeds, Holm, level {SIGNIFICANT:g}; with c = 5 at most {MARGIN:.0%} of UCRL's mean regret.",
        "knight-quest",
        judge_G4,
        {
            "SCAL forgets its bound": wrong.playing(wrong.without_any_bound),
            "both use the theory's radii": wrong.playing(wrong.full_radii),
        },
    ),
)
