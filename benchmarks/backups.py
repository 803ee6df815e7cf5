"""Time per nonzero of one backup: plain against the yardstick, box against plain, truncated against not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from harness import Row, interleaved, ratio_row, value_row
from scale import sweeps

from models import boxed, garnet, padded, padded_backup
from spanrl.kernels.backups import backup
from spanrl.planning.problem import Problem, prepare


def sweeper(problem: Problem, n: int, c: float = np.inf) -> Callable[[], None]:
    """Return a function that runs n damped sweeps, each at a slightly other v, as a solver does."""
    v = np.zeros(problem.n_states)

    def run() -> None:
        sweeps(problem, v, n, c)

    return run


def plain_rows(smoke: bool) -> list[Row]:
    rows = []
    for S in (10**3,) if smoke else (10**4, 10**5):
        for A, branches in ((8, 8), (4, 5)):
            mdp = garnet(S, A, branches)
            problem, arrays = prepare(mdp), padded(mdp, A)
            v, out = np.random.default_rng(0).random(S), np.empty(S)
            nonzeros = mdp.succ.size
            n = max(1, 20_000_000 // nonzeros)

            def ours(problem=problem, v=v, out=out, n=n):
                for _ in range(n):
                    backup(problem.arrays, problem.reward, 1.0, problem.workspace, v, out)

            def yardstick(arrays=arrays, v=v, out=out, n=n):
                for _ in range(n):
                    padded_backup(*arrays, v, out)

            times = interleaved({"ours": ours, "yardstick": yardstick}, 3 if smoke else 9)
            note = ", ".join(f"{name} {t.median / n / nonzeros * 1e9:.2f} ns per nonzero" for name, t in times.items())
            group, case = "Plain backup against the padded yardstick", f"S = {S:g}, A = {A}, Γ = {branches}"
            rows.append(ratio_row(group, case, times["ours"], times["yardstick"], target=1.5, note=note))
    return rows


def box_rows(smoke: bool) -> list[Row]:
    group, rows = "Box sweep against plain sweep", []
    for A, branches in ((8, 8), (4, 5)):
        sizes = (200, 10**3) if smoke else (10**3, 10**4, 10**5)
        runs, entries = {}, {}
        for S in sizes:
            mdp = garnet(S, A, branches)
            n = max(2, 6_000_000 // mdp.succ.size)
            entries[S] = n * mdp.succ.size
            runs |= {f"plain {S}": sweeper(prepare(mdp), n), f"box {S}": sweeper(prepare(boxed(mdp)), n)}
        times = interleaved(runs, 3 if smoke else 9, warm_up=3)
        for S in sizes:
            box, plain = times[f"box {S}"], times[f"plain {S}"]
            note = (
                f"box {box.median / entries[S] * 1e9:.2f}, plain {plain.median / entries[S] * 1e9:.2f} ns per nonzero"
            )
            target = 6.0 if S <= 10**4 else None
            rows.append(ratio_row(group, f"S = {S:g}, A = {A}, Γ̂ = {branches}", box, plain, target=target, note=note))
        first, last = sizes[0], sizes[-1]
        growth = [
            (large / entries[last]) / (small / entries[first])
            for large, small in zip(times[f"box {last}"].seconds, times[f"box {first}"].seconds, strict=True)
        ]
        case = f"growth from S = {first:g} to {last:g}, Γ̂ = {branches}"
        rows.append(value_row(group, case, growth, "×", target=2.0, note="time per nonzero"))
    return rows


def truncation_rows(smoke: bool) -> list[Row]:
    """The same sweeps with and without Γ_c, on a plain and on a box model."""
    rows = []
    S, A, branches = (10**3 if smoke else 10**4), 4, 5
    mdp = garnet(S, A, branches)
    n = max(2, 6_000_000 // mdp.succ.size)
    for name, model in (("plain", mdp), ("box", boxed(mdp))):
        problem = prepare(model)
        runs = {"free": sweeper(problem, n), "truncated": sweeper(problem, n, 0.05)}
        times = interleaved(runs, 3 if smoke else 9)
        group = "The cost of the truncation: T_c against L, equal numbers of backups"
        note = f"{n * problem.n_pairs:g} backups each"
        case = f"{name}, S = {S:g}"
        rows.append(ratio_row(group, case, times["truncated"], times["free"], target=1.15, note=note))
    return rows
