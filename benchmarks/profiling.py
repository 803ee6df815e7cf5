"""Where the time of a run goes: Knight Quest at the paper's horizon, by phase, as the compiled code times itself."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from harness import REPEATS, Row

from spanrl import SCAL, make
from spanrl.learning.session import Session
from spanrl.learning.worlds import as_world

_PHASES = {
    "sampling": "sampling",
    "counts": "counts",
    "sets": "set construction",
    "sorting": "sorting of the states",
    "sweeps": "sweeps and choice of the policy",
}


def profile_rows(smoke: bool) -> list[Row]:
    """SCAL c = 5: seconds of each phase; what none of them has is bookkeeping in Python."""
    T = 10**5 if smoke else 4 * 10**8
    totals: list[float] = []
    spent: dict[str, list[float]] = {name: [] for name in (*_PHASES.values(), "bookkeeping")}
    for _ in range(1 if smoke else REPEATS):
        total, phases = _run(T)
        totals.append(total)
        for name, label in _PHASES.items():
            spent[label].append(phases[name])
        spent["bookkeeping"].append(total - sum(phases.values()))
    whole = median(totals)
    group = f"Knight Quest, SCAL c = 5, α = 0.05, T = {T:g}: where the time goes"
    rows = [
        Row(group, label, median(taken), "s", least=min(taken), note=f"{100 * median(taken) / whole:.1f} %")
        for label, taken in spent.items()
    ]
    return [*rows, Row(group, "total", whole, "s", least=min(totals))]


def _run(T: int) -> tuple[float, dict[str, float]]:
    agent = SCAL(5.0, p_scale=0.05, r_scale=0.05)
    session = Session(as_world(make("knight-quest")), agent, "scal", horizon=T, seed=0, points=100)
    begun = perf_counter()
    session.run(None, lambda t: None)
    return perf_counter() - begun, session.learner.phases
