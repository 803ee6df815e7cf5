"""Small experiments, and what the tests of the runner share: commands, files and their bytes."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spanrl import learn
from spanrl.experiments.spec import Spec, read_spec

TABLES = ("curve.parquet", "episodes.parquet")
FILES = [*TABLES, "meta.json"]

PLUGIN = """
import os
from dataclasses import dataclass

from spanrl import MDP, UCRL, Env, register_agent, register_env
from spanrl.agents.learner import Learner


def is_ill(rng, seed):
    return rng.bit_generator.seed_seq.entropy == seed and "HEALED" not in os.environ


@dataclass(frozen=True)
class Fails:
    seed: int = 1

    def start(self, info, rng):
        if is_ill(rng, self.seed):
            raise ValueError("I cannot\\nlearn [this]")
        return UCRL().start(info, rng)


@dataclass(frozen=True)
class Dies:
    seed: int = 1

    def start(self, info, rng):
        if is_ill(rng, self.seed):
            os._exit(3)
        return UCRL().start(info, rng)


@dataclass(frozen=True)
class Prints:
    word: str = "hello"

    def start(self, info, rng):
        print(f"{self.word} from the plugin", flush=True)
        return UCRL().start(info, rng)


@dataclass(frozen=True)
class Reads:
    factor: float = 1.0

    def start(self, info, rng):
        return UCRL(delta=min(0.5, self.factor / info.horizon)).start(info, rng)


class Remembers(Learner):
    def act(self, state):
        self.last_state = state
        return super().act(state)


@dataclass(frozen=True)
class CannotBeKept:
    delta: float = 0.05

    def start(self, info, rng):
        return Remembers(UCRL(self.delta).start(info, rng).rules, info, rng)


def two_doors(p: float = 0.5):
    P = [[[1 - p, p], [p, 1 - p]]] * 2
    return Env.from_mdp(MDP.from_dense(P, [[0.2, 0.4], [0.6, 0.8]]), "bernoulli")


for name, factory in (
    ("fails", Fails), ("dies", Dies), ("prints", Prints), ("reads", Reads), ("cannot-be-kept", CannotBeKept),
):
    register_agent(name, factory, summary="For a test.")
register_env("two-doors", two_doors, summary="For a test.")
"""
"""Agents that misbehave, until HEALED is in the environment of the process; and an environment."""

FULL_DISK = """
import errno
import os
import sys

import spanrl.experiments.store
import spanrl.learning.files
from spanrl.tables import write_bytes

left = 20_000


def write(path, data, **options):
    global left
    left -= len(data)
    if left < 0 and "HEALED" not in os.environ:
        path.write_bytes(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    write_bytes(path, data, **options)


if getattr(sys.modules["__main__"].__spec__, "name", "") == "spanrl.experiments.worker":
    spanrl.experiments.store.write_bytes = spanrl.learning.files.write_bytes = write
"""
"""A disk that is full after some bytes, for workers."""


def tiny(**changes: Any) -> dict[str, Any]:
    """Return a spec of 2 × 2 × 2 cells that are done in no time."""
    return {
        "name": "tiny", "horizon": 2000, "points": 10, "seeds": 2,
        "env": [{"id": "three-state[delta=0.01]"}, {"id": "two-state"}],
        "agent": [{"id": "scal[span_bound=2]", "label": "SCAL"}, {"id": "ucrl"}],
        **changes,
    }  # fmt: skip


def tiny_spec(**changes: Any) -> Spec:
    return read_spec(tiny(**changes))


def write_toml(path: Path, **changes: Any) -> Path:
    """Write the tiny spec with some changes to a file; return its path."""
    import tomli_w

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tomli_w.dumps(tiny(**changes)))
    return path


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", **changes}


def command(*argv: str | Path) -> list[str]:
    return [sys.executable, "-m", "spanrl.cli", *map(str, argv)]


def spanrl(*argv: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    env = options.pop("env", environment())
    return subprocess.run(command(*argv), capture_output=True, text=True, timeout=120, check=False, env=env, **options)


@contextmanager
def started(*argv: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Start the command in a process group of its own; whatever happens, the group is gone in the end."""
    process = subprocess.Popen(
        command(*argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=environment(),
    )  # fmt: skip
    try:
        yield process
    finally:
        kill_group(process)
        process.communicate()


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a process and all it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return the first true value of ``condition``; fail after some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


def tree(folder: Path, *, but: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Return all files under a folder with their bytes, less those with a name in ``but``."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in but
    }


def tables(folder: Path) -> dict[str, bytes]:
    """Return the Parquet files of an experiment with their bytes."""
    return {name: data for name, data in tree(folder).items() if name.endswith(".parquet")}


def cell_meta(folder: Path, cell: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "cells" / cell / "meta.json").read_text())
    return content


def reseal(cell: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the content of a meta.json as one that was written so."""
    content = json.loads((cell / "meta.json").read_bytes())
    del content["sha256"]["meta.json"]
    change(content)
    content["sha256"]["meta.json"] = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    (cell / "meta.json").write_text(json.dumps(content))


def learned(spec: Spec) -> dict[str, bytes]:
    """Return the tables that an experiment must have, from ``learn`` in this process: the oracle of the runner."""
    out = {}
    for cell in spec.cells():
        run = learn(
            cell.env.model or cell.env.id, cell.agent.id, horizon=spec.horizon, seed=cell.seed, points=spec.points
        )
        files = run.to_files()
        out |= {f"cells/{cell.folder}/{name}": files[name] for name in TABLES}
    return dict(sorted(out.items()))
