"""How fast is it here? What ``spanrl bench`` measures: simulation, learning and planning, in less than a minute.

What is compared takes turns, so that whatever else the machine does hits all alike; the median of the turns counts, the smallest is kept.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.scal import SCAL
from spanrl.envs.env import Env
from spanrl.envs.registry import make
from spanrl.learning.learn import learn
from spanrl.learning.simulate import simulate
from spanrl.models.mdp import MDP
from spanrl.planning.problem import prepare
from spanrl.planning.solve import solve

REPEATS = 5
_VERSIONS = ("spanrl", "numpy", "numba", "scipy")


@dataclass(frozen=True)
class Timing:
    """The seconds of one candidate, one number per turn."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return median(self.seconds)

    @property
    def least(self) -> float:
        """The smallest."""
        return min(self.seconds)


@dataclass(frozen=True)
class Measurement:
    """One number: the median of the turns and the smallest of them."""

    name: str
    value: float
    least: float
    unit: str


def measure(
    *, scale: float = 1.0, repeats: int = REPEATS, tell: Callable[[str], None] = lambda line: None
) -> list[Measurement]:
    """Measure everything; ``scale`` multiplies the sizes, and ``tell`` hears what is next.

    >>> [one.unit for one in measure(scale=1e-4, repeats=1)]
    ['ns per step', '×', 'ns per step', 'million steps/s', 'ms', 'ns per nonzero']
    """
    found: list[Measurement] = []
    for what, part in (
        ("learning on the three-state domain", _three_state),
        ("learning on Knight Quest", _knight_quest),
        ("planning on a random model", _planning),
    ):
        tell(what)
        found += part(scale, repeats)
    return found


def interleaved(
    candidates: Mapping[str, Callable[[], float | None]], repeats: int = REPEATS, warm_up: int = 1
) -> dict[str, Timing]:
    """Run the candidates in turns and return their seconds; one that returns a number has timed itself.

    The first ``warm_up`` rounds are not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(warm_up + repeats):
        for name, run in candidates.items():
            start = perf_counter()
            own = run()
            taken = perf_counter() - start if own is None else own
            if turn >= warm_up:
                seconds[name].append(taken)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def successors(rng: np.random.Generator, n: int, S: int, branches: int) -> NDArray[np.int64]:
    """Return n sorted rows of different states."""
    rows = np.sort(rng.integers(0, S - branches + 1, (n, branches)), axis=1)
    return rows + np.arange(branches)  # sorted with repetition, then spread: all different


def garnet(S: int, A: int, branches: int, seed: int = 0, stay: float = 0.0) -> MDP:
    """Return a Garnet: ``branches`` random successors per pair; with ``stay`` it keeps its state that often, and mixes slowly."""
    rng = np.random.default_rng(seed)
    n = S * A
    succ, prob = successors(rng, n, S, branches), rng.dirichlet(np.ones(branches), size=n)
    state, action = np.divmod(np.arange(n), A)
    if stay:
        succ = np.concatenate((succ, state[:, None]), axis=1)
        prob = np.concatenate((prob * (1 - stay), np.full((n, 1), stay)), axis=1)
    return MDP.from_pairs(state, action, np.arange(n + 1) * succ.shape[1], succ.ravel(), prob.ravel(), rng.random(n))


def machine() -> dict[str, Any]:
    """Return what the numbers depend on besides the code: processor, cores, memory in GiB, load, versions."""
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory": round(int((_field("/proc/meminfo", "MemTotal") or "0").split()[0]) / 2**20, 1) or None,
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        **{name: version(name) for name in _VERSIONS},
    }


def _field(path: str, name: str) -> str:
    """Return the first value of a field in one of the kernel's text files, "" where there is none."""
    lines = Path(path).read_text("utf-8").splitlines() if Path(path).is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _three_state(scale: float, repeats: int) -> Iterator[Measurement]:
    env, T = make("three-state", delta=0.005), _size(2.5e7, scale)
    times = _learning(env, SCAL(5.0), T, repeats)
    yield _per(times["pure"], T, "pure simulation, three-state", "ns per step")
    ratios = Timing(tuple(a / b for a, b in zip(times["scal"].seconds, times["pure"].seconds, strict=True)))
    yield Measurement("SCAL over pure simulation, three-state", ratios.median, ratios.least, "×")


def _knight_quest(scale: float, repeats: int) -> Iterator[Measurement]:
    env, T = make("knight-quest"), _size(1e7, scale)
    times = _learning(env, SCAL(5.0, p_scale=0.05, r_scale=0.05), T, repeats)
    yield _per(times["pure"], T, "pure simulation, Knight Quest", "ns per step")
    speeds = [T / seconds / 1e6 for seconds in times["scal"].seconds]
    yield Measurement("SCAL, Knight Quest", median(speeds), min(speeds), "million steps/s")


def _learning(env: Env, agent: SCAL, T: int, repeats: int) -> dict[str, Timing]:
    policy = solve(env.mdp).policy
    pure, scal = (
        lambda: _void(simulate(env, policy, horizon=T, seed=0)),
        lambda: _void(learn(env, agent, horizon=T, seed=0)),
    )
    return interleaved({"pure": pure, "scal": scal}, repeats)


def _planning(scale: float, repeats: int) -> Iterator[Measurement]:
    S = _size(1e4, scale)
    mdp = garnet(S, 4, 5)
    problem, v = prepare(mdp), np.random.default_rng(0).random(S)
    sweeps = max(1, int(2e7 * scale) // mdp.succ.size)

    def back_up() -> None:
        for _ in range(sweeps):
            problem.backup(v)

    times = interleaved({"solve": lambda: _void(solve(mdp)), "backup": back_up}, repeats)
    solving = times["solve"]
    yield Measurement(f"plan to 1e-6, Garnet with S = {S}", solving.median * 1e3, solving.least * 1e3, "ms")
    yield _per(times["backup"], sweeps * mdp.succ.size, "one backup of the same", "ns per nonzero")


def _per(timing: Timing, n: int, name: str, unit: str) -> Measurement:
    return Measurement(name, timing.median / n * 1e9, timing.least / n * 1e9, unit)


def _size(full: float, scale: float) -> int:
    """Return a size that is not too small to make sense."""
    return max(100, int(full * scale))


def _void(_: object) -> None:
    """Drop a result: a candidate that returns a number would have timed itself."""
