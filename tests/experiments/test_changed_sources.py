"""Model files and modules that change under an experiment: no cell is computed with another one, and no checkpoint of one is resumed."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiment_samples import reseal, tiny_spec

from spanrl import MDP
from spanrl.errors import ModelFileError, OptionError, RunFileError
from spanrl.experiments import plugins
from spanrl.experiments.cell import Computation
from spanrl.experiments.driver import job_of
from spanrl.experiments.engine import Job
from spanrl.experiments.on_ray import cell_task
from spanrl.experiments.plugins import are_unchanged, import_plugins, plugin_digests
from spanrl.experiments.results import load_results
from spanrl.experiments.run import drive
from spanrl.experiments.spec import Spec
from spanrl.experiments.store import Store
from spanrl.learning.files import computed_with

# --- models ---------------------------------------------------------------------------------------------------------


def save_model(path: Path, seed: int) -> str:
    """Save a random model in the place of what is there; return its SHA-256."""
    rng = np.random.default_rng(seed)
    path.unlink(missing_ok=True)
    MDP.from_dense(rng.dirichlet(np.ones(3), size=(3, 2)), rng.random((3, 2))).save(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    """Return an experiment with a model file, ``tmp_path/m.npz``."""
    save_model(tmp_path / "m.npz", 1)
    return tiny_spec(env=[{"id": str(tmp_path / "m.npz")}], agent=[{"id": "ucrl"}], seeds=1)


def first_job(spec: Spec) -> Job:
    return job_of(spec.cells()[0], spec)


def test_a_job_tells_the_digest_of_its_model(spec: Spec, tmp_path: Path) -> None:
    assert first_job(spec).sha256 == hashlib.sha256((tmp_path / "m.npz").read_bytes()).hexdigest()


def test_a_model_that_has_changed_is_not_loaded(spec: Spec, tmp_path: Path) -> None:
    old = spec.envs[0].sha256
    assert MDP.load(tmp_path / "m.npz", sha256=old).n_states == 3
    new = save_model(tmp_path / "m.npz", 2)
    with pytest.raises(ModelFileError) as caught:
        Computation(first_job(spec), None)
    assert str(caught.value) == (
        f"load: the model file {tmp_path / 'm.npz'} has changed (its SHA-256 is {new[:12]}…, not {old[:12]}…). "
        "Bring back the old file, or take the new one as another model."
    )


def test_a_node_with_another_file_refuses_the_cell(spec: Spec, tmp_path: Path) -> None:
    save_model(tmp_path / "m.npz", 2)
    settings = {"plugins": [], "folders": [], "checkpoint_every": 60, "versions": computed_with()}
    (told,) = cell_task(first_job(spec)._asdict(), None, settings)
    assert (told["event"], "m.npz has changed (its SHA-256 is" in told["reason"]) == ("failed", True)


def finished(job: Job, checkpoint: bytes | None = None) -> Computation:
    computation = Computation(job, checkpoint)
    computation.run(lambda t, snapshot: None)
    return computation


def test_a_checkpoint_of_another_model_is_not_resumed(spec: Spec, tmp_path: Path) -> None:
    checkpoint = finished(first_job(spec)).checkpoint()
    longer = first_job(spec)._replace(horizon=3000)
    assert finished(longer, checkpoint).resumed_at == [2000]
    other = Computation(longer._replace(sha256=save_model(tmp_path / "m.npz", 2)), checkpoint)
    assert (other.resumed_at, other.note) == ([], "checkpoints are of another model file, so cells begin anew")


def test_an_experiment_whose_model_changes_after_it_was_hashed(spec: Spec, tmp_path: Path) -> None:
    """Workers read the file themselves: the cell fails rather than be one of the other model."""
    save_model(tmp_path / "m.npz", 2)
    outcome = drive(spec, out=tmp_path / "out", workers=1)
    assert list(outcome.failed) == ["m/ucrl/000"]
    assert "m.npz has changed" in outcome.failed["m/ucrl/000"]
    save_model(tmp_path / "m.npz", 1)
    assert drive(spec, out=tmp_path / "out", workers=1, retry_failed=True).computed == 1
    assert load_results(tmp_path / "out").missing == ()
    (meta,) = (tmp_path / "out").rglob("meta.json")
    assert json.loads(meta.read_text())["run"]["model_sha256"] == spec.envs[0].sha256


def test_a_cell_of_another_model_is_told(spec: Spec, tmp_path: Path) -> None:
    store, cell = Store(tmp_path / "out"), spec.cells()[0]
    store.open(spec)
    store.adopt(cell.folder, store.write_temporary(finished(first_job(spec)).run(lambda t, snapshot: None)))
    assert store.finished_horizon(cell) == 2000
    reseal(store.cell_folder(cell.folder), lambda content: content["run"].update(model_sha256="0" * 64))
    for look in (lambda: store.finished_horizon(cell), lambda: load_results(store.dir)):
        with pytest.raises(RunFileError, match=r"computed with another model file \(its SHA-256 is 000000000000…, not"):
            look()
    store.close()


def test_a_lost_spec_is_not_restored_with_another_model(spec: Spec, tmp_path: Path) -> None:
    store, cell = Store(tmp_path / "out"), spec.cells()[0]
    store.open(spec)
    store.adopt(cell.folder, store.write_temporary(finished(first_job(spec)).run(lambda t, snapshot: None)))
    store.close()
    (store.dir / "spec.toml").unlink()
    other = replace(spec, envs=(replace(spec.envs[0], sha256="0" * 64),))
    with pytest.raises(
        OptionError, match=r"holds another experiment: model of env m: SHA-256 .*… there, SHA-256 000000000000… here"
    ):
        store.check(other)
    store.check(spec)
    reseal(store.cell_folder(cell.folder), lambda content: content["run"].pop("model_sha256"))
    store.check(other)  # an older cell, which does not say


# --- plugins --------------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Return a function after which this process has imported nothing from ``tmp_path``, like another one."""

    def forget() -> None:
        for name, value in (("_folders", []), ("_packages", set()), ("_looked_at", set()), ("_digests", {})):
            monkeypatch.setattr(plugins, name, value)
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)) or name == "spaceless":
                del sys.modules[name]

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", list(sys.path))
    forget()
    yield forget
    forget()


FILES = {
    "of_mine.py": "import neighbour, package_of_mine.inner, numpy\n",
    "neighbour.py": "",
    "package_of_mine/__init__.py": "",
    "package_of_mine/inner.py": "from . import deep\n",
    "package_of_mine/deep.py": "",
    "late_one.py": "",
    "spaceless/late_two.py": "",  # in a namespace package
    "unused.py": "",
    "lib/python3/site-packages/installed_one.py": "",
}


@pytest.fixture
def loaded(tmp_path: Path, fresh: Callable[[], None]) -> dict[str, str]:
    """Return the digests of a plugin with its neighbours, two of which were imported later than it."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    import_plugins(["of_mine"], [str(tmp_path)])
    sys.path.append(str(tmp_path / "lib/python3/site-packages"))
    for name in ("late_one", "spaceless.late_two", "installed_one"):
        __import__(name)
    digests = plugin_digests()
    fresh()
    import_plugins(["of_mine"], [str(tmp_path)])
    return digests


def test_a_plugin_is_hashed_with_all_that_it_has_imported_from_its_folders(loaded: dict[str, str]) -> None:
    assert sorted(loaded) == [
        "late_one", "neighbour", "of_mine", "package_of_mine", "package_of_mine.deep", "package_of_mine.inner",
        "spaceless.late_two",
    ]  # fmt: skip
    assert loaded["neighbour"] == hashlib.sha256(b"").hexdigest()
    assert are_unchanged(loaded)
    assert not are_unchanged(list(loaded))


@pytest.mark.parametrize("name", [name for name in FILES if "installed" not in name and "unused" not in name])
def test_any_of_these_that_changes_is_noticed(
    name: str, loaded: dict[str, str], tmp_path: Path, fresh: Callable[[], None]
) -> None:
    with (tmp_path / name).open("a") as file:
        file.write("# changed\n")
    assert are_unchanged({key: digest for key, digest in loaded.items() if key in plugin_digests()}), "as imported"
    fresh()
    import_plugins(["of_mine"], [str(tmp_path)])
    assert not are_unchanged(loaded)


@pytest.mark.parametrize("name", ["unused.py", "lib/python3/site-packages/installed_one.py"])
def test_others_may_change(name: str, loaded: dict[str, str], tmp_path: Path, fresh: Callable[[], None]) -> None:
    (tmp_path / name).write_text("# changed\n")
    fresh()
    import_plugins(["of_mine"], [str(tmp_path)])
    assert are_unchanged(loaded)


def test_a_module_that_comes_before_another_is_noticed(
    loaded: dict[str, str], tmp_path: Path, fresh: Callable[[], None]
) -> None:
    before = tmp_path / "before"
    before.mkdir()
    (before / "late_one.py").write_text("# another\n")
    fresh()
    import_plugins(["of_mine"], [str(before), str(tmp_path)])
    assert not are_unchanged(loaded)


@pytest.mark.usefixtures("fresh")
def test_a_module_that_is_gone_is_noticed(loaded: dict[str, str], tmp_path: Path) -> None:
    os.remove(tmp_path / "late_one.py")
    sys.path_importer_cache.clear()
    assert not are_unchanged(loaded)


def test_modules_of_a_resumed_checkpoint_stay_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise one that is imported late would be forgotten by a process that was stopped before it came to it."""
    spec = tiny_spec()
    job = first_job(replace(spec, horizon=100))
    monkeypatch.setattr("spanrl.experiments.cell.plugin_digests", lambda: {"late": "1"})
    monkeypatch.setattr("spanrl.experiments.cell.are_unchanged", lambda digests: True)
    checkpoint = finished(job).checkpoint()
    monkeypatch.setattr("spanrl.experiments.cell.plugin_digests", lambda: {"early": "2"})
    second = Computation(job._replace(horizon=200), checkpoint).checkpoint()
    seen: list[dict[str, str]] = []
    monkeypatch.setattr("spanrl.experiments.cell.are_unchanged", lambda digests: seen.append(dict(digests)) is not None)
    assert Computation(job._replace(horizon=200), second).resumed_at == []
    assert seen == [{"late": "1", "early": "2"}]
