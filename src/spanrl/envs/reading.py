"""What a user gives as outcomes, read: pairs of whole numbers, each with a list of tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from spanrl.errors import ModelError
from spanrl.models.labels import shown


def read_outcomes(outcomes: Mapping[Any, Any], most: int) -> tuple[list[tuple[int, int]], list[Sequence[Any]]]:
    """Return the pairs in order, and the outcomes of each, which have three fields up to ``most``."""
    odd = next((pair for pair in outcomes if not _is_pair(pair)), None)
    if odd is not None:
        raise ModelError(
            f"Env: outcomes must have pairs (state, action) of whole numbers ≥ 0 as keys; got {shown(odd)}."
        )
    pairs, rows = sorted(outcomes), []
    for pair in pairs:
        given = outcomes[pair]
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise ModelError(
                f"Env: outcomes of (s={pair[0]}, a={pair[1]}) must be a list; got {shown(given)}. Put one outcome an entry."
            )
        for j, outcome in enumerate(given):
            fits = isinstance(outcome, (tuple, list)) and 3 <= len(outcome) <= most
            if not fits or not all(map(_is_whole, outcome[3:4])):
                raise ModelError(
                    f"Env: outcome {j} of (s={pair[0]}, a={pair[1]}) must read (probability, next state, reward) or "
                    f"Outcome(prob, succ, reward, law); got {shown(outcome)}."
                )
        rows.append(given)
    return pairs, rows


def _is_pair(pair: object) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and all(map(_is_whole, pair))


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0
