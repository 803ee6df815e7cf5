"""What the judges of the experiments have in common: fits, slopes, paired tests, and that what was measured is what it is called.

Differences are paired on common seeds and tested by t-tests, corrected by Holm's method. Tests use the pseudo-regret, which has the same
mean as the regret and far less noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf, log, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ttest_rel

from spanrl.experiments.statistics import Difference, log_log_slopes, paired_difference
from spanrl.paper.claims.base import Ledger
from spanrl.paper.claims.domains import check_domain
from spanrl.paper.curves import Curves, Experiment
from spanrl.paper.system import System
from spanrl.report.standings import holm

SIGNIFICANT = 0.01
"""Level, over all tests of a claim together, at which a difference that the paper names must show."""

ROUNDING = 1e-12
"""Of sums of rewards, relative: what the order of adding may change."""

SAME = 0.05
"""A mean regret shown to lie within this fraction of UCRL's is called the same."""

LEVEL = 1e-3
"""Level at which the data contradict a statement; also that of the check that regret and pseudo-regret belong together."""


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
    """Return the log-log slope of the mean pseudo-regret over the last ``decades`` of t; NaN where it is not positive all that time."""
    late = group.t >= group.t[-1] / 10**decades
    mean = group.pseudo_regret[:, late].mean(axis=0, keepdims=True)
    return float(log_log_slopes(group.t[late].astype(np.float64), mean)[0]) if (mean > 0).all() else nan


def final(group: Curves) -> NDArray[np.float64]:
    """Return the pseudo-regret at the horizon, [k]."""
    return np.asarray(group.pseudo_regret[:, -1])


def measured_honestly(ledger: Ledger, system: System, found: Experiment) -> None:
    """Require that the domains are the paper's, and that regret, pseudo-regret and reward belong together."""
    gains = {env: _domain(ledger, system, env) for env in dict.fromkeys(group.env for group in found.groups)}
    n_runs = sum(len(group.seeds) for group in found.groups)
    ledger.note("horizon", found.horizon)
    ledger.note("runs per agent", len(found.groups[0].seeds))
    for group in found.groups:
        ledger.within("g* that the regret is measured against", abs(group.gain - gains[group.env]), 1e-6)
        off = np.abs(group.regret - (group.t * group.gain - group.reward)).max()
        ledger.within("regret is t g* − Σ rewards, relative to t", off / found.horizon)
        ledger.true("the last measurement is at the horizon", group.t[-1] == found.horizon)
        ledger.true("runs of different seeds differ", len(set(group.reward[:, -1])) > 1 or len(group.seeds) == 1)
        # rewards lie in [0, 1]: Hoeffding's inequality for martingales, over all runs together
        widest = sqrt(found.horizon * log(2 * n_runs / LEVEL) / 2)
        noise = np.abs(group.regret[:, -1] - group.pseudo_regret[:, -1]).max()
        ledger.within("|regret − pseudo-regret| beside its bound", noise / widest - 1, 0.0)


def _domain(ledger: Ledger, system: System, env: str) -> float:
    """Check the rules of a domain and the constants that the paper prints for it; return g*."""
    place = system.make(env)
    check_domain(ledger, place, env)
    mdp = place.mdp
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


def bounded_spans(ledger: Ledger, groups: Sequence[Curves]) -> None:
    """Require that the optimistic bias of each group stays within its bound."""
    for group in groups:
        ledger.within("span of the optimistic bias ≤ c", float(group.span.max()) - group.span_bound)


def difference(first: Curves, second: Curves, i: int = -1, *, level: float = 0.95) -> Difference:
    """Return the mean pseudo-regret of ``first`` less that of ``second`` at the i-th time, paired on seeds; rounding is no difference."""
    noise = ROUNDING * float(np.abs(first.reward[:, i]).max())
    return paired_difference(first.pseudo_regret[:, [i]], second.pseudo_regret[:, [i]], level=level, noise=noise)


def below(ledger: Ledger, ucrl: Curves, groups: Sequence[Curves]) -> None:
    """Require that each group has significantly less regret than UCRL on the same seeds."""
    found = {group.name: difference(group, ucrl) for group in groups}
    p_values = holm({name: float(one.p_value[0]) for name, one in found.items()})
    for group, (name, one) in zip(groups, found.items(), strict=True):
        _agrees_with_scipy(ledger, group, ucrl, float(one.p_value[0]))
        ledger.note(f"{name}: difference to UCRL with its 95 % interval", [float(x[0]) for x in one[:3]])
        ledger.note(f"{name}: p against UCRL", p_values[name])
        ledger.true(f"{name} is below UCRL (level {SIGNIFICANT:g})", one.mean[0] < 0 and p_values[name] < SIGNIFICANT)


def above(ledger: Ledger, ucrl: Curves, groups: Sequence[Curves]) -> None:
    """Require that no group has significantly more regret than UCRL on the same seeds."""
    found = {group.name: difference(group, ucrl) for group in groups}
    p_values = holm({name: float(one.p_value[0]) for name, one in found.items()})
    for name, one in found.items():
        worse = one.mean[0] > 0 and p_values[name] < LEVEL
        ledger.true(f"{name} is not above UCRL (level {LEVEL:g})", not worse)


class Sides(NamedTuple):
    """The comparisons in which the first is shown to have less regret, to have as much or more, and those that the runs leave open."""

    better: list[str]
    no_better: list[str]
    unclear: list[str]


def sides(ledger: Ledger, ucrl: Curves, groups: Sequence[Curves]) -> Sides:
    """Tell by simultaneous intervals of the paired differences which groups have less regret than UCRL on the same seeds."""
    for group in groups:
        equal = int((group.reward == ucrl.reward).all(axis=1).sum())
        ledger.note(f"{group.name}: runs with UCRL's rewards at every measurement", equal)
    return _sides(ledger, {_bound(group): (group, ucrl) for group in groups})


def neighbours(ledger: Ledger, groups: Sequence[Curves]) -> Sides:
    """Tell by simultaneous intervals which groups have less regret than the next one."""
    return _sides(ledger, {f"{_bound(a)} against {_bound(b)}": (a, b) for a, b in pairwise(groups)})


def _sides(ledger: Ledger, pairs: Mapping[str, tuple[Curves, Curves]]) -> Sides:
    """Compare the first of each pair with the second.

    It is no better where the whole interval lies above 0, or within SAME of the second's mean regret without lying below 0.
    """
    found = Sides([], [], [])
    for name, (first, second) in pairs.items():
        low, high, near = simultaneous(ledger, first, second, len(pairs))
        same_or_worse = low > 0 or -near <= low <= high <= near
        side = found.better if high < 0 else found.no_better if same_or_worse else found.unclear
        side.append(name)
    return found


def simultaneous(ledger: Ledger, first: Curves, second: Curves, n: int) -> tuple[float, float, float]:
    """Return the ends of one of ``n`` simultaneous intervals of a difference (Bonferroni), and what is near: SAME of the second's mean."""
    mean, low, high = (float(one[0]) for one in difference(first, second, level=1 - SIGNIFICANT / n)[:3])
    ledger.note(f"{first.name}: difference to {second.name} with its simultaneous 99 % interval", [mean, low, high])
    return low, high, SAME * float(final(second).mean())


def _bound(group: Curves) -> str:
    return f"c = {group.span_bound:g}"


def _agrees_with_scipy(ledger: Ledger, group: Curves, ucrl: Curves, p_value: float) -> None:
    """Require the p-value of scipy's own paired t-test, where the runs differ at all."""
    rest = final(group) - final(ucrl)
    if np.ptp(rest) > ROUNDING * float(np.abs(group.reward[:, -1]).max()):
        wanted = float(ttest_rel(final(group), final(ucrl)).pvalue)
        ledger.within("p of the paired t-test, relative to scipy's", abs(p_value / wanted - 1), 1e-6)


def ordered(ledger: Ledger, groups: Sequence[Curves]) -> None:
    """Require that no larger bound has significantly less regret than the next smaller one."""
    steps = _steps(groups, -1)
    p_values = holm({name: p for name, (_, p) in steps.items()})
    for name, (difference, _) in steps.items():
        ledger.note(f"mean pseudo-regret, {name}", difference)
        ledger.true(f"no decrease, {name} (level {LEVEL:g})", difference >= 0 or not p_values[name] < LEVEL)


def _steps(groups: Sequence[Curves], i: int) -> dict[str, tuple[float, float]]:
    """Return (mean difference, p) of each bound to the next smaller one, at the i-th time."""
    out = {}
    for small, large in pairwise(groups):
        one = difference(large, small, i)
        out[f"c = {large.span_bound:g} less c = {small.span_bound:g}"] = (float(one.mean[0]), float(one.p_value[0]))
    return out


def unordered_times(groups: Sequence[Curves]) -> list[float]:
    """Return the times, powers of ten and the horizon, at which a larger bound has significantly less regret than the next smaller one."""
    t, out = groups[0].t, []
    for time in sorted({*(10.0 ** np.arange(2, np.floor(np.log10(t[-1])) + 1)), float(t[-1])}):
        steps = _steps(groups, int(np.searchsorted(t, time)))
        p_values = holm({name: p for name, (_, p) in steps.items()})
        if any(difference < 0 and p_values[name] < LEVEL for name, (difference, _) in steps.items()):
            out.append(float(time))
    return out
