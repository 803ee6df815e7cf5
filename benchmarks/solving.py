"""Whole solves: what each accelerator gains, and the paper's largest domain."""

from __future__ import annotations

from harness import REPEATS, Row, interleaved, ratio_row, value_row

from models import boxed, garnet
from spanrl import make, scopt, solve


def accelerator_rows(smoke: bool) -> list[Row]:
    """Each accelerator stays only where it gains 1.3 times or more; the value is time with it over time without it."""
    rows = []
    S, repeats = (2000, 2) if smoke else (10**4, REPEATS)
    slow, fast = garnet(S, 4, 5, stay=0.99), garnet(S, 4, 5)
    for name, mdp, target in (("slow mixing", slow, 1 / 1.3), ("fast mixing", fast, 1.2)):
        times = interleaved(
            {
                "auto": lambda mdp=mdp: _run(solve, mdp),
                "plain": lambda mdp=mdp: _run(solve, mdp, method="value-iteration"),
            },
            repeats,
        )
        note = f"auto {times['auto'].median:.3f} s, value iteration {times['plain'].median:.3f} s"
        group = "FrozenPolicy policies, chosen by rule, against value iteration"
        rows.append(ratio_row(group, f"{name}, S = {S:g}", times["auto"], times["plain"], target=target, note=note))
    box = boxed(garnet(S, 4, 5, stay=0.9), width=0.02, rest=1e-4)
    cold = scopt(box, 0.2)
    times = interleaved(
        {"warm": lambda: _run(scopt, box, 0.2, v_init=cold.bias), "cold": lambda: _run(scopt, box, 0.2)}, repeats
    )
    group, case, note = "Warm start against cold start", f"box, S = {S:g}, c = 0.2", f"cold {cold.sweeps} sweeps"
    return [*rows, ratio_row(group, case, times["warm"], times["cold"], target=1 / 1.3, note=note)]


def domain_rows(smoke: bool) -> list[Row]:
    """The paper's largest domain."""
    mdp = make("knight-quest").mdp
    times = interleaved(
        {"no bound on the span": lambda: _run(solve, mdp), "c = 2": lambda: _run(scopt, mdp, 2.0)}, 3 if smoke else 9
    )
    group = "Knight Quest to 1e-6"
    return [value_row(group, case, [1e3 * s for s in time.seconds], "ms") for case, time in times.items()]


def _run(function, *arguments, **options) -> None:
    """Call and drop the result."""
    function(*arguments, **options)
