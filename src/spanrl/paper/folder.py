"""The directory of a reproduction.

::

    DIR/run.json                 scale, sources, machine, versions, and the seconds that each part took
    DIR/claims/<id>.json         a checked claim, kept so that the same command goes on where it was stopped; slips.json beside them
    DIR/experiments/<name>/      the directory of an experiment, as spanrl run writes it
    DIR/claims.json              id → verdict, expected verdict, numbers, …
    DIR/report.html, reproduction.md, figures/

Every file appears whole or not at all. What was computed by other sources is never mixed with what these compute.
"""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from spanrl.errors import OptionError
from spanrl.experiments.lock import Lock
from spanrl.kernels.cache import digest_of, source_digest
from spanrl.learning.files import computed_with, git_hash
from spanrl.paper.claims import Scale
from spanrl.report.write import put

RUN_FILE, CLAIMS_FILE = "run.json", "claims.json"
FORMAT = 1


class Folder:
    """A directory, and what a reproduction keeps in it."""

    def __init__(self, path: str | os.PathLike[str], scale: Scale) -> None:
        """Point at a directory; refuse one that holds something else. Nothing is touched."""
        self.path, self.scale = Path(os.path.abspath(path)), scale
        self._lock = Lock(self.path / "lock", "reproduce")
        self.run: dict[str, Any] = self._read_run()

    def open(self) -> None:
        """Take the lock and note who computes here, and with what."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.take()
        except OSError as error:
            raise OptionError(
                f"reproduce: {self.path} cannot be used ({error.strerror or error}). Give another --out."
            ) from None
        self.run |= {"format": FORMAT, "scale": self.scale.name, "sources": source_digest(), "versions": versions()}
        here, before = machine(), self.run.get("machine", {})
        told = {name: _also(before.get(name), value) for name, value in here.items() if isinstance(value, str)}
        self.run["machine"] = here | told
        self.run["git"] = _also(self.run.get("git"), git_hash())
        self.run.setdefault("begun", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
        self.run.setdefault("seconds", {})
        self.write_run()

    def close(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def spend(self, part: str, seconds: float) -> None:
        """Add to the seconds of a part of the work, over all times that it was gone on with."""
        spent = self.run["seconds"]
        spent[part] = round(spent.get(part, 0.0) + seconds, 3)
        self.write_run()

    def write_run(self) -> None:
        """Write down what is known of this run."""
        put(self.path / RUN_FILE, _dumps(self.run))

    def experiment(self, name: str) -> Path:
        """Return the directory of an experiment."""
        return self.path / "experiments" / name

    def kept(self, task: str) -> dict[str, Any] | None:
        """Return what was found before by the same sources, with its ``seconds``; None where nothing was."""
        try:
            found = json.loads((self.path / "claims" / f"{task}.json").read_text("utf-8"))
            same = (found["sources"], found["scale"]) == (claim_digest(), self.scale.name)
            return found["found"] | {"seconds": float(found["seconds"])} if same else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, task: str, found: dict[str, Any], seconds: float) -> None:
        """Keep what was found."""
        content = {"scale": self.scale.name, "sources": claim_digest(), "seconds": round(seconds, 3), "found": found}
        put(self.path / "claims" / f"{task}.json", _dumps(content))

    def write_claims(self, entries: dict[str, dict[str, Any]]) -> None:
        """Write claims.json."""
        put(self.path / CLAIMS_FILE, _dumps(entries))

    def _read_run(self) -> dict[str, Any]:
        """Return run.json, {} in a new directory; refuse one that is something else."""
        try:
            there = sorted(os.listdir(self.path))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise OptionError(
                f"reproduce: {self.path} cannot be used ({error.strerror or error}). Give another --out."
            ) from None
        there = [name for name in there if not (name == "lock" or name.startswith(f".{RUN_FILE}.tmp-"))]
        if not there:
            return {}
        try:
            run = json.loads((self.path / RUN_FILE).read_text("utf-8"))
            told = run["format"], run["scale"], run["sources"], run["versions"]
        except (OSError, ValueError, KeyError, TypeError):
            raise OptionError(
                f"reproduce: {self.path} holds other things ({there[0]}, …), not a reproduction. Give a new folder to --out."
            ) from None
        if told[:2] != (FORMAT, self.scale.name):
            raise OptionError(
                f"reproduce: {self.path} holds a reproduction at scale {told[1]!r}; got --scale {self.scale.name}. "
                "Give another --out, or the same scale."
            )
        if told[2] != source_digest():
            raise OptionError(
                f"reproduce: {self.path} was computed by other sources of spanrl. Give a new folder to --out, or remove it."
            )
        if told[3] != versions():
            raise OptionError(
                f"reproduce: {self.path} was computed with {_listed(told[3])}; here are {_listed(versions())}. "
                "Give a new folder to --out."
            )
        return dict(run)


def versions() -> dict[str, str | None]:
    """Return the versions of all that numbers and figures depend on."""
    others = {name: metadata.version(name) for name in ("scipy", "matplotlib")}
    return computed_with() | others


@cache
def claim_digest() -> str:
    """Return a hash of all sources that verdicts depend on."""
    return (
        f"{source_digest()}-{digest_of('experiments', 'report', 'paper', 'paper/claims', 'paper/slips', 'paper/specs')}"
    )


def machine() -> dict[str, Any]:
    """Return what the work is done on: processor, number of cores that may be used, system."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"processor": model, "cores": cores, "system": f"{platform.system()} {platform.machine()}"}


def _also(before: Any, now: Any) -> Any:
    """Return what holds for all times a reproduction was gone on with: where it changed, one after the other."""
    if before in (None, now):
        return now
    return before if str(now) in str(before).split(", then ") else f"{before}, then {now}"


def _listed(found: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _dumps(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1).encode() + b"\n"
