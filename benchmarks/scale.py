"""Scale: a million states in bounded memory, threads, and how the time of each part grows with the model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from harness import REPEATS, Row, Timing, interleaved, ratio_row

from models import boxed, garnet
from spanrl import ProblemInfo
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.kernels.projection import new_differences
from spanrl.models.bounded import BoundedMDP
from spanrl.models.counts import Counts
from spanrl.models.mdp import MDP
from spanrl.planning.problem import Model, Problem, prepare
from spanrl.planning.threads import PAYS, Sweeper

_GIB = 2**30
_MOST_GROWTH = 1.15
_FIRST = 20  # sweeps of a solve that are looked at: the states are not yet in order, and then they nearly are
_EFFORT = 4_000_000  # entries to go through in one timed run of a small model
_START = """
import json, sys
from time import perf_counter
sys.path.insert(0, {folder!r})
from memory import peak_memory
from models import boxed, garnet
mdp = garnet({S}, 4, 6)
"""
_SOLVE = """
from spanrl import solve
solve(garnet(100, 4, 6))
seconds = []
for _ in range({repeats}):
    begun = perf_counter()
    solution = solve(mdp)
    seconds.append(perf_counter() - begun)
out = dict(seconds=seconds, width=solution.residual, sweeps=solution.sweeps)
"""
_SWEEP = """
from scale import sweeper
model = boxed(mdp)
listed = model.succ.size
del mdp
run = sweeper(model, 2)
run()
out = dict(seconds=[run() for _ in range({repeats})], listed=listed)
"""
_END = """
out["memory"] = peak_memory()
print(json.dumps(out))
"""


def scale_rows(smoke: bool) -> list[Row]:
    """A million states, each model in a process of its own, whose memory includes building the model."""
    S = 2000 if smoke else 10**6
    plain, box = (_in_process(S, part) for part in (_SOLVE, _SWEEP))
    group = f"Garnet S = {S:g}, A = 4, Γ = 6"
    case = "solved to 1e-6"
    per_entry = [1e9 * s / box["listed"] for s in box["seconds"]]
    return [
        Row(
            group,
            f"{case}: time",
            median(plain["seconds"]),
            "s",
            least=min(plain["seconds"]),
            note=f"{plain['sweeps']} sweeps",
            data={"readme": "Planning with 10⁶ states, A = 4, Γ = 6, to 1e-6"},
        ),
        Row(
            group,
            f"{case}: peak memory",
            plain["memory"] / _GIB,
            "GiB",
            2.0,
            data={"readme": "Peak memory of planning with 10⁶ states"},
        ),
        Row(group, f"{case}: width of the certified gain", plain["width"], "", 1e-6),
        Row(group, "box: time of a sweep", median(box["seconds"]), "s", least=min(box["seconds"])),
        Row(group, "box: time of a sweep", median(per_entry), "ns per listed successor", least=min(per_entry)),
        Row(group, "box: peak memory", box["memory"] / _GIB, "GiB", 2.0),
    ]


def thread_rows(smoke: bool) -> list[Row]:
    """One thread over two, sweep by sweep from the same start; the vectors must come out with the same bits."""
    rows = []
    for S in (500,) if smoke else (10**4, 10**5, 10**6):
        mdp = garnet(S, 4, 6)
        for kind in ("plain", "box"):
            model = mdp if kind == "plain" else boxed(mdp)
            n = max(2, 8_000_000 // mdp.succ.size)
            timings = interleaved({str(k): sweeper(model, n, threads=k) for k in (1, 2)})
            with Sweeper(2) as shared:
                problem = prepare(model)
                one, two = sweeps(problem, np.zeros(S), n), sweeps(problem, np.zeros(S), n, shared=shared)
                if one.tobytes() != two.tobytes():
                    raise AssertionError(f"threads change bits: {kind}, S = {S}")
            used = model.succ.size >= PAYS
            rows.append(
                ratio_row(
                    "One thread over two, same bits",
                    f"{kind}, S = {S:g}" + ("" if used else ", below the size at which threads are used"),
                    timings["1"],
                    timings["2"],
                    target=None if not used else 1.3 if kind == "plain" else 1.1,  # states are sorted by one thread
                    at_least=True,
                    note=f"{1e3 * timings['1'].median:.3g} ms per sweep with one",
                    data={"readme": "Planning with 10⁶ states: one thread over two"}
                    if used and kind == "plain" and S == 10**6
                    else {},
                )
            )
    return rows


def growth_rows(smoke: bool) -> list[Row]:
    """Fit time = b·nᵃ to sizes that differ by two orders of magnitude; the value is a."""
    states = (200, 400, 800, 1600, 3200) if smoke else (10**3, 3 * 10**3, 10**4, 3 * 10**4, 10**5, 2 * 10**5)
    branches = (2, 4, 8, 16, 32)
    wide = 300 if smoke else 10**4
    rows = []
    for axis, models in (
        ("states, Γ = 6", {S: garnet(S, 4, 6) for S in states}),
        (f"nonzeros, S = {wide:g}", {4 * wide * k: garnet(wide, 4, k) for k in branches}),
    ):
        for name, start in _PARTS.items():
            runs = {str(size): start(mdp) for size, mdp in models.items()}
            rows.append(_fitted(f"Growth of time with {axis}", name, interleaved(runs)))
    return rows


def sweeps(problem: Problem, v: np.ndarray, n: int, c: float = inf, shared: Sweeper | None = None) -> np.ndarray:
    """Make n sweeps from v, in place, and return it (no width is ≤ −1, so that none of them is the last)."""
    (shared or Sweeper()).sweep(problem, v, np.empty_like(v), c, new_differences(None), -1.0, 0.0, 0.0, 0.9, 0, n)
    return v


def sweeper(model: Model, n: int, c: float = inf, threads: int = 1) -> Callable[[], float]:
    """Return a function that makes n more sweeps from where it was and returns the seconds of one."""
    problem, shared = prepare(model), Sweeper(threads)
    v = np.zeros(problem.n_states)
    return _per_unit(lambda: sweeps(problem, v, n, c, shared), n)


def _from_zero(model: Model, c: float = inf) -> Callable[[], float]:
    """Return a function that makes the first sweeps of a solve, often enough to be timed, and returns the seconds of one."""
    problem, times = prepare(model), max(1, _EFFORT // (_FIRST * model.succ.size))

    def run() -> None:
        for _ in range(times):
            sweeps(problem, np.zeros(problem.n_states), _FIRST, c)

    return _per_unit(run, _FIRST * times)


def _per_unit(run: Callable[[], object], n: int) -> Callable[[], float]:
    def timed() -> float:
        begun = perf_counter()
        run()
        return (perf_counter() - begun) / n

    return timed


def seen(mdp: MDP, visits: int = 1000) -> Counts:
    """Return the counts of a learner that has played every pair so often and seen what it should on the average."""
    times = np.maximum(1, np.rint(mdp.prob * visits)).astype(np.int64)
    n = np.add.reduceat(times, mdp.succ_ptr[:-1])
    return Counts(n, mdp.reward.copy(), 0.1 * n, mdp.succ_ptr, mdp.succ, times)


def build_set(counts: Counts, info: ProblemInfo) -> BoundedMDP:
    """Make the paper's set of plausible models from counts."""
    return BernsteinBox().bounded(counts, int(counts.n.sum()), info)


def _set_builder(mdp: MDP) -> Callable[[], float]:
    counts, info, n = seen(mdp), ProblemInfo.from_mdp(mdp), max(1, _EFFORT // (20 * mdp.succ.size))
    return _per_unit(lambda: [build_set(counts, info) for _ in range(n)], n)


_PARTS: dict[str, Callable[[MDP], Callable[[], float]]] = {
    "plan: a sweep of a plain model": _from_zero,
    "EVI: a sweep of a box model": lambda mdp: _from_zero(boxed(mdp)),
    "ScOpt: the same with a bound on the span": lambda mdp: _from_zero(boxed(mdp), c=0.2),
    "counts to confidence set": _set_builder,
}


def _fitted(group: str, case: str, timings: Mapping[str, Timing]) -> Row:
    """Return the exponent of the least-squares line through (log size, log seconds): the median over the turns."""
    sizes = np.log([float(size) for size in timings])
    turns = np.log([timing.seconds for timing in timings.values()])
    exponents = np.polyfit(sizes, turns, 1)[0]
    middle = np.median(turns, axis=1)
    fit = np.polyval(np.polyfit(sizes, middle, 1), sizes)
    r2 = 1 - float(((middle - fit) ** 2).sum() / ((middle - middle.mean()) ** 2).sum())
    return Row(
        group,
        case,
        median(exponents.tolist()),
        "exponent",
        _MOST_GROWTH,
        least=float(exponents.min()),
        note=f"R² = {r2:.4f}, {1e3 * list(timings.values())[-1].median:.3g} ms at the largest",
    )


def _in_process(S: int, part: str) -> dict[str, Any]:
    """Run a part in a process of its own and return what it measured."""
    code = (_START + part + _END).format(folder=str(Path(__file__).parent), S=S, repeats=REPEATS)
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    out: dict[str, Any] = json.loads(done.stdout)
    return out
