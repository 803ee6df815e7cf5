"""Runs in compiled code, watched, by hand and resumed, to be compared bit by bit."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanrl import MDP, Env, ProblemInfo, learn, streams
from spanrl.learning.session import Session
from spanrl.learning.snapshot import pack
from spanrl.learning.worlds import as_world
from spanrl.seeding import get_state

CURVE = ("t", "reward", "regret", "pseudo_regret", "span", "n_episodes")


def random_env(seed: int) -> Env:
    """Return a problem with 2 to 7 states, ragged action sets, and rewards that are whole numbers: sums of these are exact."""
    rng = np.random.default_rng(seed)
    S, A = 2 + seed % 6, 3
    low, high = ((0.0, 1.0), (-2.0, 3.0), (1.0, 2.0))[seed % 3]
    available = rng.random((S, A)) < 0.7
    available[np.arange(S), rng.integers(0, A, S)] = True
    P = rng.dirichlet(np.full(S, 0.3), size=(S, A))
    start = rng.dirichlet(np.ones(S))
    r = rng.uniform(low, high, (S, A))
    return Env.from_mdp(MDP.from_dense(P, r, available=available, r_min=low, r_max=high, start=start), "bernoulli")


@dataclass(frozen=True)
class Kept:
    """An agent whose learners are kept; ``watched`` has a function called at every episode, so that Python begins it."""

    agent: Any
    watched: bool = False
    learners: list[Any] = field(default_factory=list, compare=False)
    begun: list[int] = field(default_factory=list, compare=False)

    def start(self, info: ProblemInfo, rng: Any) -> Any:
        learner = self.agent.start(info, rng)
        self.learners.append(learner)
        if self.watched:
            learner.on_episode.append(lambda one: self.begun.append(one.episode.start))
        return learner


def known(learner: Any) -> dict[str, Any]:
    """Return all that a learner knows, bits as bytes, but for what depends on who runs the loop."""
    state = learner.get_state()
    for name in ("seconds", "by_hand", "seen.pair", "seen.reward", "seen.succ", "seen.times"):
        del state[name]
    state["rng"] = get_state(learner.rng)
    return {name: part.tobytes() if isinstance(part, np.ndarray) else part for name, part in state.items()}


def curves(run: Any, rows: int | None = None) -> dict[str, bytes]:
    """Return all that was measured, as bytes."""
    columns = {name: getattr(run, name)[:rows] for name in CURVE} | run.episodes
    return {name: column.tobytes() for name, column in columns.items()}


def both(env: Env, agent: Any, horizon: int, seed: int, points: int = 30) -> tuple[Any, Any]:
    """Run in compiled code and watched; check that all is the same, and return the run and its learner."""
    alone, watched = Kept(agent), Kept(agent, watched=True)
    run, other = (learn(env, one, horizon=horizon, seed=seed, points=points) for one in (alone, watched))
    assert curves(run) == curves(other)
    assert known(alone.learners[0]) == known(watched.learners[0])
    assert watched.begun == run.episodes["start"].tolist()
    return run, alone.learners[0]


def by_hand(env: Env, agent: Any, horizon: int, seed: int) -> tuple[Any, list[float], list[Any], list[int]]:
    """Play with act and observe; return the learner, the rewards, the episodes, and the number of the episode of each step."""
    env_rng, agent_rng = streams(seed)
    learner = agent.start(ProblemInfo.from_mdp(env.mdp, horizon), agent_rng)
    rewards, episodes, numbers, state = [], [], [], env.reset(env_rng)
    for _ in range(horizon):
        action = learner.act(state)
        if learner.n_episodes > len(episodes):
            episodes.append(learner.episode)
        reward, state = env.step(state, action, env_rng)
        learner.observe(reward, state)
        rewards.append(reward)
        numbers.append(len(episodes))
    return learner, rewards, episodes, numbers


def assert_is_by_hand(run: Any, learner: Any, env: Env, agent: Any, horizon: int, seed: int) -> None:
    other, rewards, episodes, numbers = by_hand(env, agent, horizon, seed)
    assert known(learner) == known(other)
    np.testing.assert_array_equal(run.reward, np.cumsum(rewards)[run.t - 1])
    np.testing.assert_array_equal(run.n_episodes, np.array(numbers)[run.t - 1])
    assert run.span.tolist() == [episodes[k - 1].span for k in run.n_episodes]
    for name, column in run.episodes.items():
        assert column.tolist() == [getattr(episode, name) for episode in episodes], name


class Stop(Exception):  # noqa: N818
    """The test has seen enough."""


def new_session(env: Env, agent: Any, horizon: int, seed: int) -> Session:
    return Session(as_world(env), agent, "some agent", horizon=horizon, seed=seed, points=30)


def stopped(session: Session, look: int) -> bytes | None:
    """Run until the look of that number; return the checkpoint, None where the run is over before."""
    left, blob = look, None

    def tick(t: int) -> None:
        nonlocal left, blob
        if left == 0:
            blob = pack(session.state())
            raise Stop
        left -= 1

    with suppress(Stop):
        session.run(0.5, tick)
    return blob
