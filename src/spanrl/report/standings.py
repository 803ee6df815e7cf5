"""Who did how well on an environment: final values, differences to the best agent, and which of them are significant.

The best agent has the lowest mean regret (the highest mean reward where the optimal gain is not known). Every other agent is
compared with it by a paired t-test on their common seeds; the p-values of an environment are corrected together by Holm's method:
with p₍₁₎ ≤ … ≤ p₍ₘ₎, the corrected p₍ᵢ₎ is max_{j≤i} min(1, (m − j + 1) p₍ⱼ₎).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from spanrl.report.text import UNKNOWN, number

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
    finals = {value: _by_pair(results.final(value)) for value in sorted(set(measures.values()))}
    slopes = _by_pair(results.slope())
    compare = cache(lambda *key: {row["env"]: row for row in results.compare(*key).iter_rows(named=True)})
    out = {}
    for env, value in measures.items():
        rows = sorted(
            (row for (of, _), row in finals[value].items() if of == env), key=lambda row: _badness(row, value)
        )
        best, *others = (row["agent"] for row in rows)
        differences = {agent: compare(agent, best, value).get(env, {}) for agent in others}
        p_values = holm({agent: _number(row.get("p_value")) for agent, row in differences.items()})
        out[env] = [
            Standing(
                agent=row["agent"],
                n=row["n"],
                t=row["t"],
                mean=_estimate(row, "mean"),
                median=_number(row["median"]),
                difference=_estimate(differences.get(row["agent"], {}), "difference"),
                p_value=p_values.get(row["agent"], NAN),
                slope=_estimate(slopes[env, row["agent"]], "slope"),
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


def p_text(p_value: float) -> str:
    """Write a corrected p-value with its stars.

    >>> p_text(0.0), p_text(0.031), p_text(NAN)
    ('< 0.0001 ***', '0.031 *', '–')
    """
    if math.isnan(p_value):
        return UNKNOWN
    return f"{number(round(p_value, 4)) if p_value >= 1e-4 else '< 0.0001'} {mark(p_value)}".rstrip()


def _badness(row: Mapping[str, Any], value: str) -> float:
    mean = _number(row["mean"])
    return math.inf if math.isnan(mean) else -mean if value == "reward" else mean


def _by_pair(frame: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["env"], row["agent"]): row for row in frame.iter_rows(named=True)}


def _estimate(row: Mapping[str, Any], name: str) -> Estimate:
    return Estimate(_number(row.get(name)), _number(row.get("low")), _number(row.get("high")))


def _number(value: float | None) -> float:
    return NAN if value is None else float(value)
