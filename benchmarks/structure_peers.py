"""Planning on models of real structure against two textbooks and the peers, all to the same accuracy of the gain.

Everybody, we as well, solves in a process of its own with one thread, and the time of the processor counts. Who takes much longer than we
do is stopped; the ratio is then a lower bound. The machinery, and how results are checked, is that of :mod:`planning_peers`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness import REPEATS, Row, Timing, interleaved, ratio_row
from peer import GIB
from planning_peers import ACCURACY, PEERS, Check, Contestant, Pool, Terms, Way, enter, write_model, wrong
from structures import CASES, KINDS, Make
from textbooks import METHODS

from spanrl import MDP

LIMIT, LEAST_LIMIT = 60.0, 1.0  # seconds per solve of the others, …
ENOUGH = 3.5  # … who may take so many times as long as we do
OUR_LIMIT = 30.0
TURNS = 2.0  # seconds for the turns of a case: slow ones have fewer
DENSE = 1 * GIB  # of a matrix S × S
TEXTBOOK_TARGET, PEER_TARGET = 1 / 1.1, 1.0
CLEAR, CLEAR_TARGET = 3.0, 2 / 3  # how many times faster than every peer, and on which part of the cases
GROUP = f"Real structure, to {ACCURACY:g}"


def _own(name: str) -> Way:
    return Way("spanrl", "own_average.py", "model.npz", name, (name,), (ACCURACY,), Path(sys.executable))


def _quantecon(method: str) -> Way:
    name, tolerances = method.replace("_", " "), (1e-4, 1e-6, 1e-8)  # of 1 − β
    return Way("quantecon", "quantecon_average.py", "model.npz", name, ("policy.npy", method), tolerances)


RIVALS = {
    "mdpsolver": tuple(way for way in PEERS["mdpsolver"] if "one" in way.arguments),
    "stormpy": PEERS["stormpy"],
    "pymdptoolbox": PEERS["pymdptoolbox"],
    "quantecon": (_quantecon("policy_iteration"), _quantecon("modified_policy_iteration")),
}


@dataclass(frozen=True)
class Time:
    """What one of the others took: its turns, or only the limit that it exceeded, or nothing, and why."""

    name: str
    timing: Timing | None = None
    limit: float | None = None
    reason: str = ""

    @property
    def seconds(self) -> float | None:
        """The median, or a lower bound."""
        return self.timing.median if self.timing else self.limit

    def __str__(self) -> str:
        """Say it in a few words."""
        if self.timing:
            return f"{self.name} {self.timing.median:.3g} s"
        return f"{self.name} more than {self.limit:.3g} s" if self.limit else f"{self.name} none ({self.reason})"


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    case: str
    ours: Timing | None
    textbooks: Sequence[Time] = ()
    peers: Sequence[Time] = ()
    reason: str = ""


def structure_rows(smoke: bool) -> list[Row]:
    """Return a row per case against the better textbook, one against the fastest peer, and how often we are clearly faster."""
    cases = {name: kind.smoke for name, kind in KINDS.items()} if smoke else CASES
    outcomes = outcomes_of(cases, 2 if smoke else REPEATS)
    textbooks = [_row(f"{GROUP}: the better textbook over ours", o, o.textbooks, TEXTBOOK_TARGET) for o in outcomes]
    peers = [_row(f"{GROUP}: the fastest peer over ours", o, o.peers, PEER_TARGET) for o in outcomes]
    clear = [row.case for row in peers if row.value is not None and row.value >= CLEAR]
    note = f"{len(clear)} of {len(peers)} cases"
    case = f"part of the cases with {CLEAR:g} × over every peer"
    summary = Row(f"{GROUP}: summary", case, len(clear) / len(peers), "", CLEAR_TARGET, at_least=True, note=note)
    return [*textbooks, *peers, summary]


def outcomes_of(cases: Mapping[str, Make], repeats: int = REPEATS, limit: float | None = None) -> list[Outcome]:
    """Measure some cases; the ``limit`` of the others, in seconds, is by default a few times what we take."""
    with tempfile.TemporaryDirectory() as name, closing(Pool()) as pool:
        return [_outcome(case, make(), pool, Path(name), repeats, limit) for case, make in cases.items()]


def _outcome(case: str, mdp: MDP, pool: Pool, folder: Path, repeats: int, limit: float | None) -> Outcome:
    write_model(mdp, folder)
    terms = Terms("processor", OUR_LIMIT, launch=pool.launch)
    ours = enter("spanrl", (_own("solve"),), folder, lambda result: None, terms)
    seconds = ours.turn()
    if ours.peer is None:
        return Outcome(case, None, reason=ours.reason)
    result = ours.peer.result()
    check = partial(_why_wrong, partial(wrong, result["low"] - ACCURACY, result["high"] + ACCURACY, mdp))
    most = limit or min(max(ENOUGH * seconds, LEAST_LIMIT), LIMIT)
    terms = replace(terms, limit=most)
    textbooks = [_named(name, enter("spanrl", (_own(name),), folder, check, terms)) for name in METHODS]
    peers = [_enter_peer(package, folder, check, terms, mdp) for package in RIVALS]
    taking_part = [one for one in (*textbooks, *peers) if one.peer is not None]
    total = seconds + sum(one.first for one in taking_part)
    turns = interleaved(
        {"ours": ours.turn} | {one.package: one.turn for one in taking_part},
        min(max(int(TURNS / total), 1), repeats),
        warm_up=0,  # all have solved it before
    )
    if ours.reason:
        return Outcome(case, None, reason=ours.reason)
    times = [_time(one, turns.get(one.package), most) for one in (*textbooks, *peers)]
    return Outcome(case, turns["ours"], times[: len(textbooks)], times[len(textbooks) :])


def _enter_peer(package: str, folder: Path, check: Check, terms: Terms, mdp: MDP) -> Contestant:
    dense = 8.0 * mdp.n_states**2
    if package == "pymdptoolbox" and dense > DENSE:
        return Contestant(package, reason=f"it makes a dense matrix of {dense / GIB:.2g} GiB")
    every = package == "quantecon"  # its two methods have nothing in common
    return enter(package, RIVALS[package], folder, check, replace(terms, every_way=every))


def _named(name: str, contestant: Contestant) -> Contestant:
    contestant.package = contestant.name = name
    return contestant


def _why_wrong(check: Check, result: dict[str, Any]) -> str | None:
    try:
        return check(result)
    except ArithmeticError:
        return "its policy could not be evaluated"


def _time(one: Contestant, timing: Timing | None, limit: float) -> Time:
    if one.peer is not None:
        return Time(one.name, timing)
    return Time(one.package, limit=limit if one.reason.startswith("no answer") else None, reason=one.reason)


def _row(group: str, outcome: Outcome, others: Sequence[Time], target: float) -> Row:
    """Return the row of the fastest of the others over us; a ratio that is only bounded from below says so in its note."""
    if outcome.ours is None:
        return Row(group, outcome.case, None, "×", target, at_least=True, note=f"ours: {outcome.reason}")
    ours = outcome.ours
    data: dict[str, Any] = {"ours_s": ours.median, "others_s": {one.name: one.seconds for one in others}}
    note = "; ".join(map(str, others)) + f"; ours {ours.median:.3g} s"
    best = min((one for one in others if one.seconds is not None), key=lambda one: one.seconds or 0.0, default=None)
    if best is None:
        return Row(group, outcome.case, None, "×", at_least=True, note=note, data=data)
    if best.timing is None:
        assert best.limit is not None
        value = best.limit / ours.median
        return Row(group, outcome.case, value, "×", target, at_least=True, note=f"at least: {note}", data=data)
    return ratio_row(group, outcome.case, best.timing, ours, target=target, at_least=True, note=note, data=data)
