"""A run: its arrays, its words, its picture; and its files, with every way they can be wrong."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spanrl import __version__
from spanrl.axes import new_axes
from spanrl.errors import InputError, MissingExtraError, OptionError, RunFileError
from spanrl.learning import files as module
from spanrl.learning.files import AUDIT, CURVE, EPISODES, check_free
from spanrl.learning.run import Run
from spanrl.tables import read_table, write_bytes, write_table

FILES = ["curve.parquet", "episodes.parquet", "meta.json"]


def make_run(*, known: bool = True, audit: bool = False, **meta: Any) -> Run:
    """Return a small run made by hand; with ``known=False`` one whose g* is not known."""
    rng = np.random.default_rng(5)
    t = np.array([1, 2, 5, 10, 100, 900, 1000], dtype=np.int64)
    regret = 0.3 * np.sqrt(t) + rng.normal(size=t.size) if known else np.full(t.size, np.nan)
    episodes: dict[str, Any] = {
        "start": np.array([0, 1, 30]),
        "gain": np.array([1.0, 0.9, 0.1 + 0.2]),
        "span": np.array([-0.0, np.nan, 5.0]),
        "sweeps": np.array([3, 17, 9]),
        "deterministic": np.array([True, False, True]),
    }
    if audit:
        episodes |= {
            "contains": np.array([True, True, False]),
            "gain_low": np.array([0.0, 0.5, 0.6]),
            "gain_high": np.array([1.0, 0.7, 0.61]),
        }
    facts = {
        "env": "three-state[delta=0.005]", "agent": "scal[span_bound=5]", "seed": 7, "horizon": 1000, "points": 100,
        "gain": 0.1 + 0.2 if known else None, "interrupted": False, "audit": audit, "r_min": 0.0, "r_max": 1 / 3,
        "n_states": 3, "n_actions": 2, "seconds": {"planning": 0.25, "simulating": 0.125, "total": 0.5},
    }  # fmt: skip
    return Run(
        t=t, reward=rng.normal(size=t.size).cumsum(), regret=regret, pseudo_regret=regret + 0.1,
        span=np.minimum(np.log(t), 5.0), n_episodes=np.array([1, 2, 2, 2, 3, 3, 3]), episodes=episodes, meta=facts | meta,
    )  # fmt: skip


def interrupted() -> Run:
    return make_run(horizon=1_000_000, interrupted=True)


def assert_same(found: Run, run: Run) -> None:
    """Every bit, NaN and −0.0 included."""
    pairs = [(getattr(found, name), getattr(run, name)) for name in CURVE]
    assert list(found.episodes) == list(run.episodes)
    pairs += [(found.episodes[name], run.episodes[name]) for name in run.episodes]
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    assert found.meta == run.meta


def seal(folder: Path, change: Callable[[dict[str, Any]], Any] = lambda content: None) -> None:
    """Bring meta.json into agreement with the tables again, after a change to its content."""
    content = json.loads((folder / "meta.json").read_bytes())
    del content["sha256"]["meta.json"]
    for name in FILES[:2]:
        content["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    change(content)
    content["sha256"]["meta.json"] = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    (folder / "meta.json").write_text(json.dumps(content))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    make_run().save(tmp_path / "run")
    return tmp_path / "run"


# --- the object -----------------------------------------------------------------------------------------------------


def test_arrays_are_frozen_and_typed() -> None:
    run = make_run(audit=True)
    for name, kind in CURVE.items():
        assert getattr(run, name).dtype == kind
        assert not getattr(run, name).flags.writeable
    assert list(run.episodes) == [*EPISODES, *AUDIT]
    for name, kind in (EPISODES | AUDIT).items():
        assert run.episodes[name].dtype == kind
        assert not run.episodes[name].flags.writeable
    with pytest.raises(FrozenInstanceError):
        run.t = run.t  # type: ignore[misc]


def test_a_run_does_not_follow_what_it_was_made_of() -> None:
    run, t = make_run(), np.arange(3)
    parts = {name: np.zeros(3) for name in CURVE} | {"t": t}
    copy = Run(**parts, episodes=run.episodes, meta=run.meta)  # type: ignore[arg-type]
    t[0] = 9
    assert copy.t.tolist() == [0, 1, 2]
    assert copy.meta is not run.meta


def test_interrupted() -> None:
    assert interrupted().interrupted is True
    assert make_run().interrupted is False


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"meta": {"env": "x"}}, r"meta must have env, agent, seed, .*; 'agent' is missing"),
        ({"episodes": {"start": np.arange(2)}}, r"episodes must have start, .*; 'deterministic' is missing"),
        ({"episodes": {name: np.zeros(1) for name in (*EPISODES, "contains")}}, "'gain_high' is missing"),
        ({"episodes": {name: np.zeros(1) for name in (*EPISODES, "colour")}}, "'colour' is too much"),
        ({"reward": np.zeros(3)}, r"arrays of the curve must be vectors of one length; got .*'reward': \(3,\)"),
        ({name: np.zeros((2, 2)) for name in CURVE}, "vectors of one length"),
        ({"episodes": {name: np.zeros(len(name)) for name in EPISODES}}, "arrays of the episodes must be vectors"),
    ],
)
def test_parts_that_do_not_fit(change: dict[str, Any], words: str) -> None:
    run = make_run()
    parts = {name: getattr(run, name) for name in CURVE} | {"episodes": run.episodes, "meta": run.meta} | change
    with pytest.raises(InputError, match=words):
        Run(**parts)


def test_str() -> None:
    run = make_run()
    lines = str(run).splitlines()
    assert lines[0] == "Run: scal[span_bound=5] on three-state[delta=0.005], seed 7"
    assert dict(line.split(maxsplit=1) for line in lines[1:]) == {
        "steps": "1,000",
        "reward": f"{run.reward[-1]:.6g}",
        "regret": f"{run.regret[-1]:.6g} ({run.regret[-1] / 1000**0.5:.3g} √t)",
        "episodes": "3",
        "span": "5",
        "seconds": "0.5 (planning 0.25, simulating 0.125)",
    }


def test_str_says_that_a_run_was_interrupted() -> None:
    assert "interrupted after 1,000 of 1,000,000 steps" in str(interrupted())
    assert "interrupted after 1,000 of 1,000,000 steps" in repr(interrupted())


def test_str_without_a_gain() -> None:
    assert "regret    unknown, as is the optimal gain\n" in str(make_run(known=False))
    assert "nan" not in str(make_run(known=False)) + repr(make_run(known=False))


def test_repr_is_one_line() -> None:
    assert repr(make_run(known=False)) == ("<Run: scal[span_bound=5] on three-state[delta=0.005], seed 7, 1,000 steps>")
    assert f"1,000 steps, regret {make_run().regret[-1]:.6g}>" in repr(make_run())


def test_a_run_without_a_step(tmp_path: Path) -> None:
    """Interrupted before the first measurement."""
    run = Run(
        **{name: np.zeros(0) for name in CURVE},  # type: ignore[arg-type]
        episodes={name: np.zeros(0) for name in EPISODES},
        meta=interrupted().meta,
    )
    assert "interrupted after 0 of 1,000,000 steps" in str(run)
    assert repr(run)
    run.plot().figure.savefig(io.BytesIO())
    run.save(tmp_path / "run")
    assert_same(Run.load(tmp_path / "run"), run)


# --- the picture ----------------------------------------------------------------------------------------------------


def test_plot_draws_both_regrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = make_run()
    ax = run.plot()
    assert [line.get_label() for line in ax.lines] == ["regret", "pseudo-regret"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), run.regret)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), run.pseudo_regret)
    assert ax.lines[1].get_linewidth() < ax.lines[0].get_linewidth()
    assert ax.get_title() == "scal[span_bound=5] on three-state[delta=0.005]"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step t", "regret")
    ax.figure.savefig(io.BytesIO())
    assert list(tmp_path.iterdir()) == []


def test_plot_draws_the_reward_where_the_gain_is_unknown() -> None:
    run = make_run(known=False)
    ax = run.plot()
    assert [line.get_label() for line in ax.lines] == ["cumulative reward (gain unknown)"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), run.reward)
    assert ax.get_ylabel() == "cumulative reward"


def test_plot_says_that_a_run_was_interrupted() -> None:
    assert interrupted().plot().get_title().endswith("\ninterrupted after 1,000 of 1,000,000 steps")


def test_plot_draws_on_given_axes() -> None:
    ax = new_axes()
    ax.set_xscale("log")
    assert make_run().plot(ax) is ax
    assert len(ax.lines) == 2


# --- saving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "run",
    [make_run(), make_run(known=False), make_run(audit=True), interrupted(), make_run(seed=2**63 - 1, env="ünï[x=1]")],
    ids=["plain", "gain unknown", "audit", "interrupted", "odd names"],
)
def test_round_trip_to_the_bit(tmp_path: Path, run: Run) -> None:
    run.save(str(tmp_path / "run"))
    found = Run.load(str(tmp_path / "run"))
    assert_same(found, run)
    found.save(tmp_path / "again")
    for name in FILES[:2]:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_exactly_three_files(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == FILES
    assert [path.name for path in saved.parent.iterdir()] == ["run"]


def test_tables_have_the_columns_of_the_design(tmp_path: Path, saved: Path) -> None:
    curve, episodes = (read_table(saved / name) for name in FILES[:2])
    assert list(curve) == ["env", "agent", "seed", "t", "reward", "regret", "pseudo_regret", "span", "n_episodes"]
    assert list(episodes) == ["env", "agent", "seed", "start", "gain", "span", "sweeps", "deterministic"]
    assert set(curve["env"]) == {"three-state[delta=0.005]"}
    assert set(curve["agent"]) == {"scal[span_bound=5]"}
    assert (curve["seed"].dtype, set(curve["seed"])) == (np.int64, {7})
    make_run(audit=True).save(tmp_path / "audited")
    assert list(read_table(tmp_path / "audited" / FILES[1]))[-3:] == ["contains", "gain_low", "gain_high"]


def test_meta_tells_what_was_run_and_by_what(saved: Path) -> None:
    from importlib.metadata import version

    content = json.loads((saved / "meta.json").read_text("utf-8"))
    assert content["id"] == "three-state[delta=0.005]/scal[span_bound=5]/007"
    assert content["format_version"] == 1
    assert content["spec"] == {
        "env": "three-state[delta=0.005]", "agent": "scal[span_bound=5]", "seed": 7, "horizon": 1000, "points": 100,
    }  # fmt: skip
    assert content["versions"] == {
        "python": ".".join(map(str, sys.version_info[:3])),
        "spanrl": __version__,
        **{name: version(name) for name in ("numpy", "numba", "polars")},
    }
    assert content["seconds"] == {"planning": 0.25, "simulating": 0.125, "total": 0.5}
    for name in FILES[:2]:
        assert content["sha256"][name] == hashlib.sha256((saved / name).read_bytes()).hexdigest()
    assert content["git"] is None or len(content["git"]) == 40


def test_tables_do_not_know_of_times_and_places(tmp_path: Path, saved: Path) -> None:
    other = make_run(seconds={"planning": 9.0, "simulating": 9.0, "total": 99.0})
    other.save(tmp_path / "some" / "where" / "else")
    for name in FILES[:2]:
        assert (saved / name).read_bytes() == (tmp_path / "some" / "where" / "else" / name).read_bytes()


def test_numpy_numbers_in_meta(tmp_path: Path) -> None:
    make_run(seed=np.int64(3), gain=np.float64(0.1), interrupted=np.bool_(False)).save(tmp_path / "run")
    meta = Run.load(tmp_path / "run").meta
    assert (meta["seed"], meta["gain"], meta["interrupted"]) == (3, 0.1, False)


def test_meta_that_json_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"meta must hold numbers, text, lists and dicts alone; got set"):
        make_run(note={1}).save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_saved_files_have_the_usual_modes(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert saved.stat().st_mode == (tmp_path / "folder").stat().st_mode
    assert {(saved / name).stat().st_mode for name in FILES} == {(tmp_path / "file").stat().st_mode}


def test_parents_are_made_and_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    make_run().save(tmp_path / "a" / "b")
    make_run().save(tmp_path / "c" / "d" / "e")
    assert_same(Run.load(tmp_path / "a" / "b"), Run.load(tmp_path / "c" / "d" / "e"))


def test_a_link_to_an_empty_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    make_run().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in (tmp_path / "real").iterdir()) == FILES


def test_a_long_name(tmp_path: Path) -> None:
    make_run().save(tmp_path / ("ü" * 127))
    assert_same(Run.load(tmp_path / ("ü" * 127)), make_run())


@pytest.mark.parametrize("use", [check_free, lambda path: make_run().save(path)], ids=["asked before", "save"])
class TestRefusal:
    """What is refused before anything is written; the command line asks the same before a run starts."""

    def test_a_folder_that_is_not_empty(self, tmp_path: Path, use: Callable[[Path], object]) -> None:
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / ".hidden").write_text("mine")
        with pytest.raises(OptionError, match=r"folder .*full is not empty, and nothing is overwritten") as caught:
            use(tmp_path / "full")
        assert "\n" not in str(caught.value)
        assert (tmp_path / "full" / ".hidden").read_text() == "mine"
        assert [path.name for path in tmp_path.rglob("*")] == ["full", ".hidden"]

    def test_a_file(self, tmp_path: Path, use: Callable[[Path], object]) -> None:
        (tmp_path / "file").write_text("mine")
        with pytest.raises(OptionError, match=r"file is a file, and a run is saved as a folder"):
            use(tmp_path / "file")
        assert (tmp_path / "file").read_text() == "mine"

    def test_below_a_file(self, tmp_path: Path, use: Callable[[Path], object]) -> None:
        (tmp_path / "file").write_text("mine")
        with pytest.raises(OptionError, match=r"a/b cannot be made, since .*file is a file"):
            use(tmp_path / "file" / "a" / "b")

    def test_a_name_too_long(self, tmp_path: Path, use: Callable[[Path], object]) -> None:
        with pytest.raises(OptionError, match=r"cannot be used \(File name too long\). Give a new folder"):
            use(tmp_path / ("x" * 300))

    def test_no_permission(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Path], object]
    ) -> None:
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        with pytest.raises(OptionError, match=r"a/b cannot be made, since .* may not be written to"):
            use(tmp_path / "a" / "b")
        assert list(tmp_path.iterdir()) == []

    def test_without_polars(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Path], object]
    ) -> None:
        monkeypatch.setitem(sys.modules, "polars", None)
        with pytest.raises(MissingExtraError, match=r"pip install polars .*\.\[experiments\]"):
            use(tmp_path / "run")
        assert list(tmp_path.iterdir()) == []


def test_what_is_free_stays_untouched(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert check_free(tmp_path / "empty") == tmp_path.resolve() / "empty"
    assert check_free(str(tmp_path / "a" / "b")) == tmp_path.resolve() / "a" / "b"
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("place", ["sync_folder", "write_bytes", "rename"])
def test_a_failing_save_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, place: str
) -> None:
    def fail(path: Path, *_: Any) -> None:
        if place == "write_bytes":
            path.write_bytes(b"half a file")
        raise error

    monkeypatch.setattr(os if place == "rename" else module, place, fail)
    wanted = RunFileError if isinstance(error, OSError) else type(error)
    with pytest.raises(wanted) as caught:
        make_run().save(tmp_path / "run")
    if isinstance(error, OSError):
        assert "cannot write" in str(caught.value)
        assert "(No space left on device). Nothing was saved." in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", [None, 3])
def test_what_is_no_path(folder: Any) -> None:
    with pytest.raises(OptionError, match="save: the folder must be a path"):
        make_run().save(folder)
    with pytest.raises(OptionError, match="load: the folder must be a path"):
        Run.load(folder)


def test_a_folder_filled_meanwhile_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(path: Path, data: bytes) -> None:
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / "other").touch()
        write_bytes(path, data)

    monkeypatch.setattr(module, "write_bytes", busy)
    with pytest.raises(RunFileError, match=r"cannot write .*run \(Directory not empty\)"):
        make_run().save(tmp_path / "run")
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "other"]


# --- git ------------------------------------------------------------------------------------------------------------


def git(folder: Path, *argv: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


def test_git_hash_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    git(tmp_path, "init", "-q")
    assert module.git_hash(tmp_path) is None, "nothing is committed yet"
    module.git_hash.cache_clear()
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert module.git_hash(tmp_path) == git(tmp_path, f"--git-dir={tmp_path}/.git", "rev-parse", "HEAD")
    (tmp_path / "inside").mkdir()
    assert module.git_hash(tmp_path / "inside") is None, "an installed package is no part of the checkout around it"


def test_git_hash_never_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("no process is started without .git")

    monkeypatch.setattr(subprocess, "run", forbidden)
    assert module.git_hash(tmp_path / "none") is None

    def no_git(*_: Any, **__: Any) -> None:
        raise FileNotFoundError("git")

    (tmp_path / ".git").touch()
    monkeypatch.setattr(subprocess, "run", no_git)
    assert module.git_hash(tmp_path) is None


# --- loading what is no run -----------------------------------------------------------------------------------------


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"none/meta.json is missing. Give the folder of a saved run"):
        Run.load(tmp_path / "none")


def test_a_file_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFileError, match=r"file/meta.json cannot be read \(Not a directory\)"):
        Run.load(tmp_path / "file")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(RunFileError, match=rf"{name} is missing"):
        Run.load(saved)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("keep", [0, 0.5, 0.99])
def test_a_cut_file(saved: Path, name: str, keep: float) -> None:
    data = (saved / name).read_bytes()
    (saved / name).write_bytes(data[: int(keep * len(data))])
    with pytest.raises(RunFileError, match=rf"{name} is (cut or was changed|not JSON)"):
        Run.load(saved)


@pytest.mark.parametrize("name", FILES[:2])
def test_every_changed_byte_of_a_table_is_seen(saved: Path, name: str) -> None:
    data = (saved / name).read_bytes()
    for place in np.linspace(0, len(data) - 1, 40).astype(int):
        (saved / name).write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with pytest.raises(RunFileError, match=rf"{name} is cut or was changed \(its SHA-256 is not that in meta.json"):
            Run.load(saved)


@pytest.mark.parametrize("flip", [1, 4, 32, 128])
def test_every_changed_byte_of_meta_is_seen_or_means_nothing(saved: Path, flip: int) -> None:
    data = (saved / "meta.json").read_bytes()
    refused = []
    for place in range(0, len(data), 3):
        (saved / "meta.json").write_bytes(data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :])
        try:
            found = Run.load(saved)
        except RunFileError as error:
            refused.append(str(error))
        else:
            assert_same(found, make_run())
    assert len(refused) > len(data) // 6
    assert all("meta.json" in words and "\n" not in words for words in refused)


def test_tables_of_another_run(saved: Path, tmp_path: Path) -> None:
    make_run(seed=8).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "curve.parquet", saved / "curve.parquet")
    with pytest.raises(RunFileError, match=r"curve.parquet is cut or was changed"):
        Run.load(saved)


@pytest.mark.parametrize("content", [b"hello", b"\xff\xfe\x00", b"{", b"[" * 100_000])
def test_meta_that_is_not_json(saved: Path, content: bytes) -> None:
    (saved / "meta.json").write_bytes(content)
    with pytest.raises(RunFileError, match=r"meta.json is not JSON; it is damaged or of another program"):
        Run.load(saved)


@pytest.mark.parametrize("content", ["{}", "[1]", "null", '{"name": "other"}'])
def test_json_that_is_not_of_a_run(saved: Path, content: str) -> None:
    (saved / "meta.json").write_text(content)
    with pytest.raises(RunFileError, match=r"meta.json does not describe a run \(it has no format_version\)"):
        Run.load(saved)


def test_another_format_version(saved: Path) -> None:
    seal(saved, lambda content: content.update(format_version=2))
    with pytest.raises(RunFileError, match=r"meta.json has format version 2, this spanrl reads version 1"):
        Run.load(saved)


@pytest.mark.parametrize(
    "content",
    [
        '{"format_version": 1}',
        '{"format_version": 1, "sha256": 5}',
        '{"format_version": 1, "sha256": {"meta.json": "0"}, "gain": NaN}',
        '{"format_version": 1, "sha256": {"meta.json": "0"}, "gain": 1e999}',
        '{"format_version": 1, "sha256": {"meta.json": "0"}, "gain": "\\ud800"}',
    ],
)
def test_meta_without_its_seal(saved: Path, content: str) -> None:
    (saved / "meta.json").write_text(content)
    with pytest.raises(RunFileError, match=r"meta.json was changed after it was saved"):
        Run.load(saved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content.pop("spec"), r"meta.json does not describe a run \(.*missing required field `spec`"),
        (lambda content: content.update(run=5), r"meta.json does not describe a run \(Expected `object`, got `int`"),
        (lambda content: content["run"].pop("r_max"), r"meta.json does not describe a run \(.*missing .*`r_max`"),
        (
            lambda content: content["spec"].update(horizon="1e6"),
            r"describe a run \(Expected `int`, got `str` - at `\$.spec.horizon`",
        ),
        (lambda content: content["spec"].update(seed=-1), r"describe a run \(Expected `int` >= 0 - at `\$.spec.seed`"),
        (lambda content: content["run"].update(gain=[1.0]), r"describe a run \(Expected `float \| null`"),
        (lambda content: content["seconds"].update(total=None), r"describe a run \(Expected `float`, got `null`"),
        (lambda content: content.update(versions={"numpy": 2}), r"describe a run \("),
        (lambda content: content.update(id=None), r"describe a run \("),
        (lambda content: content["sha256"].pop("curve.parquet"), "curve.parquet is cut or was changed"),
    ],
)
def test_meta_of_another_shape(saved: Path, change: Callable[[dict[str, Any]], Any], words: str) -> None:
    seal(saved, change)
    with pytest.raises(RunFileError, match=words):
        Run.load(saved)


def rewrite(path: Path, **changes: Any) -> None:
    """Write a table again with some columns changed; None drops one."""
    table = {**read_table(path), **changes}
    write_table(path, {name: values for name, values in table.items() if values is not None})


@pytest.mark.parametrize("name", FILES[:2])
@pytest.mark.parametrize("changes", [{"span": None}, {"colour": 1}, {"seed": None}])
def test_wrong_columns(saved: Path, name: str, changes: dict[str, Any]) -> None:
    rewrite(saved / name, **changes)
    seal(saved)
    with pytest.raises(RunFileError, match=rf"{name} must have the columns env, agent, seed, .*; got env, "):
        Run.load(saved)


def test_half_of_the_audit(saved: Path) -> None:
    rewrite(saved / "episodes.parquet", contains=True)
    seal(saved)
    with pytest.raises(RunFileError, match=r"columns .* contains, gain_low, gain_high; got .* deterministic, contains"):
        Run.load(saved)


@pytest.mark.parametrize(("name", "column"), [("curve.parquet", "t"), ("episodes.parquet", "sweeps")])
def test_columns_of_another_type(saved: Path, name: str, column: str) -> None:
    rewrite(saved / name, **{column: 0.5})
    seal(saved)
    with pytest.raises(RunFileError, match=rf"{name} must hold int64 in column '{column}'; got float64"):
        Run.load(saved)


def test_a_table_that_is_none_under_a_right_seal(saved: Path) -> None:
    (saved / "curve.parquet").write_bytes(b"hello")
    seal(saved)
    with pytest.raises(RunFileError, match=r"curve.parquet is damaged or no Parquet file"):
        Run.load(saved)


def test_other_files_beside_do_not_matter(saved: Path) -> None:
    (saved / "notes.txt").write_text("good one")
    assert_same(Run.load(saved), make_run())


def test_a_run_needs_no_compiler() -> None:
    code = (
        "import sys, spanrl.learning.run;"
        "print([m for m in ('numba', 'scipy', 'polars', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
