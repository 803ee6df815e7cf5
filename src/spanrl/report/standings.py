"""Who did how well on an environment: final values, differences to the best agent, and which of them are significant.

The best agent has the lowest mean regret (the highest mean reward where the optimal gain is not known). Every other agent is
compared with it by a paired t-test on their common seeds; the p-values of an environment are corrected together by Holm's method:
with p₍₁₎ ≤ … ≤ p₍ₘ₎, the corrected p₍ᵢ₎ is max_{j≤i} min(1, (m − j + 1) p₍ⱼ₎).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanrl.experiments.results import Results

NAN = float("nan")


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; NaN where there is none."""

    value: float = NAN
    low: float = NAN
    high: float = NAN


@dataclass(frozen=True)
class Standing:
    """One agent's row: the value at its last common time ``t`` over ``n`` runs, and how it compares with the best."""

    agent: str
    n: int
    t: int
    mean: Estimate
    median: float
    difference: Estimate = Estimate()
    p_value: float = NAN
    slope: Estimate = Estimate()
    is_best: bool = False


def standings(results: Results, measures: Mapping[str, str]) -> dict[str, list[Standing]]:
    """Return environment → rows, best first; ``measures`` tells by which value (regret or reward) each environment is judged."""
    finals = {value: _by_pair(results.final(value), ("env", "agent")) for value in sorted(set(measures.values()))}
    slopes = _by_pair(results.slope(), ("env", "agent"))
    out = {}
    comparisons: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for env, value in measures.items():
        rows = [row for (of, _), row in finals[value].items() if of == env]
        rows.sort(key=lambda row: _badness(row["mean"], value))
        best = rows[0]["agent"]
        found = {}
        for agent in (row["agent"] for row in rows[1:]):
            key = (agent, best, value)
            if key not in comparisons:  # one comparison covers all environments
                comparisons[key] = {row["env"]: row for row in results.compare(*key).iter_rows(named=True)}
            found[agent] = comparisons[key].get(env, {})
        corrected = holm({agent: _number(row.get("p_value")) for agent, row in found.items()})
        out[env] = [
            Standing(
                agent=row["agent"],
                n=int(row["n"]),
                t=int(row["t"]),
                mean=_estimate(row, "mean"),
                median=_number(row["median"]),
                difference=_estimate(found.get(row["agent"], {}), "difference"),
                p_value=corrected.get(row["agent"], NAN),
                slope=_estimate(slopes.get((env, row["agent"]), {}), "slope") if value == "regret" else Estimate(),
                is_best=row["agent"] == best,
            )
            for row in rows
        ]
    return out


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return the p-values corrected for their number; NaN (nothing to test) stays and does not count.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    tested = sorted((p, key) for key, p in p_values.items() if not math.isnan(p))
    out, largest = dict.fromkeys(p_values, NAN), 0.0
    for i, (p, key) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - i) * p))
        out[key] = largest
    return out


def mark(p_value: float) -> str:
    """Return the stars of a corrected p-value: *** below 0.001, ** below 0.01, * below 0.05."""
    return "*" * sum(p_value < level for level in (0.05, 0.01, 0.001))


def _badness(mean: float | None, value: str) -> float:
    known = _number(mean)
    if math.isnan(known):
        return math.inf
    return -known if value == "reward" else known


def _by_pair(frame: Any, keys: Iterable[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}


def _estimate(row: Mapping[str, Any], name: str) -> Estimate:
    return Estimate(_number(row.get(name)), _number(row.get("low")), _number(row.get("high")))


def _number(value: float | None) -> float:
    return NAN if value is None else float(value)
