"""Model files of a few kB that ask for more than they hold: refused before they take memory."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from model_samples import rewrite, small_ball, small_box, small_mdp

from spanrl import MDP, BoundedMDP
from spanrl.errors import ModelFileError


class Hostile(NamedTuple):
    """A file of a few kB: changed arrays, or members packed by hand."""

    arrays: dict[str, Any]
    members: dict[str, tuple[bytes, int]]
    words: str


def npy(shape: tuple[int, ...], dtype: str, content: bytes = b"") -> bytes:
    """Return an array file that declares ``shape`` and holds ``content``."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue() + content


STORED, DEFLATED, LZMA = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA
HOSTILE = {
    "2**31 labels": Hostile({"n_actions": np.array(2**31)}, {}, "the number of actions must be at most 1000000; got"),
    "2**53 labels": Hostile({"n_actions": np.array(2**53)}, {}, "the number of actions must be at most 1000000; got"),
    "3e8 labels": Hostile({"n_actions": np.array(3e8)}, {}, "a single whole number is stored as float64"),
    "the last of 2**40": Hostile({"action": np.array([0, 1, 2**40])}, {}, "actions must be numbered below 1000000"),
    "10**9 pairs": Hostile({"pair_ptr": np.array([0, 2, 10**9])}, {}, "pair_ptr must rise from 0 to the number of pairs = 3"),
    "a bomb nobody knows": Hostile({"bomb": np.zeros(10**6)}, {}, "it holds 'bomb', which no model has"),
    "a bomb that is known": Hostile({"prob": np.zeros(10**6)}, {}, r"prob must have shape \(5,\)"),
    "a long format": Hostile({"format": np.array("spanrl-mdp" + "x" * 10**6)}, {}, "is not a model file"),
    "a shape of nothing": Hostile({}, {"prob": (npy((10**12,), "<f8"), STORED)}, "declares the shape"),
    "a size of nothing": Hostile({}, {"state_names": (npy((10**12,), "<U0"), STORED)}, "declares the type <U0"),
    "a negative shape": Hostile({}, {"prob": (npy((-1, -5), "<f8", bytes(40)), STORED)}, "declares the type float64"),
    "a record": Hostile({}, {"prob": (npy((5,), "V8", bytes(40)), STORED)}, "prob must be an array of numbers"),
    "a pickle": Hostile({}, {"prob": (npy((5,), "|O", bytes(40)), STORED)}, "declares the type object"),
    "a better packer": Hostile({}, {"prob": (npy((10**6,), "<f8", bytes(8 * 10**6)), LZMA)}, "declares 8000128 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_what_cannot_be_is_refused_before_it_takes_memory(tmp_path: Path, case: str) -> None:
    hostile, saved = HOSTILE[case], tmp_path / "model.npz"
    small_mdp(start=[0.5, 0.5], state_names=["ä", "b c"], action_names=None).save(saved)
    rewrite(saved, **hostile.arrays, **dict.fromkeys(hostile.members))
    with zipfile.ZipFile(saved, "a") as archive:
        for name, (content, method) in hostile.members.items():
            archive.writestr(f"{name}.npy", content, method)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=hostile.words) as caught:
            MDP.load(saved)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()
    assert "model.npz" in str(caught.value)


def test_actions_that_no_state_has_may_be_declared_where_tables_stay_small(tmp_path: Path) -> None:
    small_mdp(action_names=None).save(tmp_path / "m.npz")
    rewrite(tmp_path / "m.npz", n_actions=np.array(50))
    assert MDP.load(tmp_path / "m.npz").n_actions == 50
    P, available = np.ones((1, 5, 1)), np.array([[True, False, False, False, False]])
    MDP.from_dense(P, np.zeros((1, 5)), available=available).save(tmp_path / "m.npz", overwrite=True)
    assert MDP.load(tmp_path / "m.npz").n_actions == 5


@pytest.mark.parametrize("n_actions", [3 * 10**8, 2**40, 2**53])
@pytest.mark.parametrize("make", [small_box, small_ball])
def test_bounded_files_bound_their_labels_too(tmp_path: Path, make: Callable[[], BoundedMDP], n_actions: int) -> None:
    make().save(tmp_path / "b.npz")
    rewrite(tmp_path / "b.npz", n_actions=np.array(n_actions))
    with pytest.raises(ModelFileError, match=f"the number of actions must be at most 1000000; got {n_actions}"):
        BoundedMDP.load(tmp_path / "b.npz")
