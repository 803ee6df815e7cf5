"""Learning against the peers: steps per second of StatisticalRL's learners on its own RiverSwim, and ours on the same tables.

The value of a row is our rate over theirs at the same horizon, the start of our calls included; a turn of theirs is one run, of ours the
mean of 20, which take 30 ms together. Regrets are T·g* − Σ rewards with our g*, for both. SCAL's bound on the span is the true span,
rounded up; α = 0.05 scales its radii as in the paper's Knight Quest.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil, nan
from pathlib import Path
from statistics import mean, median
from time import perf_counter

import numpy as np
from harness import REPEATS, Row, Timing, interleaved, ratio_row
from peer import PROGRAMS, Peer, PeerError, not_installed

from spanrl import MDP, SCAL, UCRL, Env, analyse, learn, solve
from spanrl.agents.registry import Agent

PACKAGE = "statisticalRL"
LEARNERS = ("UCRL2B", "UCRL3", "PSRL")
TARGET = 1000.0
TARGETED = ("UCRL2B", "UCRL3")  # PSRL is shown beside
HORIZON, LONG_HORIZON = 10**5, 10**7
LIMIT = 40.0
RUNS = 20  # of ours a turn


@dataclass
class Player:
    """A learner of either side: turn by turn, from ever new seeds."""

    play: Callable[[int], tuple[float, float]]  # number of the turn -> (seconds per run, its mean sum of rewards)
    rewards: list[float] = field(default_factory=list)
    reason: str = ""

    def turn(self) -> float:
        """Play once; one that fails is not asked again."""
        if self.reason:
            return nan
        try:
            seconds, reward = self.play(len(self.rewards))
        except PeerError as error:
            self.reason = str(error)
            return nan
        self.rewards.append(reward)
        return seconds


def learning_peer_rows(smoke: bool) -> list[Row]:
    """Return one row for each of our learners and theirs."""
    T, repeats = (500, 2) if smoke else (HORIZON, REPEATS)
    group = f"Learning against {PACKAGE}, its RiverSwim, T = {T:g}: our steps per second over theirs"
    reason = not_installed(PACKAGE)
    if reason:
        return [Row(group, name, None, "×", at_least=True, note=reason) for name in LEARNERS]
    with ExitStack() as stack:
        tables = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "tables.npz"
        theirs = {name: _theirs(stack, tables, name, T) for name in LEARNERS}
        if not tables.exists():
            return [Row(group, name, None, "×", at_least=True, note=p.reason) for name, p in theirs.items()]
        mdp = MDP.from_dense(**np.load(tables))
        env, gain = Env.from_mdp(mdp, rewards="mean"), solve(mdp, tol=1e-9).gain
        c = float(ceil(analyse(mdp).span))
        agents = {"UCRL": UCRL(), "SCAL": SCAL(c), "SCAL, α = 0.05": SCAL(c, p_scale=0.05, r_scale=0.05)}
        ours = {name: _ours(env, agent, T) for name, agent in agents.items()}
        rates = {name: _rate(env, agent, 10 * T if smoke else LONG_HORIZON) for name, agent in agents.items()}
        candidates = {name: player.turn for name, player in (ours | theirs).items()}
        timings = interleaved(candidates, repeats, warm_up=0)  # ours has played above; theirs has nothing to warm up
    regrets = {name: T * gain - mean(p.rewards) if p.rewards else nan for name, p in (ours | theirs).items()}
    return [
        _row(group, name, peer, theirs[peer].reason, timings, regrets, T, rates[name])
        for peer in LEARNERS
        for name in agents
    ]


def _theirs(stack: ExitStack, tables: Path, name: str, T: int) -> Player:
    try:
        peer = stack.enter_context(Peer(PROGRAMS / "statisticalrl_learner.py", tables, name, T))
    except PeerError as error:
        return Player(lambda _: (nan, nan), reason=str(error))

    def play(seed: int) -> tuple[float, float]:
        answer = peer.turn(seed, LIMIT)
        return answer["seconds"], answer["reward"]

    return Player(play)


def _ours(env: Env, agent: Agent, T: int) -> Player:
    def play(turn: int) -> tuple[float, float]:
        begun = perf_counter()
        runs = [learn(env, agent, horizon=T, seed=RUNS * turn + k) for k in range(RUNS)]
        seconds = perf_counter() - begun
        return seconds / RUNS, mean(float(run.reward[-1]) for run in runs)

    return Player(play)


def _rate(env: Env, agent: Agent, T: int) -> float:
    """Return our steps per second at a long horizon, where the start of the call no longer counts."""
    seconds = []
    for seed in range(3):
        begun = perf_counter()
        learn(env, agent, horizon=T, seed=seed)
        seconds.append(perf_counter() - begun)
    return T / median(seconds)


def _row(
    group: str, name: str, peer: str, reason: str, timings: dict[str, Timing], regrets: dict[str, float], T: int, rate: float
) -> Row:  # fmt: skip
    case = f"{name} against {peer}"
    if reason:
        return Row(group, case, None, "×", at_least=True, note=reason)
    ours, theirs = timings[name], timings[peer]
    note = (
        f"{T / ours.median:.3g} and {T / theirs.median:.3g} steps/s; regrets {regrets[name]:,.0f} and {regrets[peer]:,.0f}; "
        f"ours at a long horizon {rate:.3g} steps/s, {rate * theirs.median / T:,.0f} × theirs"
    )
    data = {
        "peer": f"{PACKAGE} {peer}", "ours_steps_s": T / ours.median, "peer_steps_s": T / theirs.median, "ours_long_steps_s": rate,
        "ours_regret": regrets[name], "peer_regret": regrets[peer], "ours_s": ours.median, "peer_s": theirs.median,
        "ours_min_s": ours.least, "peer_min_s": theirs.least,
    }  # fmt: skip
    target = TARGET if peer in TARGETED else None
    if target and name == "SCAL":
        data["readme"] = f"Learning on {PACKAGE}'s RiverSwim, T = {T:g}: steps per second of SCAL over its {peer}"
    return ratio_row(group, case, theirs, ours, target=target, at_least=True, note=note, data=data)
