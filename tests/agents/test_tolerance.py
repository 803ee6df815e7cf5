"""The accuracy of a plan, ε_k = (r_max − r_min)/√t_k, from both sides: planning from 0 ends at the first sweep that reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, sqrt

import numpy as np
import pytest

from spanrl import MDP, SCAL, UCRL, UCRL2, BoundedMDP, Env, ProblemInfo, learn, span_bellman, streams
from spanrl.agents.learner import Learner
from spanrl.agents.registry import Agent

LOW, HIGH = -3.0, 1.0


def fast_mixing() -> Env:
    """Return four states, each reached from each, with rewards in [−3, 1]."""
    rng = np.random.default_rng(3)
    P, r = rng.dirichlet(np.ones(4), size=(4, 2)), rng.uniform(LOW, HIGH, size=(4, 2))
    return Env.from_mdp(MDP.from_dense(P, r, r_min=LOW, r_max=HIGH), rewards="mean")


ENV = fast_mixing()
SMALL = {"p_scale": 0.01, "r_scale": 0.01}


def episodes(agent: Agent, horizon: int) -> Iterator[Learner]:
    """Play by hand; yield the learner at the start of every episode."""
    env_rng, agent_rng = streams(0)
    learner, state, begun = agent.start(ProblemInfo.from_mdp(ENV.mdp), agent_rng), ENV.reset(env_rng), 0
    for _ in range(horizon):
        action = learner.act(state)
        if learner.n_episodes > begun:
            begun = learner.n_episodes
            yield learner
        reward, state = ENV.step(state, action, env_rng)
        learner.observe(reward, state)


def plain_iteration(model: BoundedMDP, c: float, tol: float, contraction: float = 0.0) -> tuple[int, float, float]:
    """Return the number of the first sweep from v = 0 at which sp(T_c v − v) + 2γⁿ/(1−γ) sp(v₁ − v₀) ≤ tol, and the bracket there."""
    v, first = np.zeros(model.n_states), inf
    for n in range(10_000):
        step = span_bellman(model, v, c) - v
        width = float(np.ptp(step))
        first = min(first, width) if n == 0 else first
        if width + 2 * contraction**n / (1 - contraction) * first * (contraction > 0) <= tol:
            return n + 1, float(step.min()), float(step.max())
        v = v + step
    raise AssertionError("plain iteration did not come to an end")


@pytest.mark.parametrize(
    "agent",
    [
        UCRL(**SMALL, warm_start=False),
        SCAL(1.0, **SMALL, warm_start=False),
        SCAL(5.0, **SMALL, warm_start=False),
        UCRL2(warm_start=False),
    ],
    ids=lambda agent: f"{type(agent).__name__}-{getattr(agent, 'span_bound', '')}",
)
def test_planning_ends_at_the_first_sweep_that_is_accurate_enough(agent: Agent) -> None:
    horizon, sweeps = 20_000, []
    others: dict[str, list[int]] = {"half": [], "a tenth": [], "from r_max alone": [], "twice": []}
    for learner in episodes(agent, horizon):
        episode, c = learner.episode, learner.rules.span_bound
        assert episode is not None
        model, root = learner.confidence_set().augment(), sqrt(episode.start)
        wanted = plain_iteration(model, c, (HIGH - LOW) / root)
        assert episode.sweeps == wanted[0]
        assert (episode.gain_low, episode.gain_high) == pytest.approx(wanted[1:], abs=1e-12)
        sweeps.append(episode.sweeps)
        sizes = {
            "half": (HIGH - LOW) / 2,
            "a tenth": (HIGH - LOW) / 10,
            "from r_max alone": HIGH,
            "twice": 2 * (HIGH - LOW),
        }
        for name, size in sizes.items():
            others[name].append(plain_iteration(model, c, size / root)[0])
    for name, found in others.items():
        assert found != sweeps, f"these runs cannot tell ε_k from {name}"
    assert learn(ENV, agent, horizon=horizon, seed=0).episodes["sweeps"].tolist() == sweeps


def test_with_perturbation_planning_ends_by_the_rule_of_the_theorem() -> None:
    several = 0
    for learner in episodes(SCAL(0.5, **SMALL, perturb=True), 100):
        episode = learner.episode
        assert episode is not None
        eta = learner._planner._eta(learner.counts, episode.start, 0.5)
        model = learner.confidence_set().augment().perturb(eta, 0)
        sweeps, low, high = plain_iteration(model, 0.5, (HIGH - LOW) / sqrt(episode.start), 1 - eta)
        assert episode.sweeps == sweeps
        assert (episode.gain_low, episode.gain_high) == pytest.approx((low, high), abs=1e-12)
        several += sweeps > 1
    assert several > 5


def test_a_warm_start_is_as_accurate_and_no_more_is_asked_of_it() -> None:
    """The bracket is at most ε_k wide, and in some episode wider than what a mistaken ε_k would allow."""
    widths = []
    for learner in episodes(SCAL(1.0, **SMALL), 20_000):
        assert learner.episode is not None
        widths.append((learner.episode.gain_high - learner.episode.gain_low) * sqrt(learner.episode.start))
    assert max(widths) <= HIGH - LOW
    assert max(widths) > max(HIGH, (HIGH - LOW) / 2)
