"""The regrets of the family beside StatisticalRL's agents of the same names, on its own problems.

Both sides play the same tables from ever new seeds, and regrets are T·g* − Σ rewards with our g*. The value of a row is how many standard
errors of the difference our mean regret lies above theirs: 3 or less is "not worse beyond noise". Rates are the steps per second of the
median run, the start of our calls included.

StatisticalRL's UCRL3 has NOSS, and a line that its paper does not have, on which its regret rests (docs/algorithms/ucrl3.md): ours stands
beside it certified, with NOSS, and with both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from math import nan, sqrt
from pathlib import Path
from statistics import mean, median, stdev
from time import perf_counter
from typing import NamedTuple

import numpy as np
from harness import Row
from peer import PROGRAMS, Peer, PeerError, not_installed

from spanrl import IMEDRL, KLUCRL, MDP, PSRL, UCRL2B, UCRL3, Env, learn, solve
from spanrl.agents.registry import Agent

PACKAGE = "statisticalRL"
PROBLEMS = ("river-swim-6", "ergo-river-swim-6", "grid-4-room")
AGENTS: dict[str, Agent] = {
    "UCRL2B": UCRL2B(),
    "UCRL3": UCRL3(),
    "UCRL3 with NOSS": UCRL3(noss=True),
    "UCRL3 as its program": UCRL3(noss=True, sole_successors=True),
    "KL-UCRL": KLUCRL(),
    "PSRL": PSRL(),
    "IMED-RL": IMEDRL(),
}
HORIZON, THEIR_RUNS, OUR_RUNS = 10**5, 6, 20
SHORTER = {"IMED-RL": 2 * 10**3}  # its peer takes ten milliseconds per step
LIMIT = 60.0  # seconds per run
NOISE = 3.0


class Played(NamedTuple):
    """What came of some runs: seconds and sums of rewards."""

    seconds: Sequence[float]
    rewards: Sequence[float]

    def regret(self, T: int, gain: float) -> tuple[float, float]:
        """Return the mean regret and its standard error."""
        return T * gain - mean(self.rewards), stdev(self.rewards) / sqrt(len(self.rewards))


def family_rows(smoke: bool) -> list[Row]:
    """Return one row per problem and agent."""
    group = f"Regrets beside {PACKAGE}'s: standard errors by which ours is larger"
    reason = not_installed(PACKAGE)
    cases = [(problem, name) for problem in PROBLEMS[: 1 if smoke else None] for name in AGENTS]
    if reason:
        return [Row(group, f"{name}, {problem}", None, "", note=reason) for problem, name in cases]
    return [_row(group, problem, name, smoke) for problem, name in cases]


def _row(group: str, problem: str, name: str, smoke: bool) -> Row:
    T = 200 if smoke else SHORTER.get(name, HORIZON)
    case = f"{name}, {problem}, T = {T:g}"
    with ExitStack() as stack:
        tables = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "tables.npz"
        try:
            peer = stack.enter_context(
                Peer(PROGRAMS / "statisticalrl_learner.py", tables, name.split(maxsplit=1)[0], T, problem)
            )
            theirs = _theirs(peer, 2 if smoke else THEIR_RUNS)
        except PeerError as error:
            return Row(group, case, None, "", note=str(error))
        mdp = MDP.from_dense(**np.load(tables))
    ours = _ours(Env.from_mdp(mdp, rewards="mean"), AGENTS[name], T, 2 if smoke else OUR_RUNS)
    gain = solve(mdp, tol=1e-9).gain
    (mine, error), (other, noise) = ours.regret(T, gain), theirs.regret(T, gain)
    both = sqrt(error**2 + noise**2)
    rates = T / median(ours.seconds), T / median(theirs.seconds)
    note = (
        f"regrets {mine:,.0f} ± {error:,.0f} and {other:,.0f} ± {noise:,.0f}; "
        f"{rates[0]:.3g} and {rates[1]:.3g} steps/s, {rates[0] / rates[1]:,.0f} ×"
    )
    data = {"ours_regret": mine, "peer_regret": other, "ours_steps_s": rates[0], "peer_steps_s": rates[1]}
    return Row(group, case, (mine - other) / both if both else nan, "", NOISE, note=note, data=data)


def _theirs(peer: Peer, runs: int) -> Played:
    answers = [peer.turn(seed, LIMIT) for seed in range(runs)]
    return Played([one["seconds"] for one in answers], [one["reward"] for one in answers])


def _ours(env: Env, agent: Agent, T: int, runs: int) -> Played:
    learn(env, agent, horizon=min(T, 1000), seed=0)  # compiled before
    seconds, rewards = [], []
    for seed in range(runs):
        begun = perf_counter()
        rewards.append(float(learn(env, agent, horizon=T, seed=seed).reward[-1]))
        seconds.append(perf_counter() - begun)
    return Played(seconds, rewards)
