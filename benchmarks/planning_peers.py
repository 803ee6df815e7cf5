"""Planning against the peers: Garnets that mix fast and slowly, all to the same certified accuracy.

The value of a row is the peer's time over ours. What a peer returns is checked against our bracket: its gain, or the gain of its
policy; a peer that stops too early gets a smaller tolerance, as far as it has one.

While others have their turn, caches and the processor forget: what is brief is solved twice a turn by everybody, and the second counts.
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
from peer import PROGRAMS, Peer, PeerError, not_installed

from models import blocks, garnet, padded_solve, padded_unequal
from spanrl import MDP, Policy, evaluate, solve

A, BRANCHES, STAY = 4, 6, 0.99
ACCURACY = 1e-6
TOLERANCES = (1e-6, 1e-7, 1e-8)  # the peer's own, tried from the left until its gain is as accurate as ours
SHOWN = 10**4  # the size that the README shows
LIMIT = 20.0  # seconds a solve; what takes longer is shown as a lower bound
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
    arguments: tuple[object, ...] = ()


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

    def turn(self) -> float:
        """Solve, twice where it is brief; one that fails is not asked again."""
        if self.peer is None:
            return nan
        try:
            seconds = float(self.peer.turn(self.tolerance, LIMIT)["seconds"])
            return seconds if seconds > BRIEF else float(self.peer.turn(self.tolerance, LIMIT)["seconds"])
        except PeerError as error:
            self.peer, self.reason = None, f"{error}, after {self.first:.3g} s the first time"
            return nan


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


def enter(package: str, ways: tuple[Way, ...], folder: Path, is_wrong: Check) -> Contestant:
    """Let a package solve the model in each of its ways and keep the fastest; its result is checked.

    Threads that wait busily are fast at one time and very slow at another, so that of two solves the longer one counts.
    """
    best = Contestant(package, reason=not_installed(package) or "")
    if best.reason:
        return best
    for way in ways:
        limit = LIMIT if best.peer is None else min(LIMIT, 1.0 + 2 * best.first)  # it cannot win beyond that
        tried = _try(way, folder, is_wrong, limit, twice=len(ways) > 1)
        if best.peer is None or (tried.peer is not None and tried.first < best.first):
            best, tried = tried, best
        if tried.peer is not None:
            tried.peer.close()
        if best.peer is None and best.reason.startswith("no answer"):
            break
    return best


def _try(way: Way, folder: Path, is_wrong: Check, limit: float, *, twice: bool) -> Contestant:
    contestant = Contestant(way.package)
    arguments = [folder / word if str(word).endswith(".npy") else word for word in way.arguments]
    try:
        peer = Peer(PROGRAMS / way.program, folder / way.model, *arguments)
        contestant.name = f"{way.package} {peer.version}" + (f" ({way.name})" if way.name else "")
        for tolerance in TOLERANCES:
            contestant.first = float(peer.turn(tolerance, limit)["seconds"])
            reason = is_wrong(peer.result())
            if reason is None:
                if twice:
                    contestant.first = max(contestant.first, float(peer.turn(tolerance, limit)["seconds"]))
                contestant.peer, contestant.tolerance = peer, tolerance
                return contestant
        peer.close()
        contestant.reason = reason or ""
    except PeerError as error:
        contestant.reason = str(error)
    return contestant


def wrong(low: float, high: float, mdp: MDP, result: dict[str, Any]) -> str | None:
    """Return why a result is not as accurate as it must be: its gain, or that of its policy, outside [low, high]."""
    gain = result.get("gain")
    if gain is None:
        probs = np.eye(mdp.n_actions)[np.load(result["policy"]).astype(int)]
        gain = float(evaluate(mdp, Policy(probs)).gain.min())
    return None if low <= gain <= high else f"its gain is {gain:.9g}, ours between {low:.9g} and {high:.9g}"


def write_model(mdp: MDP, folder: Path) -> None:
    """Write the model as plain arrays and in Storm's explicit format."""
    arrays = {"succ_ptr": mdp.succ_ptr, "succ": mdp.succ, "prob": mdp.prob}
    np.savez(folder / "model.npz", reward=mdp.reward.reshape(mdp.n_states, -1), **arrays)
    ptr, succ, prob, reward = (a.tolist() for a in (mdp.succ_ptr, mdp.succ, mdp.prob, mdp.reward))
    with (folder / "model.drn").open("w") as file:
        file.write(f"@type: MDP\n@parameters\n\n@reward_models\nreward\n@nr_states\n{mdp.n_states}\n")
        file.write(f"@nr_choices\n{mdp.n_pairs}\n@model\n")
        for i, (state, action) in enumerate(zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True)):
            if action == 0:
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
