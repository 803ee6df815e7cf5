"""The parts of an MDP in short words: probabilities, rewards, transitions; for the labels of a graph and for its description."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from spanrl.envs.env import BERNOULLI, Env
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.paper.page.notation import number
from spanrl.report.text import one_line

_SMALL = 12
_EXACT = 1e-12


def pairs(mdp: MDP) -> list[tuple[int, int]]:
    """List the available pairs (state, action)."""
    return list(zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True))


def state_name(mdp: MDP, s: int) -> str:
    """Return the name of a state on one line, or its number."""
    return one_line(mdp.state_label(s))


def action_name(mdp: MDP, a: int) -> str:
    """Return the name of an action on one line, or its number."""
    return one_line(mdp.action_label(a))


def value(x: float) -> str:
    """Write a number: a short decimal as it is, a simple fraction as one, anything else with four digits.

    >>> value(0.995), value(2 / 3), value(0.5), value(1.0), value(0.123456)
    ('0.995', '2/3', '0.5', '1', '0.1235')
    """
    if abs(x - float(f"{x:.3g}")) > _EXACT:
        fraction = Fraction(x).limit_denominator(_SMALL)
        if abs(x - fraction) < _EXACT:
            return str(fraction).replace("-", "−")
    return number(x)


def reward_text(env: Env, s: int, a: int) -> str:
    """Write what a pair pays: ``r = 1``, ``r ~ Be(2/3)``, or the mean where the reward depends on what happens.

    >>> from spanrl import make
    >>> env = make("three-state")
    >>> reward_text(env, 0, 0), reward_text(env, 2, 1)
    ('r = 0', 'r ~ Be(2/3)')
    """
    mdp, outcomes = env.mdp, env.outcomes(s, a)
    laws = {(outcome.reward, outcome.law) for outcome in outcomes}
    if len(laws) > 1:
        return f"mean r = {value(float(mdp.reward[mdp.pair(s, a)]))}"
    ((mean, law),) = laws
    if law != BERNOULLI:
        return f"r = {value(mean)}"
    if (mdp.r_min, mdp.r_max) == (0.0, 1.0):
        return f"r ~ Be({value(mean)})"
    return f"r = {value(mdp.r_min)} or {value(mdp.r_max)}, mean {value(mean)}"


def transitions(env: Env) -> str:
    """Say in sentences where every action leads and what it pays."""
    mdp, sentences = env.mdp, []
    for s, a in pairs(mdp):
        ends = " and ".join(
            f"to {state_name(mdp, succ)}" + ("" if p == 1 else f" with probability {value(p)}")
            for succ, p in mdp.successors(s, a)
        )
        sentences.append(f"In {state_name(mdp, s)}, {action_name(mdp, a)} ({reward_text(env, s, a)}) leads {ends}.")
    return " ".join(sentences)


def played(mdp: MDP, policy: Policy) -> str:
    """Say what a policy plays in every state."""
    parts = []
    for s in range(mdp.n_states):
        actions = np.flatnonzero(policy.probs[s]).tolist()
        mixed = (f" (probability {value(float(policy.probs[s, a]))})" if len(actions) > 1 else "" for a in actions)
        names = (action_name(mdp, a) + share for a, share in zip(actions, mixed, strict=True))
        parts.append(f"{' or '.join(names)} in {state_name(mdp, s)}")
    return f"In colour: {', '.join(parts)}."
