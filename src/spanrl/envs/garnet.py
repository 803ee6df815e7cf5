"""Garnets: random MDPs with few successors, alone or with a slow chain beside them."""

from __future__ import annotations

import numpy as np

from spanrl.envs.env import Env, Outcome
from spanrl.options import require

Outcomes = dict[tuple[int, int], list[Outcome]]
_MOST_PAIRS = 10**5  # built outcome by outcome


def garnet(n_states: int = 20, n_actions: int = 3, branching: int = 3, seed: int = 0) -> Env:
    """Return a random MDP with few successors per pair.

    States:
        s0 … s(S − 1).
    Actions:
        a0 … a(A − 1), in every state.
    Transitions:
        Each pair has b distinct successors, uniform among all states; their probabilities are the gaps between b − 1
        sorted uniform numbers in [0, 1].
    Rewards:
        r(s, a) uniform in [0, 1], paid as it is.
    Start:
        s0.
    Constants:
        S = 20, A = 3, g* = 0.795191, sp(h*) = 1.63698, D = 12.3179. Other seeds have others; with small b, A and S some
        states may not be reachable (D = ∞).
    Args:
        n_states: S, at least 2.
        n_actions: A, at least 1; S·A ≤ 100 000.
        branching: b, from 1 to S.
        seed: a whole number ≥ 0. Equal seeds give equal bits, whatever else is drawn.
    Source:
        Archibald, McKinnon & Thomas, Journal of the Operational Research Society 1995; Bhatnagar et al., Automatica
        2009.
    """
    outcomes, _ = _random("garnet", n_states, n_actions, branching, seed)
    return _env(outcomes, n_actions, [f"s{s}" for s in range(n_states)])


def garnet_chain(
    n_states: int = 20,
    n_actions: int = 3,
    branching: int = 3,
    chain_length: int = 5,
    enter: float = 0.01,
    advance: float = 0.05,
    seed: int = 0,
) -> Env:
    """Return a Garnet and a slow chain: a large diameter.

    States:
        s0 … of the Garnet, and the links c0 … of the chain.
    Actions:
        a0 …; in the chain a0 alone.
    Transitions:
        Those of the Garnet with the same seed, except that a0 in s0 enters c0 with probability enter (the other
        probabilities shrink). A link advances with probability advance and stays otherwise; the last one leads to the
        last state of the Garnet.
    Rewards:
        r(s, a) uniform in [0, 1], paid as it is; the links, too, have rewards of their own.
    Start:
        s0.
    Constants:
        S = 25, A = 3, g* = 0.759198, sp(h*) = 33.4656, D = 714.040.
    Args:
        n_states, n_actions, branching: those of the Garnet.
        chain_length: number of links, at least 1.
        enter: probability of entering the chain from (s0, a0), in (0, 1).
        advance: probability of leaving a link, in (0, 1].
        seed: that of the Garnet; the rewards of the links are drawn after it.
    Source:
        The experiments of Fruit, Pirotta & Lazaric, NeurIPS 2018 (TUCRL), in the authors' program, which draws without
        a seed, enters with 0.01/1.01 and mixes state 0 into every row of the Garnet.
    """
    who = "garnet-chain"
    require(1 <= chain_length <= _MOST_PAIRS, who, f"chain_length must lie in 1..{_MOST_PAIRS}", chain_length, "Try 5.")
    require(0 < enter < 1, who, "enter must lie in (0, 1)", enter, "The usual value is 0.01.")
    require(0 < advance <= 1, who, "advance must lie in (0, 1]", advance, "The usual value is 0.05.")
    outcomes, rng = _random(who, n_states, n_actions, branching, seed)
    first = outcomes[0, 0]
    entered = Outcome(enter, n_states, first[0].reward)
    outcomes[0, 0] = [*(o._replace(prob=o.prob * (1 - enter)) for o in first), entered]
    for i, reward in enumerate(rng.random(chain_length).tolist()):
        link, after = n_states + i, n_states + i + 1 if i + 1 < chain_length else n_states - 1
        outcomes[link, 0] = [Outcome(1 - advance, link, reward), Outcome(advance, after, reward)]
    names = [f"s{s}" for s in range(n_states)] + [f"c{i}" for i in range(chain_length)]
    return _env(outcomes, n_actions, names)


def _random(who: str, n_states: int, n_actions: int, branching: int, seed: int) -> tuple[Outcomes, np.random.Generator]:
    """Return the outcomes of a Garnet and the generator that made them."""
    require(n_states >= 2, who, "n_states must be at least 2", n_states, "Try 20.")
    require(n_actions >= 1, who, "n_actions must be at least 1", n_actions, "Try 3.")
    rule = f"n_states · n_actions must be at most {_MOST_PAIRS}"
    require(n_states * n_actions <= _MOST_PAIRS, who, rule, n_states * n_actions, "Use MDP.from_pairs for more.")
    require(1 <= branching <= n_states, who, "branching must lie in 1..n_states", branching, "Try 3.")
    require(seed >= 0, who, "seed must be at least 0", seed, "0 is the default.")
    rng = np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(seed))
    )  # uniform numbers alone: their bits are stable
    outcomes = {}
    for s in range(n_states):
        for a in range(n_actions):
            succ = _distinct(rng.random(branching).tolist(), n_states)
            gaps = np.diff(np.sort(rng.random(branching - 1)), prepend=0.0, append=1.0).tolist()
            reward = rng.random()
            outcomes[s, a] = [Outcome(p, t, reward) for p, t in zip(gaps, succ, strict=True)]
    return outcomes, rng


def _distinct(uniform: list[float], n: int) -> list[int]:
    """Return as many distinct numbers of 0 … n − 1 as there are uniform ones, every set equally likely (Floyd's method)."""
    chosen: dict[int, None] = {}
    for u, j in zip(uniform, range(n - len(uniform), n), strict=True):
        t = int(u * (j + 1))
        chosen[j if t in chosen else t] = None
    return list(chosen)


def _env(outcomes: Outcomes, n_actions: int, names: list[str]) -> Env:
    return Env.from_outcomes(outcomes, state_names=names, action_names=[f"a{a}" for a in range(n_actions)])
