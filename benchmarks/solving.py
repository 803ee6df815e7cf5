"""Whole solves: what the choice of ways gains, span bounds, and the paper's largest domain."""

from __future__ import annotations

from harness import REPEATS, Row, interleaved, ratio_row, value_row
from structures import CASES, KINDS, admission, clusters, line, loaded, maze, ring, river

from models import boxed, garnet
from spanrl import analyse, evaluate, make, scopt, solve

SPANS = {
    "queues, 40 × 40": (lambda: loaded((40, 40), 0.98), 100.0),
    "admission control, K = 500": (lambda: admission(500), 500.0),
    "maze, 40 × 40": (lambda: maze(40), 0.5),
    "RiverSwim, 1,000": (lambda: river(1000), 5.0),
    "ring, 1,000": (lambda: ring(1000, 0), 10.0),
    "clusters, 20 of 50": (lambda: clusters(20, 50, 1e-4), 500.0),
    "line, 3,000": (lambda: line(3000), 20.0),
}
"""Models of :mod:`structures` and a bound that binds."""

ENTRIES = 2e9
"""What value iteration may read at the most, in transitions: some seconds."""


def accelerator_rows(smoke: bool) -> list[Row]:
    """The value is our time over that of value iteration, and of a warm start over that of a cold one."""
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
        group = "Ways chosen by predicted cost, against value iteration"
        rows.append(ratio_row(group, f"{name}, S = {S:g}", times["auto"], times["plain"], target=target, note=note))
    box = boxed(garnet(S, 4, 5, stay=0.9), width=0.02, rest=1e-4)
    cold = scopt(box, 0.2)
    times = interleaved(
        {"warm": lambda: _run(scopt, box, 0.2, v_init=cold.bias), "cold": lambda: _run(scopt, box, 0.2)}, repeats
    )
    group, case, note = "Warm start against cold start", f"box, S = {S:g}, c = 0.2", f"cold {cold.sweeps} sweeps"
    return [*rows, ratio_row(group, case, times["warm"], times["cold"], target=1 / 1.3, note=note)]


def span_rows(smoke: bool) -> list[Row]:
    """Return for each model the time of the paper's ScOpt, value iteration, over ours; a lower bound where it is stopped."""
    rows = []
    for name, (make_model, c) in list(SPANS.items())[: 2 if smoke else None]:
        mdp = make_model()
        most = max(1, int((1e6 if smoke else ENTRIES) / mdp.succ.size))
        ended = scopt(mdp, c, method="value-iteration", max_sweeps=most, on_fail="return").converged
        times = interleaved(
            {
                "ours": lambda mdp=mdp, c=c: _run(scopt, mdp, c),
                "plain": lambda mdp=mdp, c=c, most=most: _run(
                    scopt, mdp, c, method="value-iteration", max_sweeps=most, on_fail="return"
                ),
            },
            2 if smoke else 3,
        )
        note = f"{'' if ended else 'at least: '}ours {times['ours'].median:.3g} s, ScOpt {times['plain'].median:.3g} s"
        group, case = "Span bounds to 1e-6: the paper's ScOpt over ours", f"{name}, c = {c:g}"
        rows.append(ratio_row(group, case, times["plain"], times["ours"], target=1 / 1.1, at_least=True, note=note))
    return rows


def domain_rows(smoke: bool) -> list[Row]:
    """The paper's largest domain, with its diameter, and policies of larger models."""
    mdp = make("knight-quest").mdp
    times = interleaved(
        {"no bound on the span": lambda: _run(solve, mdp), "c = 2": lambda: _run(scopt, mdp, 2.0)}, 3 if smoke else 9
    )
    group = "Knight Quest to 1e-6"
    rows = [value_row(group, case, [1e3 * s for s in time.seconds], "ms") for case, time in times.items()]
    name = "riverswim" if smoke else "knight-quest"
    times = interleaved({"diameter": lambda: _run(analyse, make(name).mdp, diameter=True)}, 2 if smoke else 3)
    rows.append(value_row(f"Analysis of {name}, diameter included", "time", times["diameter"].seconds, "s"))
    for case in ("queues, 61 × 61, heavy load", "clusters, 100 of 100, left with 1e-05", "power law, 10,000"):
        mdp = KINDS[case.split(",")[0]].smoke() if smoke else CASES[case]()
        policy = solve(mdp).policy
        times = interleaved({"evaluate": lambda mdp=mdp, policy=policy: _run(evaluate, mdp, policy)}, 2 if smoke else 5)
        rows.append(value_row("Evaluation of a policy", case, [1e3 * s for s in times["evaluate"].seconds], "ms"))
    return rows


def _run(function, *arguments, **options) -> None:
    """Call and drop the result."""
    function(*arguments, **options)
