"""The experiments of the reproduction at three scales: the paper's own, cut down for a look and for a test.

The files in ``specs`` are the full scale. Smaller scales have fewer seeds, shorter horizons and, on Knight Quest, fewer agents; the
three-state domain is simulated so fast that ``quick`` keeps its horizon.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spanrl.experiments.spec import Spec, read_spec
from spanrl.paper.claims.base import Scale
from spanrl.paper.curves import bound_of


@dataclass(frozen=True)
class Cut:
    """How an experiment is cut down: number of seeds, horizon, and the span bounds that stay (None: all)."""

    seeds: int
    horizon: int | None = None
    bounds: tuple[float, ...] | None = None


EXPERIMENTS = (
    "diameter",
    "three-state",
    "infinite-diameter",
    "knight-quest",
    "three-state-sweep",
    "knight-quest-sweep",
)
"""The four of the paper, then ours."""

_INF = float("inf")

_CUTS = {
    "smoke": {
        "diameter": Cut(5, 10**7),
        "three-state": Cut(6, 10**7),
        "infinite-diameter": Cut(3, 10**7),
        "knight-quest": Cut(4, 10**7, (5.0, _INF)),
        "three-state-sweep": Cut(2, 10**7, (0.25, 0.5, 1.01, 100.0)),
        "knight-quest-sweep": Cut(0),
    },
    "quick": {
        "diameter": Cut(10),
        "three-state": Cut(10),
        "infinite-diameter": Cut(10),
        "knight-quest": Cut(5, 4 * 10**7),
        "three-state-sweep": Cut(10),
        "knight-quest-sweep": Cut(2, 4 * 10**7, (0.5, 1.0, 20.0)),
    },
}


def experiments_at(scale: Scale) -> list[str]:
    """Return the experiments that are run at a scale: all but those cut down to nothing."""
    cuts = _CUTS.get(scale.name, {})
    return [name for name in EXPERIMENTS if name not in cuts or cuts[name].seeds]


def experiment_spec(name: str, scale: Scale) -> Spec:
    """Return the spec of an experiment at a scale.

    >>> from spanrl.paper.claims.base import PAPER, SMOKE
    >>> [len(experiment_spec("three-state", scale).cells()) for scale in (SMOKE, PAPER)]
    [42, 140]
    """
    spec = read_spec(name)
    cut = _CUTS.get(scale.name, {}).get(name)
    if cut is None:
        return spec
    agents = tuple(agent for agent in spec.agents if cut.bounds is None or bound_of(agent.id) in cut.bounds)
    return replace(spec, seeds=spec.seeds[: cut.seeds], horizon=cut.horizon or spec.horizon, agents=agents)
