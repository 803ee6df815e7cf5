"""Checkpoints as bytes."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl.errors import InputError, RunFileError
from spanrl.learning.snapshot import columns, pack, read_head, unpack

STATE: dict[str, Any] = {
    "t": 12345,
    "word": "ünï [x=1]\nnew line",
    "numbers": [1, -2.5, 0.1 + 0.2, inf, -inf, -0.0, 5e-324],
    "words": [2**64 - 1, 2**63 + 1, 0],
    "nested": {"rest": {"has_uint32": 0}, "list": [[1], []]},
    "nothing": None,
    "yes": True,
    "floats": np.array([0.1, nan, inf, -inf, -0.0, 5e-324]),
    "integers": np.array([[1, -(2**63)], [2**63 - 1, 0]]),
    "large": np.array([2**63 + 1, 2**64 - 1], dtype=np.uint64),
    "flags": np.array([True, False]),
    "small": np.array([1, 2], dtype=np.int8),
    "empty": np.zeros(0),
    "empty table": np.zeros((0, 3), dtype=np.int64),
    "scalar": np.array(2.5),
    "texts": np.array(["a", "ünï"]),
}


def assert_same_state(found: dict[str, Any], state: dict[str, Any]) -> None:
    assert found.keys() == state.keys()
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
            assert found[name].tobytes() == value.tobytes(), name
        else:
            assert repr(found[name]) == repr(value), name


def test_round_trip_to_the_bit() -> None:
    assert_same_state(unpack(pack(STATE)), STATE)


def test_nan_outside_of_arrays() -> None:
    found = unpack(pack({"episode": [nan, 3]}))["episode"]
    assert np.isnan(found[0])
    assert found[1] == 3


def test_numbers_of_numpy_become_plain_ones() -> None:
    state = {"a": np.float64(0.1), "b": np.int64(-3), "c": np.uint64(2**64 - 1), "d": np.bool_(True)}
    found = unpack(pack(state))
    assert found == {"a": 0.1, "b": -3, "c": 2**64 - 1, "d": True}
    assert [type(value) for value in found.values()] == [float, int, int, bool]


def test_an_empty_state() -> None:
    assert unpack(pack({})) == {}


@given(
    st.dictionaries(
        st.text("abcdefgh.", min_size=1, max_size=8),
        st.integers() | st.floats(allow_nan=False) | st.text() | st.none() | st.lists(st.floats(allow_nan=False)),
    ),
    st.lists(st.floats(), max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_any_state_comes_back(plain: dict[str, Any], numbers: list[float]) -> None:
    state = {**plain, "array": np.array(numbers, dtype=np.float64)}
    assert_same_state(unpack(pack(state)), state)


def test_equal_states_give_equal_bytes() -> None:
    assert pack(STATE) == pack(dict(STATE))


@pytest.mark.parametrize("flip", [1, 16, 128])
def test_every_flipped_byte_is_told(flip: int) -> None:
    data = pack(STATE)
    places = {*range(120), *np.random.default_rng(flip).integers(0, len(data), 200).tolist(), len(data) - 1}
    for place in places:
        changed = data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
        with pytest.raises(RunFileError, match=r"^here: (this is no checkpoint of version 1|the checkpoint is cut)"):
            unpack(changed, "here")


def test_every_cut_is_told() -> None:
    data = pack(STATE)
    for length in {*range(120), *np.random.default_rng(0).integers(0, len(data), 200).tolist(), len(data) - 1}:
        with pytest.raises(RunFileError, match=r"no checkpoint of version 1|the checkpoint is cut or was changed"):
            unpack(data[:length])


def test_something_behind_the_end_is_told() -> None:
    with pytest.raises(RunFileError, match="cut or was changed"):
        unpack(pack(STATE) + b"\n")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"PK\x03\x04", b"spanrl-checkpoint 2\nabc\n{}\n", b"\xff" * 500])
def test_something_else(data: bytes) -> None:
    with pytest.raises(RunFileError, match=r"^checkpoint: this is no checkpoint of version 1"):
        unpack(data)


def sealed(content: bytes) -> bytes:
    return b"spanrl-checkpoint 1\n" + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def objects() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, odd=np.array([{}], dtype=object))  # numpy pickles it; reading must refuse
    return stream.getvalue()


@pytest.mark.parametrize("arrays", [b"", b"no archive", objects()], ids=["nothing", "text", "pickle"])
def test_a_right_seal_around_something_else(arrays: bytes) -> None:
    with pytest.raises(RunFileError, match=r"^checkpoint: the checkpoint cannot be read \("):
        unpack(sealed(b'{"t": 1}\n' + arrays))


def archive(content: bytes, method: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as made:
        made.writestr("a.npy", content)
    return stream.getvalue()


def declaring(shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (archive(declaring((1_400_000_000,)), zipfile.ZIP_STORED), r"'a' declares the shape \(1400000000,\)"),
        (
            archive(declaring((10**5,)) + bytes(8 * 10**5), zipfile.ZIP_DEFLATED),
            "'a' declares 800128 bytes in a file of",
        ),
    ],
    ids=["11 GB", "packed"],
)
def test_arrays_larger_than_the_file_are_refused_before_they_take_memory(arrays: bytes, words: str) -> None:
    with pytest.raises(RunFileError, match=words):
        unpack(sealed(b'{"t": 1}\n' + arrays))


@pytest.mark.parametrize("line", [b"[" * 10**5, b"", b"{", b"\xff", b"[1, 2]", b"5"])
def test_a_right_seal_around_what_is_no_json_object(line: bytes) -> None:
    stream = io.BytesIO()
    np.savez(stream, a=np.zeros(1))
    with pytest.raises(RunFileError, match=r"^checkpoint: the checkpoint cannot be read \("):
        unpack(sealed(line + b"\n" + stream.getvalue()))


def test_arrays_of_objects_are_refused() -> None:
    with pytest.raises(InputError, match=r"'odd' must be an array of numbers; got one of objects"):
        pack({"t": 1, "odd": np.array([None, "a"], dtype=object)})


@pytest.mark.parametrize(
    ("value", "kind"), [({1, 2}, "set"), (b"bytes", "bytes"), (1 + 2j, "complex"), (object(), "object")]
)
def test_odd_values_are_refused(value: Any, kind: str) -> None:
    with pytest.raises(InputError, match=rf"must hold numbers, text, arrays, lists, .*; got {kind}\."):
        pack({"t": 1, "odd": value})


@pytest.mark.parametrize("state", [{"odd": [np.zeros(2)]}, {"odd": {"inner": np.zeros(2)}}])
def test_arrays_inside_of_lists_are_refused(state: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="got ndarray"):
        pack(state)


def test_the_head_alone(tmp_path: Path) -> None:
    data = pack(STATE)
    (tmp_path / "a.ckpt").write_bytes(data)
    head = read_head(tmp_path / "a.ckpt")
    assert head["t"] == 12345
    assert head.keys() == {name for name, value in STATE.items() if not isinstance(value, np.ndarray)}
    (tmp_path / "a.ckpt").write_bytes(data[:-100])
    assert read_head(tmp_path / "a.ckpt") == head, "arrays are not read"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is no checkpoint of version 1"),
        (b"something else\n", "is no checkpoint of version 1"),
        (b"spanrl-checkpoint 1\n", "is cut or was changed"),
        (pack(STATE)[:100], "is cut or was changed"),
    ],
)
def test_a_head_that_is_none(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "a.ckpt").write_bytes(data)
    with pytest.raises(RunFileError, match=rf"a\.ckpt {words}"):
        read_head(tmp_path / "a.ckpt")


def test_nothing_is_pickled() -> None:
    line = pack(STATE).split(b"\n", 3)[2]
    assert json.loads(line)["word"] == STATE["word"]
    assert b"pickle" not in pack(STATE)


def test_columns() -> None:
    kinds: dict[str, type[np.generic]] = {"t": np.int64, "x": np.float64, "flag": np.bool_}
    found = columns([(1, 0.5, True), (2, nan, False)], kinds)
    assert {name: column.tolist()[0] for name, column in found.items()} == {"t": 1, "x": 0.5, "flag": True}
    assert {name: column.dtype for name, column in found.items()} == {name: np.dtype(k) for name, k in kinds.items()}
    assert {name: column.shape for name, column in columns([], kinds).items()} == dict.fromkeys(kinds, (0,))


@pytest.mark.parametrize("value", [{0: 1}, (1, 2), [{"a": {1: 2}}], [np.zeros(2)]])
def test_what_json_would_change_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="dicts with text as keys; got"):
        pack({"value": value})
