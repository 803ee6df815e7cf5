"""Small specs, and how tests read them."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import pytest

from spanrl.envs.registry import make
from spanrl.errors import OptionError, SpanrlError
from spanrl.experiments.spec import (
    SpecEntry,
    read_spec,
)

SMALL = """
name = "try"
horizon = 1e3
seeds = 2
[[env]]
id = "two-state"
[[agent]]
id = "ucrl"
"""


def small(**changes: Any) -> dict[str, Any]:
    return {**tomllib.loads(SMALL), **changes}


def one(key: str, **table: Any) -> tuple[SpecEntry, ...]:
    """Return the entries of a spec with one table under ``key``."""
    spec = read_spec(small(**{key: [table]}))
    return spec.envs if key == "env" else spec.agents


def refused(data: Any, *words: str, kind: type[SpanrlError] = OptionError) -> str:
    """Read a spec that is wrong; the error is of ``kind``, one line, and has the words."""
    with pytest.raises(kind) as caught:
        read_spec(data)
    text = str(caught.value)
    assert type(caught.value) is kind
    assert "\n" not in text
    for word in words:
        assert word in text
    return text


def saved_model(path: Path) -> str:
    """Save a model and return the SHA-256 of its file."""
    make("two-state").mdp.save(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()
