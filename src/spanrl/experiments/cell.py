"""Compute one cell: ``learn(env, agent, seed=…)`` bit for bit, from its beginning or from a checkpoint, with looks in between."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from math import inf
from time import monotonic, perf_counter
from typing import Any, NamedTuple, Protocol

from spanrl.agents.offers import HOOK, offers
from spanrl.agents.registry import make_agent
from spanrl.envs.env import Env
from spanrl.errors import RunFileError
from spanrl.experiments.engine import Job
from spanrl.experiments.grid import parameter_texts
from spanrl.experiments.plugins import are_unchanged, plugin_digests
from spanrl.experiments.spec_entry import MODEL
from spanrl.kernels.cache import source_digest
from spanrl.learning.files import computed_with
from spanrl.learning.notes import notes
from spanrl.learning.optimum import Optimum, find_diameter, find_optimum
from spanrl.learning.session import Session
from spanrl.learning.simulate import simulate
from spanrl.learning.snapshot import pack, unpack
from spanrl.learning.worlds import TableWorld, about, as_world
from spanrl.models.states import StateReader

Look = Callable[[int, Callable[[], bytes | None]], None]
"""Called between budgets with the steps done and a function that returns the checkpoint as bytes; it may raise to stop."""


class StopCell(Exception):  # noqa: N818
    """The cell was asked to stop; its checkpoint is kept."""


class Listener(Protocol):
    """Who follows a computation."""

    def moved(self, t: int, resumed: bool = False) -> None:
        """Take note of the steps done; ``resumed``: it was resumed there."""

    def keep(self, checkpoint: bytes) -> None:
        """Keep a checkpoint."""

    def say(self, line: str) -> None:
        """Pass on a line."""

    def wants_stop(self) -> bool:
        """Tell whether the cell should stop."""


def compute(
    job: Job, checkpoint: bytes | None, listener: Listener, *, tell_every: float, keep_every: float
) -> tuple[dict[str, bytes], bytes | None]:
    """Compute a cell and tell of it on the way, every so many seconds; return its files and its final checkpoint.

    A copy of this process that a plugin has forked does not get out of here: one process tells the driver and writes files.
    """
    original = _Original(listener)
    try:
        return _compute(_begin(job, checkpoint, original), original, tell_every, keep_every)
    finally:
        original.end_copy()


def _compute(
    computation: Computation, listener: Listener, tell_every: float, keep_every: float
) -> tuple[dict[str, bytes], bytes | None]:
    listener.moved(computation.t, resumed=computation.t > 0)
    kept = told = monotonic()

    def look(t: int, snapshot: Callable[[], bytes | None]) -> None:
        nonlocal kept, told
        now, stop = monotonic(), listener.wants_stop()
        if now - told >= tell_every:
            told = now
            listener.moved(t)
        if stop or now - kept >= keep_every:
            state = snapshot()
            if state is not None:
                listener.keep(state)
            kept = monotonic()
        if stop:
            raise StopCell

    files = computation.run(look)
    return files, computation.checkpoint()


class _Original:
    """The listener, as the process has it in which the cell began; a forked copy of that process ends when it turns to it."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self._pid = listener, os.getpid()

    def end_copy(self) -> None:
        if os.getpid() != self._pid:
            os._exit(0)

    def moved(self, t: int, resumed: bool = False) -> None:
        self.end_copy()
        self._listener.moved(t, resumed)

    def keep(self, checkpoint: bytes) -> None:
        self.end_copy()
        self._listener.keep(checkpoint)

    def say(self, line: str) -> None:
        self.end_copy()
        self._listener.say(line)

    def wants_stop(self) -> bool:
        self.end_copy()
        return self._listener.wants_stop()


def _begin(job: Job, checkpoint: bytes | None, listener: Listener) -> Computation:
    """Go on from the checkpoint where it fits."""
    try:
        computation = Computation(job, checkpoint)
    except RunFileError as error:
        listener.say(f"{job.id}: {error} The cell begins anew.")
        return Computation(job, None)
    if computation.note:
        listener.say(f"{job.agent} on {job.env}: {computation.note}.")
    return computation


class Computation:
    """A cell under way.

    Attributes:
        resumed_at: the steps at which it went on from a checkpoint, now and before.
        note: why a good checkpoint was not used, where it was not.
    """

    def __init__(self, job: Job, checkpoint: bytes | None) -> None:
        """Make the world and the learner; go on from the checkpoint where it fits."""
        self.job, self.note = job, ""
        self.resumed_at: list[int] = []
        self._plugins: dict[str, str] = {}  # modules that the checkpoint had imported; perhaps this process has not yet
        self._known = _known(job.env, job.sha256)
        self._world = as_world(self._known.source)
        self._session = self._fresh()
        if checkpoint is not None:
            self._resume(checkpoint)

    @property
    def t(self) -> int:
        """Steps done before this computation began."""
        return self.resumed_at[-1] if self.resumed_at else 0

    def run(self, look: Look) -> dict[str, bytes]:
        """Go on to the horizon; return the three files."""
        best = self._known.optimum
        self._session.run(None if best is None else best.gain, lambda t: look(t, self.checkpoint))
        run = self._session.result(interrupted=False)
        run.meta["notes"] = notes(self._session.learner, best, self._session.mdp)
        run.meta["resumed_at"] = self.resumed_at
        run.meta.update(about(self._world, gain_given=False) | self._known.facts)
        run.meta["parameters"] = _parameters(self.job)
        if self.job.sha256:
            run.meta[MODEL] = self.job.sha256
        return run.to_files()

    def spent(self) -> tuple[int, float]:
        """Return the steps done and the seconds they took."""
        t, planning, simulating = self._session.spent()
        return t, planning + simulating

    def seconds_a_step(self) -> float | None:
        """Return what a step of the policy under way costs by itself in compiled code; None where there is none, or steps are not."""
        if not self._session.is_compiled or HOOK not in offers(self._session.learner):
            return None
        assert isinstance(self._world, TableWorld)
        policy, steps = self._session.learner.policy, 10**5
        begun = perf_counter()
        simulate(self._world.env, policy, horizon=steps, seed=0)
        first = perf_counter() - begun
        simulate(self._world.env, policy, horizon=11 * steps, seed=0)
        return max(perf_counter() - begun - 2 * first, 0.0) / (10 * steps)

    def checkpoint(self) -> bytes | None:
        """Return the exact state; None where the agent cannot be written down, and the cell would begin anew."""
        if not self._session.is_resumable:
            return None
        plugins = self._plugins | plugin_digests()
        about = {"versions": _versions(), "plugins": plugins, MODEL: self.job.sha256}
        return pack(self._session.state() | about | {"resumed_at": self.resumed_at})

    def _fresh(self) -> Session:
        job = self.job
        agent = make_agent(job.agent)
        return Session(self._world, agent, job.agent, horizon=job.horizon, seed=job.seed, points=job.points)

    def _resume(self, data: bytes) -> None:
        """Go on from a checkpoint; a damaged one raises, one that does not fit is noted and left."""
        state = unpack(data)
        given = StateReader(state)
        if not given.holds("versions", _versions()) or not are_unchanged(state.get("plugins", {})):
            self.note = "checkpoints were written with other versions of spanrl, its plugins, numpy or numba, so cells begin anew"
        elif state.get(MODEL, "") != self.job.sha256:
            self.note = "checkpoints are of another model file, so cells begin anew"
        elif given.flag("horizon_was_read") and not given.holds("horizon", self.job.horizon):
            self.note = "the agent reads the horizon, which is another now, so cells are computed anew"
        elif self._session.is_resumable:
            try:
                self._session.restore(state)
            except RunFileError:
                raise
            except Exception as error:  # set_state of a plugin may raise anything
                raise RunFileError(f"checkpoint: it cannot be resumed ({type(error).__name__}: {error}).") from error
            t = given.integer("t")
            self.resumed_at = [*given.integers("resumed_at", t), t]
            self._plugins = state.get("plugins", {})


class _Known(NamedTuple):
    """An environment (its text where it is played step by step: each cell has its own then), its optimum, and what reports tell of it."""

    source: Env | str
    optimum: Optimum | None
    facts: dict[str, float | str | None]


@lru_cache(maxsize=16)
def _known(env: str, sha256: str) -> _Known:
    """Return what all cells of an environment share. A model file must have the digest that the driver saw."""
    world = as_world(env, sha256=sha256 or None)
    optimum, diameter = find_optimum(world.mdp), find_diameter(world.mdp)
    facts = {
        "optimal_span": None if optimum is None else optimum.span,
        "diameter": "inf" if diameter == inf else diameter,
    }
    return _Known(world.env if isinstance(world, TableWorld) else env, optimum, facts)


@lru_cache(maxsize=64)
def _texts(kind: str, text: str) -> dict[str, str]:
    return parameter_texts(kind, text)


def _parameters(job: Job) -> dict[str, dict[str, str]]:
    """Return the value of every parameter of environment and agent, defaults included."""
    return {"env": {} if job.sha256 else _texts("env", job.env), "agent": _texts("agent", job.agent)}


@lru_cache(maxsize=1)
def _versions() -> dict[str, Any]:
    """Return what the bits depend on."""
    made = computed_with()
    return {name: made[name] for name in ("spanrl", "numpy", "numba")} | {"sources": source_digest()}
