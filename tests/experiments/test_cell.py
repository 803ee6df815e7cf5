"""A cell that is handed a forged checkpoint says so and begins anew: its tables are those of a run that never stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spanrl import learn
from spanrl.experiments.cell import compute
from spanrl.experiments.driver import job_of
from spanrl.experiments.spec import Spec, SpecEntry
from spanrl.learning.snapshot import pack, unpack


class Listener:
    """Who only remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.resumed = False

    def moved(self, t: int, resumed: bool = False) -> None:
        self.resumed |= resumed

    def keep(self, checkpoint: bytes) -> None:
        raise AssertionError("the cell is short")

    def say(self, line: str) -> None:
        self.said.append(line)

    def wants_stop(self) -> bool:
        return False


def computed(horizon: int, checkpoint: bytes | None) -> tuple[dict[str, bytes], bytes, Listener]:
    spec = Spec("one", horizon, 10, (0,), (SpecEntry("three-state", "three-state"),), (SpecEntry("ucrl", "ucrl"),))
    listener = Listener()
    files, kept = compute(job_of(spec.cells()[0], spec), checkpoint, listener, tell_every=1e9, keep_every=1e9)
    assert kept is not None
    return files, kept, listener


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    return unpack(computed(300, None)[1])


def wanted() -> dict[str, bytes]:
    return learn("three-state", "ucrl", horizon=600, points=10, seed=0).to_files()


def test_a_good_checkpoint_is_resumed(state: dict[str, Any]) -> None:
    files, _, listener = computed(600, pack(state))
    assert listener.resumed
    assert listener.said == []
    assert files["curve.parquet"] == wanted()["curve.parquet"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"versions": 5}, "checkpoints were written with other versions"),
        ({"versions": np.zeros(3)}, "checkpoints were written with other versions"),
        ({"horizon_was_read": "yes"}, "'horizon_was_read' must be true or false; got 'yes'. The cell begins anew."),
        ({"resumed_at": 5}, "'resumed_at' must be a list of whole numbers in 0..300; got 5. The cell begins anew."),
        ({"resumed_at": [10**9]}, "'resumed_at' must be a list of whole numbers in 0..300"),
        ({"learner.plan.pairs": np.full(6, 10**9)}, "'plan.pairs' must hold possible values"),
        ({"tally": np.zeros(0, dtype=np.uint8)}, "'tally' must be an array of int64"),
    ],
)
def test_a_forged_one_is_named_and_done_without(state: dict[str, Any], change: dict[str, Any], words: str) -> None:
    files, _, listener = computed(600, pack(state | change))
    assert not listener.resumed
    (line,) = listener.said
    assert words in line
    for name in ("curve.parquet", "episodes.parquet"):
        assert files[name] == wanted()[name]
