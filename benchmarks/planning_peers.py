"""Planning against the peers: Garnets that mix fast and slowly, all to the same certified accuracy.

The value of a row is the peer's time over ours. What a peer returns is checked against our bracket: its gain, or the gain of its
policy; a peer that stops too early gets a smaller tolerance, as far as it has one.

While others have their turn, caches and the processor forget: what is brief is solved twice per turn by everybody, and the second counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from math import isnan, nan
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from harness import REPEATS, Row, Timing, interleaved, ratio_row
from numpy.typing import NDArray
from peer import PROGRAMS, Peer, PeerError, not_installed
from textbooks import gain_bias, rows_of

from models import blocks, garnet, padded_solve, padded_unequal
from spanrl import MDP, Policy, evaluate, solve
from spanrl.errors import SpanrlError

A, BRANCHES, STAY = 4, 6, 0.99
ACCURACY = 1e-6
TOLERANCES = (1e-6, 1e-7, 1e-8)  # the peer's own, tried from the left until its gain is as accurate as ours
SHOWN = 10**4  # the size that docs/speed.md shows
LIMIT = 20.0  # seconds per solve; what takes longer is shown as a lower bound
BRIEF = 0.05  # seconds of a solve below which the first one of a turn is not counted
TARGET, YARDSTICK_TARGET = 3.0, 1.0  # the yardstick is bound by memory bandwidth, as we are

Check = Callable[[dict[str, Any]], str | None]


@dataclass(frozen=True)
class Way:
    """One way to ask a package: the program, its model file and further arguments, and how to call it in the table."""

    package: str
    program: str
    model: str
    name: str = ""
    arguments: tuple[str, ...] = ()
    tolerances: tuple[float, ...] = TOLERANCES
    python: Path | None = None  # that of the peers unless given


def launch(way: Way, folder: Path, threads: int | None = None) -> Peer:
    """Start the program of a way with its model in a folder."""
    arguments = [folder / word if word.endswith(".npy") else word for word in way.arguments]
    options: dict[str, Any] = {} if way.python is None else {"python": way.python}
    if threads is not None:
        options["threads"] = threads
    return Peer(PROGRAMS / way.program, folder / way.model, *arguments, **options)


class Pool:
    """Peers that stay for the next model, each with one thread; one that has ended is started again."""

    def __init__(self) -> None:
        """Begin with none."""
        self._peers: dict[Way, Peer] = {}

    def launch(self, way: Way, folder: Path) -> Peer:
        """Let the program of a way read the model in a folder, always the same one."""
        peer = self._peers.get(way)
        if peer is None or not peer.is_running:
            peer = self._peers[way] = launch(way, folder, threads=1)
            peer.kept = True
        else:
            peer.load(folder / way.model)
        return peer

    def close(self) -> None:
        """End them all."""
        for peer in self._peers.values():
            peer.close()


@dataclass(frozen=True)
class Terms:
    """What a comparison measures: by which clock ("seconds" or "processor"), to which limit, and which ways are tried."""

    clock: str = "seconds"
    limit: float | None = None  # seconds per solve; LIMIT unless given
    every_way: bool = False  # also after one that gave no answer
    launch: Callable[[Way, Path], Peer] = launch

    @property
    def most(self) -> float:
        """Seconds that a solve may take."""
        return LIMIT if self.limit is None else self.limit


def _mdpsolver(algorithm: str, threads: str) -> Way:
    long = {"mpi": "modified policy iteration", "vi": "value iteration"}[algorithm]
    name = f"{long}, {'one thread' if threads == 'one' else 'its own threads'}"
    return Way("mdpsolver", "mdpsolver_average.py", "model.npz", name, ("policy.npy", algorithm, threads))


PEERS = {
    "mdpsolver": tuple(_mdpsolver(algorithm, threads) for threads in ("one", "many") for algorithm in ("mpi", "vi")),
    "stormpy": (Way("stormpy", "stormpy_average.py", "model.drn"),),
    "pymdptoolbox": (Way("pymdptoolbox", "pymdptoolbox_average.py", "model.npz"),),
}


@dataclass
class Contestant:
    """A peer that takes part, or the reason why it does not (any more)."""

    package: str
    peer: Peer | None = None
    tolerance: float = nan
    first: float = nan  # seconds of its first solve; where ways are compared, the longer of two
    name: str = ""
    reason: str = ""
    terms: Terms = Terms()

    def turn(self) -> float:
        """Solve, twice where it is brief; one that fails is not asked again."""
        if self.peer is None:
            return nan
        try:
            seconds = self.ask(self.peer, self.tolerance)
            return seconds if seconds > BRIEF else self.ask(self.peer, self.tolerance)
        except PeerError as error:
            self.peer, self.reason = None, f"{error}, after {self.first:.3g} s the first time"
            return nan

    def ask(self, peer: Peer, tolerance: float, limit: float | None = None) -> float:
        """Let it solve once; return what that took by the clock of the comparison."""
        if peer.kept:
            peer.prepare(tolerance)
        clock = self.terms.clock
        return float(peer.turn(tolerance, limit or self.terms.most, processor=clock == "processor")[clock])


def planning_peer_rows(smoke: bool) -> list[Row]:
    """Return one row a peer and model."""
    kinds: tuple[tuple[str, Callable[[int], MDP], tuple[int, ...]], ...] = (
        ("fast mixing", lambda S: garnet(S, A, BRANCHES), (10**3, 10**4, 10**5)),
        ("slow mixing", lambda S: garnet(S, A, BRANCHES, stay=STAY), (10**3, 10**4, 10**5)),
        ("slow mixing, two halves", lambda S: blocks(S, A, BRANCHES), (10**3, 10**4)),
    )
    rows = []
    for kind, make, sizes in kinds:
        for S in (100,) if smoke else sizes:
            rows += _case(kind, make(S), 2 if smoke else REPEATS)
    return rows


def _case(kind: str, mdp: MDP, repeats: int) -> list[Row]:
    solution = solve(mdp, tol=ACCURACY)
    low, high = solution.gain_bounds
    yardstick = padded_unequal(mdp, A)
    is_wrong = partial(wrong, low - ACCURACY, high + ACCURACY, mdp)
    reason = is_wrong({"gain": padded_solve(*yardstick, ACCURACY)})
    assert reason is None, reason
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_model(mdp, folder)
        contestants = [enter(package, ways, folder, is_wrong) for package, ways in PEERS.items()]
        for contestant in contestants:
            if contestant.peer is not None:
                stack.enter_context(contestant.peer)
        candidates: dict[str, Callable[[], float | None]] = {
            "ours": lambda: _seconds(lambda: solve(mdp, tol=ACCURACY)),
            "yardstick": lambda: _seconds(lambda: padded_solve(*yardstick, ACCURACY)),
            **{c.package: c.turn for c in contestants},
        }
        timings = interleaved(candidates, repeats, warm_up=0)  # all have solved it once above
    group = f"Planning against peers, {kind}, to {ACCURACY:g}: their time over ours"
    size = f"S = {mdp.n_states:,}"
    ours = timings["ours"]
    label = f"Planning, {kind}, {size}: time of {{}} over ours" if mdp.n_states == SHOWN else ""
    rows = [
        _measured(
            group, f"{size}: plain yardstick kernel", "yardstick", timings["yardstick"], ours, YARDSTICK_TARGET, label
        )
    ]
    for contestant in contestants:
        case = f"{size}: {contestant.package}"
        if contestant.reason:
            rows.append(_failed(group, case, contestant, ours))
        else:
            timing = timings[contestant.package]
            rows.append(_measured(group, case, contestant.name, timing, ours, TARGET, label))
    return rows


def enter(package: str, ways: tuple[Way, ...], folder: Path, is_wrong: Check, terms: Terms = Terms()) -> Contestant:
    """Let a package solve the model in each of its ways and keep the fastest; its result is checked.

    Threads that wait busily are fast at one time and very slow at another, so that of two solves the longer one counts.
    """
    best = Contestant(package, reason=(ways[0].python is None and not_installed(package)) or "", terms=terms)
    if best.reason:
        return best
    for way in ways:
        limit = terms.most if best.peer is None else min(terms.most, 1.0 + 2 * best.first)  # it cannot win beyond that
        tried = _try(way, folder, is_wrong, terms, limit, twice=len(ways) > 1)
        if best.peer is None or (tried.peer is not None and tried.first < best.first):
            best, tried = tried, best
        if tried.peer is not None:
            tried.peer.release()
        if best.peer is None and best.reason.startswith("no answer") and not terms.every_way:
            break
    return best


def _try(way: Way, folder: Path, is_wrong: Check, terms: Terms, limit: float, *, twice: bool) -> Contestant:
    contestant = Contestant(way.package, terms=terms)
    try:
        peer = terms.launch(way, folder)
        contestant.name = f"{way.package} {peer.version}" + (f" ({way.name})" if way.name else "")
        for tolerance in way.tolerances:
            contestant.first = contestant.ask(peer, tolerance, limit)
            reason = is_wrong(peer.result())
            if reason is None:
                if twice:
                    contestant.first = max(contestant.first, contestant.ask(peer, tolerance, limit))
                contestant.peer, contestant.tolerance = peer, tolerance
                return contestant
        peer.release()
        contestant.reason = reason or ""
    except PeerError as error:
        contestant.reason = str(error)
    return contestant


def wrong(low: float, high: float, mdp: MDP, result: dict[str, Any]) -> str | None:
    """Return why a result is not as accurate as it must be: its gain, or that of its policy, outside [low, high]."""
    gain = result.get("gain")
    if gain is None:
        gain = _policy_gain(mdp, np.load(result["policy"]).astype(int))
    return None if low <= gain <= high else f"its gain is {gain:.9g}, ours between {low:.9g} and {high:.9g}"


def _policy_gain(mdp: MDP, actions: NDArray[np.int64]) -> float:
    """Return the smallest gain of a policy; where we cannot tell, the textbook does."""
    try:
        return float(evaluate(mdp, Policy(np.eye(mdp.n_actions)[actions])).gain.min())
    except SpanrlError:
        pairs = np.flatnonzero(mdp.action == actions[mdp.pair_state])
        return gain_bias(rows_of(mdp)[pairs], mdp.reward[pairs])[0]


def write_model(mdp: MDP, folder: Path) -> None:
    """Write the model as plain arrays and in Storm's explicit format."""
    names = ("pair_ptr", "action", "succ_ptr", "succ", "prob", "reward")
    np.savez(folder / "model.npz", **{name: getattr(mdp, name) for name in names})
    ptr, succ, prob, reward = (a.tolist() for a in (mdp.succ_ptr, mdp.succ, mdp.prob, mdp.reward))
    with (folder / "model.drn").open("w") as file:
        file.write(f"@type: MDP\n@parameters\n\n@reward_models\nreward\n@nr_states\n{mdp.n_states}\n")
        file.write(f"@nr_choices\n{mdp.n_pairs}\n@model\n")
        last = -1
        for i, (state, action) in enumerate(zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True)):
            if state != last:
                last = state
                file.write(f"state {state} [0]{' init' if state == 0 else ''}\n")
            file.write(f"\taction {action} [{reward[i]!r}]\n")
            file.writelines(f"\t\t{succ[j]} : {prob[j]!r}\n" for j in range(ptr[i], ptr[i + 1]))


def _seconds(run: Callable[[], object]) -> float:
    seconds = 0.0
    for _ in range(2):
        begun = perf_counter()
        run()
        seconds = perf_counter() - begun
        if seconds > BRIEF:
            break
    return seconds


def _measured(group: str, case: str, name: str, peer: Timing, ours: Timing, target: float, label: str) -> Row:
    data: dict[str, Any] = {
        "peer": name, "ours_s": ours.median, "peer_s": peer.median, "ours_min_s": ours.least, "peer_min_s": peer.least,
    }  # fmt: skip
    if label:
        data["readme"] = label.format(name.partition(" (")[0])
    note = f"{name} {peer.median:.3g} s, ours {ours.median:.3g} s"
    return ratio_row(group, case, peer, ours, target=target, at_least=True, note=note, data=data)


def _failed(group: str, case: str, contestant: Contestant, ours: Timing) -> Row:
    note = contestant.reason
    if note.startswith("no answer") and isnan(contestant.first):
        note += f", at least {LIMIT / ours.median:.2g} × ours ({ours.median:.3g} s)"
    data = {"peer": contestant.name or contestant.package, "reason": contestant.reason, "ours_s": ours.median}
    return Row(group, case, None, "×", at_least=True, note=note, data=data)
