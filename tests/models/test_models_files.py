"""Model files: round trips, one-step writes, no pickle, and every way a file can be wrong."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_samples import entries, random_dense, rewrite, small_ball, small_box, small_mdp

from spanrl import MDP, BoundedMDP
from spanrl.errors import ModelFileError

BOUNDED_FIELDS = (
    "pair_ptr", "action", "succ_ptr", "succ", "p_low", "p_high", "rest_high", "radius", "r_low", "r_high",
    "r_min", "r_max", "n_actions",
)  # fmt: skip


def load_or_words(path: Path) -> MDP | str:
    """Return the model of a file, or the words with which it is refused; any other error is a failure."""
    try:
        return MDP.load(path)
    except ModelFileError as error:
        return str(error)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.npz"
    small_mdp(start=[0.5, 0.5], state_names=["ä", "b c"], action_names=["go", "stay"]).save(path)
    return path


# --- round trips ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"start": [0.25, 0.75], "r_min": -3.0, "r_max": 7.5},
        {"state_names": ["ünïcödé ∞", "[red]x[/red]"], "action_names": ["a b", "c,d"]},
    ],
)
def test_mdp_round_trip(tmp_path: Path, options: dict[str, Any]) -> None:
    mdp = small_mdp(**options)
    mdp.save(tmp_path / "m.npz")
    loaded = MDP.load(tmp_path / "m.npz")
    assert loaded == mdp
    assert (loaded.state_names, loaded.action_names) == (mdp.state_names, mdp.action_names)
    assert not loaded.prob.flags.writeable


@pytest.mark.parametrize("seed", range(4))
def test_mdp_round_trip_to_the_bit(tmp_path: Path, seed: int) -> None:
    P, r, available = random_dense(np.random.default_rng(seed), S=20, A=4)
    mdp = MDP.from_dense(P, r, available=available, start=np.full(20, 0.05))
    mdp.save(str(tmp_path / "m.npz"))
    loaded = MDP.load(str(tmp_path / "m.npz"))
    assert loaded == mdp
    assert loaded.prob.tobytes() == mdp.prob.tobytes()


@pytest.mark.parametrize("make", [small_box, small_ball])
def test_bounded_round_trip(tmp_path: Path, make: Callable[[], BoundedMDP]) -> None:
    bounded = make()
    bounded.save(tmp_path / "b.npz")
    loaded = BoundedMDP.load(tmp_path / "b.npz")
    assert loaded.is_ball == bounded.is_ball
    for name in BOUNDED_FIELDS:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(bounded, name), err_msg=name)


def test_any_name_is_kept_as_given(tmp_path: Path) -> None:
    small_mdp().save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert MDP.load(tmp_path / "model") == small_mdp()


def test_no_pickle_inside(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        for name in archive.namelist():
            array = np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
            assert array.dtype.kind in "iufU", name
    assert str(entries(saved)["format"]) == "spanrl-mdp"
    assert int(entries(saved)["version"]) == 1


# --- saving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [small_mdp, small_box])
def test_saving_refuses_what_is_there(saved: Path, other: Callable[[], MDP | BoundedMDP]) -> None:
    before = saved.read_bytes()
    with pytest.raises(ModelFileError, match=r"model\.npz exists, and nothing is overwritten unasked.*overwrite=True"):
        other().save(saved)
    assert saved.read_bytes() == before
    other().save(saved, overwrite=True)
    assert type(other()).load(saved) == other()


def test_saving_refuses_a_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "link.npz").symlink_to(tmp_path / "elsewhere.npz")
    with pytest.raises(ModelFileError, match="nothing is overwritten"):
        small_mdp().save(tmp_path / "link.npz")


def test_saving_touches_nothing_that_threads_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The umask is the process's: set for a moment and put back, it stays at 0 where two threads do so at once."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was changed"))
    small_mdp().save(tmp_path / "m.npz")


def test_replacing_leaves_nothing_else(saved: Path) -> None:
    small_mdp().save(saved, overwrite=True)
    assert MDP.load(saved) == small_mdp()
    assert [path.name for path in saved.parent.iterdir()] == ["model.npz"]


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_saved_files_have_the_usual_mode(tmp_path: Path) -> None:
    small_mdp().save(tmp_path / "m.npz")
    (tmp_path / "plain").touch()
    assert (tmp_path / "m.npz").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("half", [True, False], ids=["half written", "not written"])
def test_a_failing_save_leaves_the_old_file_alone(
    saved: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, half: bool
) -> None:
    before = saved.read_bytes()

    def fail(stream: Any, **arrays: Any) -> None:
        if half:
            stream.write(b"half a file")
        raise error

    monkeypatch.setattr(np, "savez_compressed", fail)
    wanted = ModelFileError if isinstance(error, OSError) else type(error)
    with pytest.raises(wanted) as caught:
        small_mdp().save(saved, overwrite=True)
    if isinstance(error, OSError):
        assert "No space left on device" in str(caught.value)
        assert "Nothing was changed" in str(caught.value)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["model.npz"]


def test_a_failing_rename_leaves_the_old_file_alone(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    before = saved.read_bytes()
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ModelFileError, match=r"cannot write .*model.npz \(Permission denied\)"):
        small_mdp().save(saved, overwrite=True)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["model.npz"]


def test_saving_to_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"No such file or directory.*Check that the folder exists"):
        small_mdp().save(tmp_path / "none" / "m.npz")


def test_saving_over_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelFileError, match="cannot write"):
        small_mdp().save(tmp_path / "folder", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


# --- loading what is no model ---------------------------------------------------------------------------------------


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"no file .*none.npz. Give the path of a saved model"):
        MDP.load(tmp_path / "none.npz")


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"is not a model file.*[Dd]irectory"):
        MDP.load(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"hello\n", b"P = [[1.0]]\n" * 100, b"\x80\x04}\x94.", b"PK\x03\x04", b"\x00" * 64]
)
def test_other_files_are_no_models(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"m.npz is not a model file") as caught:
        MDP.load(path)
    assert "pickle" not in str(caught.value), "nobody is told to load a file unsafely"


def test_npy_is_no_model(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(ModelFileError, match=r"a.npy is not a model file. Files of models are written by save\(\)"):
        MDP.load(tmp_path / "a.npy")


@pytest.mark.parametrize(
    "arrays", [{}, {"a": np.arange(3)}, {"format": np.array("x")}, {"format": np.array("x"), "version": np.array("y")}]
)
def test_npz_of_something_else_is_no_model(tmp_path: Path, arrays: dict[str, Any]) -> None:
    np.savez(tmp_path / "o.npz", **arrays)
    with pytest.raises(ModelFileError, match=r"o.npz is not a model file"):
        MDP.load(tmp_path / "o.npz")


def test_pickled_arrays_are_not_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    np.savez(tmp_path / "o.npz", format=np.array([Trap()], dtype=object), version=np.array(1))
    with pytest.raises(ModelFileError):
        MDP.load(tmp_path / "o.npz")
    assert not (tmp_path / "sprung").exists()


def test_another_format(saved: Path) -> None:
    rewrite(saved, format=np.array("otherlib-mdp"))
    with pytest.raises(ModelFileError, match=r"is not a model file \(its format is 'otherlib-mdp'\)"):
        MDP.load(saved)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_version(saved: Path, version: int) -> None:
    rewrite(saved, version=np.array(version))
    with pytest.raises(
        ModelFileError, match=f"has format version {version}, this spanrl reads version 1. Save it again"
    ):
        MDP.load(saved)


def test_the_other_kind(saved: Path, tmp_path: Path) -> None:
    small_box().save(tmp_path / "b.npz")
    with pytest.raises(ModelFileError, match="holds a model of kind 'mdp', not 'bounded'"):
        BoundedMDP.load(saved)
    with pytest.raises(ModelFileError, match="holds a model of kind 'bounded', not 'mdp'"):
        MDP.load(tmp_path / "b.npz")


# --- loading what is damaged ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.9, 0.99])
def test_truncated(saved: Path, share: float) -> None:
    raw = saved.read_bytes()
    saved.write_bytes(raw[: int(len(raw) * share)])
    with pytest.raises(ModelFileError, match="is not a model file or is damaged"):
        MDP.load(saved)


@pytest.mark.parametrize("name", ["pair_ptr", "action", "succ_ptr", "succ", "prob", "reward", "start", "range", "n_actions"])  # fmt: skip
def test_missing_entry(saved: Path, name: str) -> None:
    rewrite(saved, **{name: None})
    with pytest.raises(ModelFileError, match=f"is damaged: '{name}' is missing. Save the model again"):
        MDP.load(saved)


def test_flipped_bits_inside_an_array(saved: Path) -> None:
    """Without compression a flip lands in the numbers themselves: the checksum of the archive tells."""
    arrays = entries(saved)
    np.savez(saved, **arrays)
    raw = bytearray(saved.read_bytes())
    at = bytes(raw).index(arrays["prob"].tobytes())
    raw[at + 5] ^= 1
    saved.write_bytes(raw)
    with pytest.raises(ModelFileError, match=r"model.npz is damaged \(.*prob"):
        MDP.load(saved)


def test_any_flipped_byte_is_refused_in_words_or_harmless(saved: Path) -> None:
    """No byte of the file, flipped, gives another model or another error."""
    mdp, raw = MDP.load(saved), saved.read_bytes()
    for at in range(0, len(raw), 7):
        broken = bytearray(raw)
        broken[at] ^= 0xFF
        saved.write_bytes(broken)
        found = load_or_words(saved)
        assert found == mdp or "model.npz" in str(found), at


@pytest.mark.parametrize("entry", ["format.npy", "version.npy", "prob.npy"])
def test_flipped_bytes_in_the_compressed_stream(saved: Path, entry: str) -> None:
    mdp = MDP.load(saved)
    with zipfile.ZipFile(saved) as archive:
        info = archive.getinfo(entry)
    raw = bytearray(saved.read_bytes())
    begin = info.header_offset + 30 + int.from_bytes(raw[info.header_offset + 26 : info.header_offset + 28], "little")
    begin += int.from_bytes(raw[info.header_offset + 28 : info.header_offset + 30], "little")
    for at in range(begin, begin + info.compress_size):
        broken = bytearray(raw)
        broken[at] ^= 0xFF
        saved.write_bytes(broken)
        found = load_or_words(saved)
        assert found == mdp or "damaged" in str(found) or "not a model file" in str(found), at


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"prob": np.full(5, 0.3)}, r"P\[s='ä', a='go'\] sums to 0.6"),
        ({"prob": np.array([0.5, 0.5, 1.0, np.nan, 0.75])}, "must be finite"),
        ({"prob": np.ones(3)}, r"prob must have shape \(5,\)"),
        ({"prob": np.array(["a"] * 5)}, "prob must be an array of numbers"),
        ({"succ": np.array([0, 1, 0, 0, 9], dtype=np.uint32)}, "successor 9"),
        ({"succ_ptr": np.array([0, 2, 1, 5])}, "succ_ptr must rise"),
        ({"succ_ptr": np.array([0, 5])}, r"succ_ptr must have shape \(4,\)"),
        ({"succ_ptr": np.array([0, 2**63 - 1, -2, 5])}, "succ_ptr must rise"),
        ({"pair_ptr": np.array([0, 1])}, r"start must have shape \(1,\)"),
        ({"pair_ptr": np.array([0, 3, 2])}, "pair_ptr must rise from 0 to the number of pairs = 3"),
        ({"pair_ptr": np.array(3)}, "pair_ptr must have shape"),
        ({"pair_ptr": np.array([0, 2, 2**60])}, "pair_ptr must rise from 0 to the number of pairs = 3"),
        ({"pair_ptr": np.array([0.0, 2.0, 3.0])}, "pair_ptr must be a one-dimensional array of integers"),
        ({"action": np.array([1, 0, 0])}, "must come after the pair before it"),
        ({"reward": np.array([0.0, 0.5, 7.0])}, "must lie in"),
        ({"range": np.array([1.0, 0.0])}, "r_min must be below r_max"),
        ({"range": np.array([1.0])}, "damaged"),
        ({"range": np.array("x")}, "damaged"),
        ({"range": np.array([0j, 1j])}, "range must be an array of numbers"),
        ({"start": np.array([0.5, 0.6])}, "start must be"),
        ({"n_actions": np.array(1)}, "number of actions must be at least 2"),
        ({"n_actions": np.array([1, 2])}, "n_actions must have shape"),
        ({"n_actions": np.array(2.0)}, "a single whole number is stored as float64"),
        ({"more": np.zeros(3)}, "it holds 'more', which no model has"),
        ({"state_names": np.array(["x"])}, "state_names must be 2 different names"),
        ({"state_names": np.array("x")}, "damaged"),
    ],
)
def test_inconsistent_arrays(saved: Path, changes: dict[str, Any], words: str) -> None:
    rewrite(saved, **changes)
    with pytest.raises(ModelFileError, match=words) as caught:
        MDP.load(saved)
    assert "model.npz is damaged" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "changes", "words"),
    [
        (small_box, {"p_low": np.full(6, 0.95)}, "p_low must not exceed p_high"),
        (small_box, {"rest_high": np.full(4, -1.0)}, "rest_high"),
        (small_box, {"r_low": np.full(4, 5.0)}, "r_low"),
        (small_box, {"radius": None}, "'radius' is missing"),
        (small_box, {"succ": np.array([1, 0, 0, 1, 2, 2])}, "listed twice"),
        (small_ball, {"radius": np.array([0.1, -0.1, 0.1])}, "radius.*must be a finite number ≥ 0"),
        (small_ball, {"radius": np.array([0.1])}, "radius must have shape"),
        (small_ball, {"p_low": np.full(5, 0.1)}, "sums to"),
    ],
)
def test_inconsistent_bounded_arrays(tmp_path: Path, make: Any, changes: dict[str, Any], words: str) -> None:
    path = tmp_path / "b.npz"
    make().save(path)
    rewrite(path, **changes)
    with pytest.raises(ModelFileError, match=words) as caught:
        BoundedMDP.load(path)
    assert "b.npz is damaged" in str(caught.value)
