"""What the experiments found, as numbers: final regrets, comparisons with UCRL, the order at every power of ten, the cost of planning.

All comparisons use the pseudo-regret, which has the same mean as the regret and far less noise, paired on common seeds; the p-values of
one time are corrected together by Holm's method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from spanrl.experiments.statistics import Difference, Floats, mean_interval, paired_difference
from spanrl.paper.claims.comparing import ROUNDING, SIGNIFICANT, late_slope, unordered_times
from spanrl.paper.curves import Curves, Experiment
from spanrl.report.standings import Estimate, holm

FIRST_DECADE = 3
"""The first time of the tables over time is 10³."""

BELOW, ABOVE = "below", "above"

NO_ESTIMATE = Estimate()


@dataclass(frozen=True)
class Final:
    """One agent at its horizon ``t``; ratio, difference and p are those of the pseudo-regret against UCRL's at the same time."""

    name: str
    env: str
    span_bound: float
    n: int
    t: int
    regret: Estimate
    pseudo_regret: Estimate
    slope: float
    ratio: float = nan
    difference: Estimate = NO_ESTIMATE
    p_value: float = nan


@dataclass(frozen=True)
class OverTime:
    """Mean pseudo-regrets [agent][time], and where each agent is significantly ``below`` or ``above`` UCRL ("" where neither).

    ``disordered`` are the times at which a larger bound has significantly less regret than the next smaller one.
    """

    times: tuple[int, ...]
    names: tuple[str, ...]
    bounds: tuple[float, ...]
    means: tuple[tuple[float, ...], ...]
    marks: tuple[tuple[str, ...], ...]
    disordered: tuple[int, ...]


@dataclass(frozen=True)
class Cost:
    """What planning cost one agent: episodes per run (mean), sweeps and microseconds per episode (medians), share in the time of a run."""

    experiment: str
    env: str
    name: str
    episodes: float
    sweeps: float
    microseconds: float
    share: float


def finals(groups: Sequence[Curves], ucrl: Curves | None = None) -> list[Final]:
    """Return a row for every group, in their order; compared with ``ucrl`` where it is given and was measured at the same time."""
    differences = {}
    for i, group in enumerate(groups):
        if ucrl is not None and group is not ucrl and _is_comparable(group, ucrl):
            differences[str(i)] = compared(group, ucrl, int(group.t[-1]))
    p_values = holm({key: float(one.p_value[0]) for key, one in differences.items()})
    return [_final(group, ucrl, differences.get(str(i)), p_values.get(str(i), nan)) for i, group in enumerate(groups)]


def compared(group: Curves, ucrl: Curves, t: int) -> Difference:
    """Return the difference of the pseudo-regrets at ``t`` on the seeds that both have."""
    paid = float(np.abs(group.reward[:, _column(group, t)]).max())
    return paired_difference(*_paired(group, ucrl, t), noise=ROUNDING * paid)


def _is_comparable(group: Curves, ucrl: Curves) -> bool:
    """Tell whether both have a seed in common, and UCRL was measured when the group ended."""
    return bool(np.isin(group.seeds, ucrl.seeds).any()) and _index(ucrl, int(group.t[-1])) is not None


def _paired(group: Curves, ucrl: Curves, t: int) -> tuple[Floats, Floats]:
    """Return the pseudo-regrets of both at ``t``, [k, 1], on common seeds."""
    _, ours, theirs = np.intersect1d(group.seeds, ucrl.seeds, return_indices=True)
    return group.pseudo_regret[ours][:, _column(group, t)], ucrl.pseudo_regret[theirs][:, _column(ucrl, t)]


def over_time(agents: Sequence[Curves]) -> OverTime:
    """Compare the agents, UCRL first, at 10³, 10⁴, … and the horizon."""
    ucrl, *scal = agents
    times = decades(ucrl)
    marks, unordered = [_marks(scal, ucrl, t) for t in times], unordered_times(scal)
    return OverTime(
        times=times,
        names=tuple(group.name for group in agents),
        bounds=tuple(group.span_bound for group in agents),
        means=tuple(tuple(_mean(group, t) for t in times) for group in agents),
        marks=tuple(tuple(at[group.name] for at in marks) for group in agents),
        disordered=tuple(t for t in times if t in unordered),
    )


def _marks(scal: Sequence[Curves], ucrl: Curves, t: int) -> dict[str, str]:
    """Return which agents are significantly below or above UCRL at ``t``."""
    found = {group.name: compared(group, ucrl, t) for group in scal}
    p_values = holm({name: float(one.p_value[0]) for name, one in found.items()})
    clear = {name: (BELOW if one.mean[0] < 0 else ABOVE) for name, one in found.items() if p_values[name] < SIGNIFICANT}
    return {ucrl.name: "", **dict.fromkeys(found, "")} | clear


def decades(group: Curves) -> tuple[int, ...]:
    """Return the measured powers of ten from 10³ on, and the horizon."""
    last = int(group.t[-1])
    powers = [10**k for k in range(FIRST_DECADE, len(str(last))) if _index(group, 10**k) is not None]
    return tuple(dict.fromkeys([*powers, last]))


def costs(experiments: Mapping[str, Experiment]) -> list[Cost]:
    """Return what planning cost every agent of these experiments."""
    return [_cost(name, group) for name, found in experiments.items() for group in found.groups]


def _cost(experiment: str, group: Curves) -> Cost:
    return Cost(
        experiment=experiment,
        env=group.env,
        name=group.name,
        episodes=float(group.n_episodes[:, -1].mean()),
        sweeps=float(np.median(sweeps_an_episode(group))),
        microseconds=float(np.median(microseconds_an_episode(group))),
        share=_over(group.planning.sum(), (group.planning + group.simulating).sum()),
    )


def sweeps_an_episode(group: Curves) -> Floats:
    """Return the sweeps of a plan, mean over the episodes of a run, [k]."""
    return group.sweeps / group.n_episodes[:, -1]


def microseconds_an_episode(group: Curves) -> Floats:
    """Return the microseconds of a plan, mean over the episodes of a run, [k]; take the median: the first run of a worker loads kernels."""
    return 1e6 * group.planning / group.n_episodes[:, -1]


def _final(group: Curves, ucrl: Curves | None, difference: Difference | None, p_value: float) -> Final:
    pseudo, regret = (_estimate(values[:, -1:]) for values in (group.pseudo_regret, group.regret))
    row = Final(
        group.name, group.env, group.span_bound, len(group.seeds), int(group.t[-1]), regret, pseudo, late_slope(group)
    )
    if ucrl is None or difference is None:
        return row
    mean, low, high = (float(one[0]) for one in difference[:3])
    ours, theirs = (float(values.mean()) for values in _paired(group, ucrl, row.t))
    return replace(row, ratio=_over(ours, theirs), difference=Estimate(mean, low, high), p_value=p_value)


def _estimate(values: Floats) -> Estimate:
    return Estimate(*(float(one[0]) for one in mean_interval(values)))


def _mean(group: Curves, t: int) -> float:
    return float(group.pseudo_regret[:, _column(group, t)].mean())


def _column(group: Curves, t: int) -> list[int]:
    found = _index(group, t)
    assert found is not None
    return [found]


def _index(group: Curves, t: int) -> int | None:
    """Return where ``t`` is among the measured times, None where it is not."""
    i = int(np.searchsorted(group.t, t))
    return i if i < len(group.t) and group.t[i] == t else None


def _over(part: float, whole: float) -> float:
    return float(part / whole) if whole else nan
