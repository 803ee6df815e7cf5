"""Another package in a process of its own: asked for one solve per turn, under a limit of memory and of time.

A peer that cannot do a case raises :class:`PeerError` with the reason in a few words, and its process is gone by then.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any, Self

HERE = Path(__file__).parent
PROGRAMS = HERE / "peers"
ENVIRONMENT = HERE.parent / ".venv-peers"
GIB = 2**30
MEMORY = 8 * GIB
START = 60.0  # seconds to load the package and the model
LIMIT = 40.0  # seconds per turn
PATIENCE = 10  # times a limit of processor time that a peer may take by the clock
_LIMITED = """
import ctypes, os, resource, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)  # killed when the driver is, in the middle of a solve as well
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "Unable to allocate", "Cannot allocate memory", "out of memory")


class PeerError(Exception):
    """Why a peer has no result."""


class Peer:
    """A running program that answers ``go`` and, if it takes models, ``load``, ``prepare`` and ``result`` (see ``peers/turns.py``)."""

    kept = False  # by a pool, for the next model

    def __init__(
        self,
        program: Path,
        *arguments: object,
        python: Path = ENVIRONMENT / "bin" / "python",
        memory: int = MEMORY,
        start: float = START,
        threads: int | None = None,
    ) -> None:
        """Start the program and wait until it has loaded its model; ``threads`` limits those of its linear algebra."""
        self._memory, self._rest = memory, b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
        self._process = subprocess.Popen(
            [python, "-c", _LIMITED, str(memory), program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=None if threads is None else os.environ | dict.fromkeys(_THREADS, str(threads)),
            start_new_session=True,  # so that whatever it starts can be ended with it
        )
        self.version = str(self._answer(start).get("version", ""))

    def prepare(self, number: float, limit: float = START) -> None:
        """Let it do what the next turn needs but does not time."""
        self._ask(f"prepare {number!r}", limit)

    def turn(self, number: float, limit: float = LIMIT, *, processor: bool = False) -> dict[str, Any]:
        """Let it solve once, with a tolerance or a seed; its answer holds the ``seconds`` that it took by its own clock.

        With ``processor`` the limit is one of processor time, so that it does not depend on what else the machine does.
        """
        answer = self._ask(f"go {number!r}", limit, processor=processor)
        if not isinstance(answer.get("seconds"), float):
            self._give_up(f"answered without its seconds: {str(answer)[:60]}")
        return answer

    def result(self, limit: float = LIMIT) -> dict[str, Any]:
        """Return what came of the last turn: ``gain``, or ``policy``, the path of a file."""
        return self._ask("result", limit)

    def load(self, model: Path, limit: float = START) -> None:
        """Let it go on to another model."""
        self._ask(f"load {model}", limit)

    @property
    def is_running(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def release(self) -> None:
        """Say that its turns are over: it ends, unless it is kept."""
        if not self.kept:
            self.close()

    def close(self) -> None:
        """End the process and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _ask(self, line: str, limit: float, *, processor: bool = False) -> dict[str, Any]:
        if self._process.returncode is not None:
            raise PeerError("is not running any more")
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended; the answer says why
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        return self._answer(limit, processor=processor)

    def _answer(self, limit: float, *, processor: bool = False) -> dict[str, Any]:
        """Read one line of JSON; give the peer up where none comes."""
        assert self._process.stdout is not None
        pipe, clock = self._process.stdout.fileno(), self._processor_time if processor else perf_counter
        end, last = clock() + limit, perf_counter() + PATIENCE * limit
        while b"\n" not in self._rest:
            left = end - clock()
            if not select.select([pipe], [], [], max(left, 0.0))[0]:
                if left <= 0 or perf_counter() > last:
                    self._give_up(f"no answer in {limit:.3g} s")
                continue
            read = os.read(pipe, 2**16)
            if not read:
                self._process.wait()
                self._give_up(self._why_it_ended())
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self._give_up(f"answered {line[:40].decode(errors='replace')!r}, which is no JSON object")
        return answer  # type: ignore[no-any-return]

    def _processor_time(self) -> float:
        """Return the seconds of the processor that it has used in all its threads; where it is not known, those of the clock."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return perf_counter()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _why_it_ended(self) -> str:
        """Tell the reason from the exit code and the last line of its standard error."""
        self._errors.seek(0)
        text, code = self._errors.read().decode(errors="replace").strip(), self._process.returncode
        if any(words in text for words in _OUT_OF_MEMORY):
            wanted = re.search(r"Unable to allocate (.+ for an array with shape \(.+?\))", text)
            return (f"wants {wanted[1]}: " if wanted else "") + f"out of memory at {self._memory / GIB:.3g} GiB"
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with code {code}: {(text.splitlines() or ['without a word'])[-1][:120]}"

    def _give_up(self, reason: str) -> None:
        self.close()
        raise PeerError(reason)


def not_installed(package: str, environment: Path = ENVIRONMENT) -> str | None:
    """Return why a package is not in the peers' environment, None where it is."""
    failed = environment / "failed.json"
    if not failed.exists():
        return "could not be installed: the environment of the peers is not made; run make bench"
    reason = json.loads(failed.read_text()).get(package)
    return f"could not be installed: {reason}" if reason else None
