"""Time per nonzero of one backup: plain against the yardstick, box against plain, truncated against not."""

from __future__ import annotations

import numpy as np
from harness import Row, interleaved

from models import boxed, garnet, padded, padded_backup
from spanrl.kernels.backups import backup
from spanrl.kernels.iterate import value_iteration
from spanrl.planning.problem import Problem, prepare


def sweeper(problem: Problem, n: int, damping: float = 0.9):
    """Return a function that runs n damped sweeps, each at a slightly other v, as a solver does (no width is ≤ −1)."""
    v, u = np.zeros(problem.n_states), np.empty(problem.n_states)

    def run() -> None:
        value_iteration(
            problem.arrays, problem.reward, problem.sign, problem.workspace, v, u, np.inf, -1.0, 0.0, 0.0, damping, 0, n
        )

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

            seconds = interleaved({"ours": ours, "yardstick": yardstick}, 3 if smoke else 9)
            note = ", ".join(f"{name} {s / n / nonzeros * 1e9:.2f} ns per nonzero" for name, s in seconds.items())
            rows.append(
                Row(
                    "Plain backup against the padded yardstick",
                    f"S = {S:g}, A = {A}, Γ = {branches}",
                    seconds["ours"] / seconds["yardstick"],
                    "×",
                    1.5,
                    note,
                )
            )
    return rows


def box_rows(smoke: bool) -> list[Row]:
    rows = []
    for A, branches in ((8, 8), (4, 5)):
        sizes = (200, 10**3) if smoke else (10**3, 10**4, 10**5)
        runs, counts, n_sweeps = {}, {}, {}
        for S in sizes:
            mdp = garnet(S, A, branches)
            counts[S] = mdp.succ.size
            n_sweeps[S] = max(2, 6_000_000 // counts[S])
            for name, model in (("plain", mdp), ("box", boxed(mdp))):
                run = sweeper(prepare(model), n_sweeps[S])
                for _ in range(3):
                    run()
                runs[f"{name} {S}"] = run
        seconds = interleaved(runs, 3 if smoke else 9)
        cost = {key: s / n_sweeps[S] / counts[S] * 1e9 for key, s in seconds.items() for S in [int(key.split()[1])]}
        for S in sizes:
            note = f"box {cost[f'box {S}']:.2f}, plain {cost[f'plain {S}']:.2f} ns per nonzero"
            target = 6.0 if S <= 10**4 else None
            rows.append(
                Row(
                    "Box sweep against plain sweep",
                    f"S = {S:g}, A = {A}, Γ̂ = {branches}",
                    cost[f"box {S}"] / cost[f"plain {S}"],
                    "×",
                    target,
                    note,
                )
            )
        rows.append(
            Row(
                "Box sweep against plain sweep",
                f"growth from S = {sizes[0]:g} to {sizes[-1]:g}, Γ̂ = {branches}",
                cost[f"box {sizes[-1]}"] / cost[f"box {sizes[0]}"],
                "×",
                2.0,
                "time per nonzero",
            )
        )
    return rows


def truncation_rows(smoke: bool) -> list[Row]:
    """The same sweeps with and without Γ_c, on a plain and on a box model."""
    rows = []
    S, A, branches = (10**3 if smoke else 10**4), 4, 5
    mdp = garnet(S, A, branches)
    for name, model in (("plain", mdp), ("box", boxed(mdp))):
        problem = prepare(model)
        n = max(2, 6_000_000 // mdp.succ.size)
        vectors = {c: np.zeros(S) for c in (np.inf, 0.05)}
        u = np.empty(S)

        def run(c, problem=problem, vectors=vectors, u=u, n=n):
            value_iteration(
                problem.arrays, problem.reward, 1.0, problem.workspace, vectors[c], u, c, -1.0, 0.0, 0.0, 0.9, 0, n
            )

        seconds = interleaved(
            {"free": lambda run=run: run(np.inf), "truncated": lambda run=run: run(0.05)}, 3 if smoke else 9
        )
        rows.append(
            Row(
                "The cost of the truncation: T_c against L, equal numbers of backups",
                f"{name}, S = {S:g}",
                seconds["truncated"] / seconds["free"],
                "×",
                1.15,
                f"{n * problem.n_pairs:g} backups each",
            )
        )
    return rows
