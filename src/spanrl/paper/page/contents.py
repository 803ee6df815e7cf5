"""The groups that claims are shown in, and their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spanrl.paper.claims import experiments

GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "evaluation": ("Evaluation and the problem", ("E0", "E1", "L2", "L3", "P1", "L5")),
    "operators": ("Operators", ("O1", "O2", "O3", "O4", "O5", "O6", "O7", "O8", "O9")),
    "feasibility": ("Feasibility", ("F1", "F2", "F3")),
    "counterexamples": ("Counterexamples", ("X1", "X2", "X3")),
    "sets": ("Confidence sets and extended models", ("B1", "B2", "M1", "M2", "M3")),
    "guarantees": ("Guarantees", ("D1", "S1", "S2")),
    "learning": ("Learning", ("C0", "C1", "C2", "R1", "R2", "R3", "R4", "R5", "R6")),
}
"""Anchor → title and ids of the claims that are not about an experiment."""

EXPERIMENTS = {claim.id: str(claim.experiment) for claim in experiments.CLAIMS}
"""The claims about experiments, and the experiment each is about."""


def about(experiment: str) -> list[str]:
    """Return the claims about an experiment: the one that its figure was made for first, then what else the paper says of it.

    >>> about("three-state"), about("knight-quest")
    (['G2', 'G5', 'G6', 'G7'], ['G4'])
    """
    return [name for name, one in EXPERIMENTS.items() if one == experiment]


TITLES = {
    "experiments": "The experiments",
    "sweep": "When c is wrong",
    "claims": "The theory",
    "domains": "The models",
    "slips": "Slips of the text",
    "making": "How it was made",
}
"""Anchor → title of the sections, in their order."""

BOUND, PLANNING = "Regret against the bound", "The cost of planning"


def grouped(claims: Mapping[str, Any]) -> dict[str, tuple[str, list[str]]]:
    """Return anchor → title and those ids that there are; what belongs to no group comes last, so that nothing is hidden."""
    groups = {key: (title, [name for name in ids if name in claims]) for key, (title, ids) in GROUPS.items()}
    known = {name for _, ids in GROUPS.values() for name in ids} | set(EXPERIMENTS)
    rest = [name for name in claims if name not in known]
    return {key: group for key, group in (groups | {"others": ("Others", rest)}).items() if group[1]}


def ordered(claims: Mapping[str, Any]) -> list[str]:
    """Return the ids in the order of the page: the experiments, then group by group."""
    return [
        *(name for name in EXPERIMENTS if name in claims),
        *(name for _, ids in grouped(claims).values() for name in ids),
    ]
