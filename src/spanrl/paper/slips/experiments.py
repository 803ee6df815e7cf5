"""Sentences about the experiments that say more than the figures show; a claim gives each its verdict on the figure's own runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import spanrl
from spanrl.learning.run import Run
from spanrl.paper.claims.base import Number
from spanrl.paper.claims.comparing import SAME
from spanrl.paper.slips.base import Finding, Statement

HORIZON = 10**6
SEEDS = range(5)
RUNS: dict[str, Number] = {"runs of 10⁶ steps": len(SEEDS)}


def _runs(agent: str, env: str = "three-state") -> list[Run]:
    return [spanrl.learn(env, agent, horizon=HORIZON, seed=seed) for seed in SEEDS]


def _mean(runs: Sequence[Run]) -> float:
    """Return the mean pseudo-regret at the horizon."""
    return float(np.mean([run.pseudo_regret[-1] for run in runs]))


def _regret(c: float, env: str = "three-state") -> float:
    return _mean(_runs(f"scal[span_bound={c:g}]", env))


def _always_better() -> Finding:
    bounds = (2, 25, 50)
    ucrl, scal = _runs("ucrl"), [_runs(f"scal[span_bound={c}]") for c in bounds]
    widest = max(float(run.episodes["span"].max()) for run in ucrl)
    equal = [sum(np.array_equal(a.reward, b.reward) for a, b in zip(them, ucrl, strict=True)) for them in scal]
    ratios = [_mean(them) / _mean(ucrl) for them in scal]
    return RUNS | {
        "mean pseudo-regret of UCRL": _mean(ucrl),
        "largest span of UCRL's optimistic bias": widest,
        "c": [float(c) for c in bounds],
        "mean pseudo-regret of SCAL relative to it": ratios,
        "runs of SCAL with UCRL's rewards at every measurement": [float(n) for n in equal],
    }, bounds[-1] > widest and equal[-1] == len(SEEDS) and equal[1] > 0 and abs(ratios[1] - 1) <= SAME < 1 - ratios[0]


def _smaller_better() -> Finding:
    bounds = (0.5, 2.0, 20.0, 25.0)
    regrets = [_regret(c) for c in bounds]
    too_small, small, large, larger = regrets
    return RUNS | {
        "sp(h*)": spanrl.analyse(spanrl.make("three-state").mdp, diameter=False).span,
        "c": list(bounds),
        "mean pseudo-regret of SCAL": regrets,
    }, too_small > small * (1 + SAME) and abs(large / larger - 1) <= SAME


def _span_alone() -> Finding:
    c, deltas, bounds = 5.0, (0.1, 0.01), (2.0, 10.0)
    envs = [f"three-state[delta={delta:g}]" for delta in deltas]
    facts = [spanrl.analyse(spanrl.make(env).mdp) for env in envs]
    by_diameter, by_bound = [_regret(c, env) for env in envs], [_regret(one, envs[-1]) for one in bounds]
    return RUNS | {
        "D": [float(one.diameter or 0) for one in facts],
        "sp(h*)": [float(one.span or 0) for one in facts],
        "c = 5: mean pseudo-regret of SCAL, by D": by_diameter,
        "D = 100, c": list(bounds),
        "D = 100: mean pseudo-regret of SCAL, by c": by_bound,
    }, all(max(them) > 2 * min(them) for them in (by_diameter, by_bound))


SLIPS = (
    Statement(
        id="always-better",
        title="SCAL is not always better than UCRL",
        place="Sec. 7, communicating MDPs",
        printed="SCAL is always performing better than UCRL (the figure with c from 2 to 25).",
        found="With small c it is, by far. A bound above every span that UCRL's optimistic bias takes changes nothing: with c = 50 SCAL "
        "plays what UCRL plays, with c = 25 it does so in most runs, and the mean regret is that of UCRL (claim G5).",
        measure=_always_better,
    ),
    Statement(
        id="smaller-better",
        title="A smaller c is not always better",
        place="Sec. 7, communicating MDPs",
        printed="The smaller c, the better the regret (the figure with c from 2 to 25).",
        found="No larger c does better than a smaller one above sp(h*), but the largest do the same: they truncate early in a run, "
        "if at all (claim G6). Far below sp(h*) a smaller c does worse: with c = 0.5 the regret is linear (claim R3).",
        measure=_smaller_better,
    ),
    Statement(
        id="span-alone",
        title="The regret of SCAL does not depend on the span alone",
        place="Sec. 7, first paragraph",
        printed="SCAL achieves a much smaller regret that only depends on the span.",
        found="It depends on the bound c that SCAL is given, which need not be near the span (claim G7), and, at one c, on the diameter "
        "while that is small: where UCRL's optimistic bias stays below c, SCAL plays what UCRL plays. What the theorem says is that it "
        "does not grow with the diameter beyond a bound, which depends on c.",
        measure=_span_alone,
    ),
)
