"""Learning by hand: the loop that ``learn`` runs in compiled code, step by step, with everything logged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanrl import MDP, Env, ProblemInfo, streams

RAGGED_MASK = np.array([[True, False, False], [True, True, False], [False, True, True], [True, True, True]])


def ragged_env() -> Env:
    """Return a problem of four states with one to three actions, Bernoulli rewards in [−1, 2] and two start states."""
    rng = np.random.default_rng(2)
    P = rng.dirichlet(np.full(4, 0.4), size=(4, 3))
    r = rng.uniform(-1.0, 2.0, size=(4, 3))
    mdp = MDP.from_dense(P, r, available=RAGGED_MASK, r_min=-1.0, r_max=2.0, start=[0.25, 0.0, 0.75, 0.0])
    return Env.from_mdp(mdp, "bernoulli")


@dataclass(frozen=True)
class Keeping:
    """An agent that starts the learners of another and keeps them, for a test to look at."""

    agent: Any
    learners: list[Any] = field(default_factory=list, compare=False)

    def start(self, info: ProblemInfo, rng: Any) -> Any:
        learner = self.agent.start(info, rng)
        self.learners.append(learner)
        return learner


@dataclass
class Log:
    """What happened by hand; row t−1 is step t."""

    learner: Any
    env_rng: np.random.Generator
    pair: np.ndarray
    reward: np.ndarray
    episode: np.ndarray
    episodes: list[Any]


def play_by_hand(env: Env, agent: Any, horizon: int, seed: int) -> Log:
    """Play with ``act``, ``env.step`` and ``observe``, on the two streams of the seed."""
    env_rng, agent_rng = streams(seed)
    learner = agent.start(ProblemInfo.from_mdp(env.mdp, horizon), agent_rng)
    pairs, rewards, numbers, episodes = [], [], [], []
    pair_of = {
        (s, a): i for i, (s, a) in enumerate(zip(env.mdp.pair_state.tolist(), env.mdp.action.tolist(), strict=True))
    }
    state = env.reset(env_rng)
    for _ in range(horizon):
        action = learner.act(state)
        if learner.n_episodes > len(episodes):
            episodes.append(learner.episode)
        pairs.append(pair_of[state, action])
        reward, state = env.step(state, action, env_rng)
        learner.observe(reward, state)
        rewards.append(reward)
        numbers.append(len(episodes))
    return Log(learner, env_rng, np.array(pairs), np.array(rewards), np.array(numbers), episodes)
