"""Checkers that several agents of the family share: coverage, optimism, certificates and numbers of episodes. Each asserts a claim."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf, log2, sqrt
from typing import Any

import numpy as np
from family_samples import first_state, walled_grid

from coverage_samples import KL_LAWS, N_RUNS, is_refuted, kl_leaves, leaves
from spanrl import ProblemInfo, analyse, learn, make, span_bellman, streams
from spanrl.agents.episodes import TOLERANCE
from spanrl.agents.learner import Learner, Rules
from spanrl.kernels.jit import passed

RIVER = "riverswim[variant=ucrl3,n_states=4]"


@dataclass(frozen=True)
class Coverage:
    """A box, how often it may miss one of two states in so many visits, and what is wrong with it."""

    estimate: Any
    n_visits: int
    most: float
    fault: tuple[tuple[str, Any], ...] = ()


def check_coverage(case: Coverage) -> None:
    """Assert that the simulated share of runs that ever leave the sets does not refute the promise, by an exact binomial bound."""
    assert not is_refuted(leaves(case.estimate, 2, N_RUNS, case.n_visits, **dict(case.fault)), N_RUNS, case.most)


def check_kl_coverage(fault: dict[str, Any]) -> None:
    """Assert the same of KL balls, of two states and of twenty."""
    for law, level in (("two states", 0.3), ("twenty states", 0.9)):
        assert not is_refuted(kl_leaves(*KL_LAWS[law], level, **fault), N_RUNS, level), law


@cache
def optimum(name: str) -> float:
    return float(analyse(make(name).mdp, diameter=False).gain)


def episodes_of(agent: Any, name: str, T: int, look: Any) -> None:
    """Play by hand, and show the learner to ``look`` at the start of every episode."""
    env = make(name)
    env_rng, agent_rng = streams(1)
    learner, s = agent.start(ProblemInfo.from_mdp(env.mdp, T), agent_rng), first_state(env)
    learner.on_episode.append(look)
    for _ in range(T):
        reward, s = env.step(s, learner.act(s), env_rng)
        learner.observe(reward, s)


@dataclass(frozen=True)
class Planning:
    """An agent, and the sets on which its plans must be optimistic: those that its guarantee speaks of."""

    agent: Any
    estimate: Any


def check_optimism(case: Planning) -> None:
    """Assert that the upper end of a plan's bracket is at least g* whenever the true model is plausible."""
    mdp, plausible = make(RIVER).mdp, 0

    def look(learner: Any) -> None:
        nonlocal plausible
        if case.estimate.bounded(learner.counts, learner.episode.start, learner.info).contains(mdp):
            assert learner.episode.gain_high >= optimum(RIVER) - 1e-9, learner.episode.start
            plausible += 1

    episodes_of(case.agent, RIVER, 1500, look)
    assert plausible > 15


def check_certificate(case: Planning) -> None:
    """Assert that brackets are those of the operator on the set, and as narrow as 1/√t_k: a plan is as good as it says."""

    def look(learner: Any) -> None:
        bounded = case.estimate.bounded(learner.counts, learner.episode.start, learner.info)
        step = span_bellman(bounded, learner.bias, inf) - learner.bias
        found = learner.episode.gain_low, learner.episode.gain_high
        assert np.allclose(found, (step.min(), step.max()), rtol=0, atol=1e-9), learner.episode.start
        assert np.ptp(step) <= 1 / sqrt(learner.episode.start) + 1e-9

    episodes_of(case.agent, RIVER, 1500, look)


def check_doubling(agent: Any) -> None:
    """Assert at most SA·log₂(8T/(SA)) episodes (Jaksch et al. 2010, Prop. 18), and one more for each of six states."""
    T, SA = 10**5, 12
    for env in (walled_grid(), "riverswim"):
        assert learn(env, agent, horizon=T, seed=0, gain=0.0).n_episodes[-1] <= SA * log2(8 * T / SA) + 6


@passed(TOLERANCE)
def ten_times(known):
    """Return ten times the tolerance of UCRL."""
    return 10.0 * (known.r_max - known.r_min) / np.sqrt(known.t)


@dataclass(frozen=True)
class Hasty:
    """UCRL whose plans end ten times too early."""

    estimate: Any

    def start(self, info: ProblemInfo, rng: Any) -> Learner:
        return Learner(Rules(self.estimate, tolerance=ten_times), info, rng)
