"""A reproduction made by hand: every number is chosen, nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from spanrl.paper.claims import all_claims, expected_verdicts
from spanrl.paper.curves import Curves, Experiment
from spanrl.paper.page.inline import inlined
from spanrl.paper.page.making import Spent, spent
from spanrl.paper.page.parts import Drawn
from spanrl.paper.reproduce import Reproduction
from spanrl.paper.slips import Slip

HORIZON = 10**5
TIMES = np.unique(np.rint(10.0 ** (np.arange(51) / 10)).astype(np.int64))
NOISE = np.random.default_rng(7).normal(size=(40, 20))
"""[agent, seed]: each seed moves the whole curve of an agent by a tenth of this."""

EVIL = "<img src=x onerror=alert(1)>&\"'|`*"

SVG = (
    b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 300 250" '
    b'width="300pt" height="250pt" version="1.1"><metadata>https://matplotlib.org</metadata><defs><style>*{fill: red}</style></defs>'
    b'<defs><path id="m1" d="M 0.123456 1 \nL 2 3"/><clipPath id="p1"><rect width="300" height="250"/></clipPath></defs>'
    b'<g id="line_1"><use xlink:href="#m1" clip-path="url(#p1)" style="fill: #222222; stroke: #ffffff; stroke-width: 0.5"/></g></svg>'
)
"""What matplotlib writes, in short."""

RUN = {
    "machine": {"processor": "a processor", "cores": 2, "system": "Linux x86_64"},
    "versions": {"python": "3.11", "spanrl": "0.1"},
    "git": None,
    "begun": "2026-01-02 03:04 UTC",
    "sources": "abc",
    "seconds": {"claims": 30.0, "experiment three-state": 10.0, "experiment knight-quest": 60.0, "pages": 500.0},
}

SLIPS = (
    Slip(
        "one",
        "A slip of T_c",
        "Sec. 1",
        "printed <b>",
        "right & proper",
        {"a list": [1.0, "inf"], "nothing": "nan"},
        True,
    ),
    Slip("two", "Another", "Sec. 2", "x", "y", {}, False),
)

Shape = Callable[[np.ndarray], np.ndarray]


def curves(
    bound: float = inf, *, level: float = 1.0, seeds: int = 6, env: str = "three-state[delta=0.005]", **options: Any
) -> Curves:
    """Return runs with a pseudo-regret of (level + noise) √t, or of another ``shape``; the regret is 1 more."""
    t, shape = options.get("t", TIMES), options.get("shape", np.sqrt)
    place = int(options.get("place", 0 if bound == inf else min(bound, 39)))
    pseudo = (level + 0.1 * NOISE[place, :seeds])[:, None] * shape(t)
    return Curves(
        env=env,
        agent="ucrl" if bound == inf else f"scal[span_bound={bound:g}]",
        span_bound=bound,
        gain=0.5,
        seeds=np.arange(seeds),
        t=t,
        reward=0.5 * t - pseudo - 1,
        regret=pseudo + 1,
        pseudo_regret=pseudo,
        span=np.ones_like(pseudo),
        n_episodes=np.tile(np.maximum(t / 1000, 1), (seeds, 1)),
        sweeps=np.full(seeds, 700.0),
        planning=np.full(seeds, 0.25),
        simulating=np.full(seeds, 0.75),
    )


def experiment(name: str, groups: Sequence[Curves]) -> Experiment:
    return Experiment(name, int(groups[0].t[-1]), tuple(groups))


def experiments() -> dict[str, Experiment]:
    """Return all six experiments, small."""
    scal = [curves(bound, level=level) for bound, level in ((2.0, 2.0), (5.0, 3.0), (10.0, 5.0))]
    game = {"env": "knight-quest"}
    deltas = [curves(env=f"three-state[delta={delta}]", level=0.1 / delta) for delta in (0.1, 0.05, 0.01)]
    return {
        "diameter": experiment("diameter", deltas),
        "three-state": experiment("three-state", [curves(level=5.0), *scal]),
        "infinite-diameter": experiment("infinite-diameter", [curves(level=9.0, shape=lambda t: 1.0 * t), *scal]),
        "knight-quest": experiment("knight-quest", [curves(level=9.0, **game), curves(5.0, level=4.0, **game)]),
        "three-state-sweep": experiment(
            "three-state-sweep", [curves(0.5, level=9.0, seeds=2), curves(20.0, level=5.0, seeds=2)]
        ),
        "knight-quest-sweep": experiment(
            "knight-quest-sweep", [curves(1.0, level=9.0, seeds=2, t=TIMES[TIMES <= 10**4], **game)]
        ),
    }


def entries(**changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the content of claims.json with every claim as expected; ``changes``: id → what is different."""
    expected, out = expected_verdicts(), {}
    for claim in all_claims():
        verdict = expected[claim.id]["verdict"]
        out[claim.id] = {
            "verdict": verdict,
            "expected": verdict,
            "reason": expected[claim.id].get("reason", ""),
            "title": claim.title,
            "statement": claim.statement,
            "place": claim.place,
            "tolerance": claim.tolerance,
            "scale": "smoke",
            "numbers": {
                "worst excess, T_c v": 1e-12,
                "a list": [1.0, 2.5],
                "a number whose name has so many words that it takes all the room there is, and leaves the number none": 4.979e-11,
                "broken by hand": "nan",
                "is it": True,
            },
        } | dict(changes.get(claim.id, {}))
    out["R5"]["numbers"] = {"three-state, c = 2: backups of EVI, of ScOpt": [1000.0, 600.0]}
    return out


def reproduction(
    folder: Path,
    *,
    claims: Mapping[str, Any] | None = None,
    found: Mapping[str, Experiment] | None = None,
    slips: tuple[Slip, ...] | None = None,
) -> Reproduction:
    """Return a reproduction, a complete one unless told otherwise."""
    claims = entries() if claims is None else claims
    surprises = tuple(name for name, entry in claims.items() if entry["verdict"] != entry["expected"])
    return Reproduction(
        folder,
        "smoke",
        claims,
        surprises,
        experiments() if found is None else found,
        SLIPS if slips is None else slips,
        RUN,
    )


def drawn() -> dict[str, Drawn]:
    """Return pictures by the names that the page asks for."""
    names = (
        "diameter", "three-state", "three-state-scal", "infinite-diameter", "infinite-diameter-scal", "knight-quest", "bound",
        "sweep-three-state", "sweep-knight-quest", "planning", "time",
    )  # fmt: skip
    keys = {"UCRL": inlined(SVG, "key-0"), EVIL: inlined(SVG, "key-1")}
    return {
        name: Drawn(
            name,
            f"Title of {name}",
            f"Caption of {name} | {EVIL}",
            [inlined(SVG, f"{name}-{i}") for i in range(2)],
            keys if name == "bound" else {},
        )
        for name in names
    }


def time_of(found: Reproduction) -> Spent:
    return spent(found.run, found.experiments, 20.0)
