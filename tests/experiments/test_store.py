"""The directory of an experiment: who may write to it, what is refused, and that every file appears whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from experiment_samples import FILES, reseal, tiny, tiny_spec, tree, wait_until

from spanrl import learn
from spanrl.errors import DirectoryInUseError, OptionError, RunFileError
from spanrl.experiments import store as module
from spanrl.experiments.results import load_results
from spanrl.experiments.spec import Cell, load_spec, read_spec
from spanrl.experiments.store import Store
from spanrl.learning.session import Session
from spanrl.learning.snapshot import pack


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return an open store of the tiny experiment."""
    one = Store(tmp_path / "out")
    one.open(tiny_spec())
    yield one
    one.close()


def files_of(cell: Cell, horizon: int = 2000) -> dict[str, bytes]:
    return learn(cell.env.id, cell.agent.id, horizon=horizon, seed=cell.seed, points=10).to_files()


def first_cell() -> Cell:
    return tiny_spec().cells()[0]


def adopted(store: Store, cell: Cell, horizon: int = 2000) -> Path:
    """Put a finished cell into the store."""
    store.adopt(cell.folder, store.write_temporary(files_of(cell, horizon)))
    return store.cell_folder(cell.folder)


# --- opening --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["new", "a/b/c"])
def test_a_new_folder_is_made(tmp_path: Path, where: str) -> None:
    store = Store(tmp_path / where)
    store.open(tiny_spec())
    assert load_spec(tmp_path / where / "spec.toml") == tiny_spec()
    assert store.lock.holder() is not None
    store.close()
    assert sorted(path.name for path in (tmp_path / where).iterdir()) == ["lock", "spec.toml"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.open(tiny_spec())
    store.close()
    assert (tmp_path / "spec.toml").exists()


def test_what_a_killed_driver_leaves_before_its_spec_is_taken(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "half").touch()
    store = Store(tmp_path)
    store.open(tiny_spec())
    store.close()
    assert not (tmp_path / "tmp").exists()


@pytest.mark.parametrize("name", ["thesis.tex", "cells", ".hidden"])
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    for use in (Store(tmp_path).check, Store(tmp_path).open):
        with pytest.raises(OptionError, match=r"is no experiment of ours and not an empty folder\. Give a new folder"):
            use(tiny_spec())
    assert tree(tmp_path) == {name: b"mine"}


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OptionError, match=r"file is no experiment of ours and not an empty folder"):
        Store(tmp_path / "file").open(tiny_spec())
    assert (tmp_path / "file").read_text() == "mine"


def test_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OptionError, match=r"file/out cannot be used \(Not a directory\)\. Give another --out"):
        Store(tmp_path / "file" / "out").open(tiny_spec())


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OptionError, match=r"out cannot be used \(Permission denied\)\. Give another --out"):
        Store(tmp_path / "out").open(tiny_spec())
    assert list(tmp_path.iterdir()) == []


def test_a_spec_that_cannot_be_written_gives_the_lock_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes, **_: Any) -> None:
        raise OSError(28, "No space left on device")

    store = Store(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_bytes", full)
        with pytest.raises(OptionError, match=r"cannot be used \(No space left on device\)"):
            store.open(tiny_spec())
    assert store.lock.holder() is None
    store.open(tiny_spec())
    store.close()


def test_a_directory_in_use(store: Store) -> None:
    before = tree(store.dir)
    with pytest.raises(DirectoryInUseError, match="in use by another spanrl run"):
        Store(store.dir).open(tiny_spec())
    assert tree(store.dir) == before


def test_the_same_spec_again(store: Store) -> None:
    adopted(store, first_cell())
    store.close()
    before = tree(store.dir, but=("lock",))
    store.open(tiny_spec())
    assert tree(store.dir, but=("lock",)) == before


@pytest.mark.parametrize(
    "more",
    [
        {"seeds": 3},
        {"seeds": [5, 0, 1]},
        {"horizon": 3000},
        {"env": [{"id": "riverswim"}, *tiny()["env"]]},
        {"agent": [*reversed(tiny()["agent"]), {"id": "ucrl2"}]},
    ],
)
def test_a_spec_with_more_takes_the_place_of_the_old_one(store: Store, more: dict[str, Any]) -> None:
    store.close()
    store.open(tiny_spec(**more))
    assert load_spec(store.dir / "spec.toml") == tiny_spec(**more)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"name": "large"}, "name: tiny there, large here"),
        ({"points": 20}, "points: 10 there, 20 here"),
        ({"horizon": 1000}, "horizon: 2000 there, only 1000 here"),
        ({"seeds": 1}, "seeds missing here: 1"),
        ({"env": tiny()["env"][:1]}, "envs missing here: two-state"),
        ({"agent": tiny()["agent"][:1]}, "agents missing here: ucrl"),
        (
            {"agent": [{"id": "scal[span_bound=2]", "label": "new"}, {"id": "ucrl"}]},
            r"label of agent scal\[span_bound=2\]: 'SCAL' there, 'new' here",
        ),
        ({"name": "large", "points": 20, "seeds": [7]}, "name: .*; points: .*; seeds missing here: 0, 1"),
    ],
)
def test_another_spec_is_refused_with_the_difference(store: Store, other: dict[str, Any], words: str) -> None:
    adopted(store, first_cell())
    store.close()
    before = tree(store.dir)
    for use in (Store(store.dir).check, Store(store.dir).open):
        with pytest.raises(OptionError, match=rf"holds another experiment: {words}\. Seeds, entries .* may be added"):
            use(tiny_spec(**other))
    assert tree(store.dir) == before
    assert store.lock.holder() is None


def test_a_spec_file_that_is_damaged(store: Store) -> None:
    store.close()
    (store.dir / "spec.toml").write_text(f"{tiny_spec().to_toml()}[[agent")
    with pytest.raises(OptionError, match=r"spec\.toml: not TOML"):
        Store(store.dir).open(tiny_spec())


# --- the spec ---------------------------------------------------------------------------------------------------------


def edit(store: Store, old: str, new: str) -> None:
    path = store.dir / "spec.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [('"0:2"', '"0:1"'), ('"0:2"', '"0:3"'), ("horizon = 2000", "horizon = 1000"), ("points = 10", "points = 20"),
     ('id = "ucrl"', 'id = "ucrl2"'), ('"tiny"', '"other"')],
)  # fmt: skip
def test_a_spec_that_was_edited_is_noticed(store: Store, old: str, new: str) -> None:
    adopted(store, first_cell())
    store.close()
    edit(store, old, new)
    for use in (lambda: Store(store.dir).check(tiny_spec()), lambda: load_results(store.dir)):
        with pytest.raises(
            OptionError,
            match=r"spec\.toml: it was changed after spanrl run wrote it; labels and paths of models alone may",
        ):
            use()


def test_labels_may_be_edited(store: Store) -> None:
    store.close()
    edit(store, 'label = "SCAL"', 'label = "Mine"')
    assert load_results(store.dir).agents[0].label == "Mine"


def test_a_spec_without_a_seal_is_taken(store: Store) -> None:
    """Earlier versions wrote none."""
    store.close()
    path = store.dir / "spec.toml"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "sealed" not in line))
    store.open(tiny_spec())
    assert path.read_text() == "".join(lines)


def test_a_lost_spec_is_restored_by_the_same_command(store: Store) -> None:
    adopted(store, first_cell())
    store.close()
    before = tree(store.dir)
    (store.dir / "spec.toml").unlink()
    with pytest.raises(
        RunFileError, match=r"It has lost its spec\.toml: spanrl run with the original spec and this --out"
    ):
        load_results(store.dir)
    store.open(tiny_spec())
    store.close()
    assert tree(store.dir) == before
    assert len(load_results(store.dir).missing) == 7


def test_cells_that_say_nothing_of_use_do_not_stand_for_a_spec(store: Store) -> None:
    folder = adopted(store, first_cell())
    store.close()
    (store.dir / "spec.toml").unlink()
    reseal(folder, lambda content: content["spec"].update(seed="0"))
    with pytest.raises(OptionError, match="is no experiment of ours and not an empty folder"):
        Store(store.dir).open(tiny_spec())


def test_a_lost_spec_is_restored_from_a_checkpoint_alone(store: Store) -> None:
    store.write_checkpoint(first_cell().folder, pack({"t": 1}))
    store.close()
    (store.dir / "spec.toml").unlink()
    store.open(tiny_spec())
    assert load_spec(store.dir / "spec.toml") == tiny_spec()


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"points": 20}, "points: 10 there, 20 here"),
        ({"horizon": 1000}, "horizon: 2000 there, only 1000 here"),
        ({"seeds": [1]}, "seeds missing here: 0"),
        ({"env": tiny()["env"][1:]}, r"envs missing here: three-state\[delta=0.01\]"),
        ({"agent": tiny()["agent"][1:]}, r"agents missing here: scal\[span_bound=2\]"),
    ],
)
def test_a_lost_spec_is_not_replaced_by_another(store: Store, other: dict[str, Any], words: str) -> None:
    adopted(store, first_cell())
    store.close()
    (store.dir / "spec.toml").unlink()
    before = tree(store.dir)
    with pytest.raises(OptionError, match=rf"holds another experiment: {words}\."):
        Store(store.dir).open(tiny_spec(**other))
    assert tree(store.dir) == before


def test_a_folder_with_more_than_cells_has_not_lost_a_spec(store: Store) -> None:
    adopted(store, first_cell())
    store.close()
    (store.dir / "spec.toml").unlink()
    (store.dir / "thesis.tex").touch()
    with pytest.raises(OptionError, match="is no experiment of ours and not an empty folder"):
        Store(store.dir).open(tiny_spec())


def test_closing_leaves_nothing_half_written(store: Store) -> None:
    store.temporary().write_bytes(b"half")
    store.close()
    assert not (store.dir / "tmp").exists()
    assert store.lock.holder() is None
    store.close()


# --- cells ----------------------------------------------------------------------------------------------------------


def test_a_cell_that_is_adopted(store: Store) -> None:
    cell = first_cell()
    assert store.finished_horizon(cell) is None
    store.write(f"failed/{cell.folder}.txt", b"once\n")
    folder = adopted(store, cell)
    assert folder == store.dir / "cells" / "three-state--delta-0.01" / "scal--span_bound-2" / "000"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert store.finished_horizon(cell) == 2000
    assert not store.failure(cell.folder).exists(), "it has not failed after all"
    assert list((store.dir / "tmp").iterdir()) == []


def test_a_longer_cell_takes_the_place_of_a_shorter_one(store: Store) -> None:
    cell = first_cell()
    adopted(store, cell, 500)
    assert store.finished_horizon(cell) == 500
    folder = adopted(store, cell)
    wanted = files_of(cell)
    assert {name: (folder / name).read_bytes() for name in FILES[:2]} == {name: wanted[name] for name in FILES[:2]}
    assert store.finished_horizon(cell) == 2000
    store.close()
    assert len(list(store.dir.rglob("curve.parquet"))) == 1


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["flip", "cut", "delete"])
def test_a_damaged_cell_is_told(store: Store, name: str, damage: str) -> None:
    path = adopted(store, first_cell()) / name
    data = path.read_bytes()
    middle = data.index(b'"seed": 0') + 8 if name == "meta.json" else len(data) // 2
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(data[:middle] + (bytes([data[middle] ^ 1]) + data[middle + 1 :] if damage == "flip" else b""))
    with pytest.raises(RunFileError, match=rf"{name} (is missing|is cut or was|was changed|is not JSON)"):
        store.finished_horizon(first_cell())


def test_a_cell_in_the_place_of_another(store: Store) -> None:
    first, second = tiny_spec().cells()[:2]
    store.adopt(second.folder, store.write_temporary(files_of(first)))
    with pytest.raises(
        RunFileError, match=r"holds three-state\[delta=0\.01\]/scal\[span_bound=2\]/000, not three-state.*/ucrl/000"
    ):
        store.finished_horizon(second)


def test_what_is_set_aside_is_taken_for_nothing(store: Store) -> None:
    cell = first_cell()
    contents = []
    for seconds in range(3):
        folder = adopted(store, cell)
        (folder / "curve.parquet").write_bytes(b"damage %d" % seconds)
        contents.append(tree(folder))
        aside = store.set_aside(folder)
        assert not folder.exists()
        assert aside.parent == store.dir / "set-aside" / "cells" / Path(cell.folder).parent
        assert tree(aside) == {f"{name}.damaged": data for name, data in contents[-1].items()}
    assert len(list((store.dir / "set-aside").rglob("curve.parquet.damaged"))) == 3, "nothing is overwritten"
    assert list(store.dir.rglob("*.parquet")) == []
    assert store.finished_horizon(cell) is None


def test_a_checkpoint_that_is_set_aside(store: Store) -> None:
    path = store.checkpoint("a/b/000")
    for content in (b"first", b"second"):
        store.write_checkpoint("a/b/000", content)
        aside = store.set_aside(path)
        assert aside.read_bytes() == content
        assert aside.name.endswith(".damaged")
        assert not path.exists()
    assert sorted(tree(store.dir / "set-aside").values()) == [b"first", b"second"]


def test_states(store: Store) -> None:
    spec = tiny_spec()
    cells = spec.cells()
    adopted(store, cells[0])
    adopted(store, cells[1], 500)
    store.write_checkpoint(cells[1].folder, b"any")
    store.write_checkpoint(cells[2].folder, b"any")
    store.write(f"failed/{cells[3].folder}.txt", b"no luck\n\nmore")
    store.write_checkpoint(cells[3].folder, b"any")
    wanted = ["finished", "begun", "begun", "failed", *["waiting"] * 4]
    assert list(store.states(spec).items()) == [(cell.id, state) for cell, state in zip(cells, wanted, strict=True)]
    assert store.reason(cells[3].folder) == "no luck"
    assert store.reason(cells[0].folder) == ""
    assert store.states(tiny_spec(horizon=3000))[cells[0].id] == "waiting"


def test_the_time_of_a_checkpoint(store: Store) -> None:
    from spanrl.agents.registry import make_agent
    from spanrl.learning.worlds import as_world

    one = Session(as_world("two-state"), make_agent("ucrl"), "ucrl", horizon=500, seed=0, points=10)
    one.run(0.5, lambda t: None)
    store.write_checkpoint("a/b/000", pack(one.state()))
    assert store.checkpoint_time("a/b/000") == 500
    store.write_checkpoint("a/b/000", b"damage")
    assert store.checkpoint_time("a/b/000") is None
    assert store.checkpoint_time("a/b/001") is None


# --- whole or not at all --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["write_bytes", "replace"])
def test_a_failing_write_leaves_the_old_content(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: BaseException, place: str
) -> None:
    def fail(path: Path, *_: Any, **__: Any) -> None:
        if place == "write_bytes":
            path.write_bytes(b"half")
        raise error

    store.write("checkpoints/a.ckpt", b"old")
    with monkeypatch.context() as patch:
        patch.setattr(module if place == "write_bytes" else os, place, fail)
        with pytest.raises(type(error)):
            store.write("checkpoints/a.ckpt", b"new")
    assert (store.dir / "checkpoints" / "a.ckpt").read_bytes() == b"old"
    assert list((store.dir / "tmp").iterdir()) == []
    store.write("checkpoints/a.ckpt", b"new")
    assert (store.dir / "checkpoints" / "a.ckpt").read_bytes() == b"new"


def test_a_cell_that_cannot_be_written_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes, **_: Any) -> None:
        path.write_bytes(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spanrl.learning.files.write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        store.write_temporary({"curve.parquet": b"x" * 100})
    assert list((store.dir / "tmp").iterdir()) == []


def test_the_new_content_is_on_the_disk_before_the_name(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a machine that goes down could leave an empty file under the right name."""
    events = []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append("sync"), sync(handle))[1])
    monkeypatch.setattr(os, "replace", lambda *paths: (events.append("rename"), rename(*paths))[1])
    store.write("spec.toml", b"")
    assert events[:2] == ["sync", "rename"]


def test_a_driver_that_is_killed_keeps_nobody_out(tmp_path: Path) -> None:
    code = (
        "import sys, time; from spanrl.experiments.store import Store; from spanrl.experiments.spec import read_spec;"
        "store = Store(sys.argv[1]); store.open(read_spec(eval(sys.argv[2])));"
        "store.temporary().write_bytes(b'half'); print('held', flush=True); time.sleep(60)"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "out"), repr(tiny())]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        store = Store(tmp_path / "out")
        with pytest.raises(DirectoryInUseError, match=f"process {process.pid} "):
            store.open(read_spec(tiny()))
        assert len(list((tmp_path / "out" / "tmp").iterdir())) == 1, "nothing of its is touched"
        process.kill()
    wait_until(lambda: store.lock.holder() is None)
    store.open(read_spec(tiny()))
    assert tree(tmp_path / "out" / "tmp") == {}
    store.close()
