"""The claims of the paper that software can check, each with its checker.

:func:`all_claims` gives them in the order of the paper's argument; :func:`expected_verdicts` reads the committed table.
"""

from __future__ import annotations

import tomllib
from importlib import import_module
from importlib.resources import files

from spanrl.paper.claims.base import PAPER, QUICK, SCALES, SMOKE, CheckResult, Claim, Scale

_MODULES = (
    "evaluation",
    "constrained",
    "truncation",
    "span_operator",
    "feasibility",
    "counterexamples",
    "sets",
    "guarantees",
    "confidence",
    "optimism",
    "regret",
    "behaviour",
    "experiments",
)

__all__ = ["PAPER", "QUICK", "SCALES", "SMOKE", "CheckResult", "Claim", "Scale", "all_claims", "expected_verdicts"]


def all_claims() -> tuple[Claim, ...]:
    """Return every claim, in file order."""
    return tuple(claim for name in _MODULES for claim in import_module(f"spanrl.paper.claims.{name}").CLAIMS)


def expected_verdicts() -> dict[str, dict[str, str]]:
    """Return the committed table: id → verdict, and the reason where it is not ``holds``."""
    return tomllib.loads(files("spanrl.paper").joinpath("expected.toml").read_text(encoding="utf-8"))
