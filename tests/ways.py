"""Run an agent in all the ways there are, which must give the same bits: compiled, watched, by hand, and in pieces."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

from spanrl import MDP, Env, ProblemInfo, learn, streams
from spanrl.kernels.jit import interpreted
from spanrl.learning.session import Session
from spanrl.learning.snapshot import pack, unpack
from spanrl.learning.worlds import as_world
from spanrl.seeding import get_state

CURVE = ("t", "reward", "regret", "pseudo_regret", "span", "n_episodes")


def ragged_env(seed: int = 1, *, r_min: float = -1.0, r_max: float = 2.0) -> Env:
    """Return a random problem of five states with one to three actions and Bernoulli rewards."""
    rng = np.random.default_rng(seed)
    available = np.arange(3) <= np.array([0, 1, 2, 1, 2])[:, None]
    available[2, 0] = False  # the lowest action need not exist
    P, r = rng.dirichlet(np.full(5, 0.4), size=(5, 3)), rng.uniform(r_min, r_max, size=(5, 3))
    return Env.from_mdp(MDP.from_dense(P, r, available=available, r_min=r_min, r_max=r_max), "bernoulli")


@dataclass(frozen=True)
class Kept:
    """An agent whose learners are kept; with ``watched``, Python begins every episode."""

    agent: Any
    watched: bool = False
    learners: list[Any] = field(default_factory=list, compare=False)
    begun: list[int] = field(default_factory=list, compare=False)

    def start(self, info: ProblemInfo, rng: Any) -> Any:
        learner = self.agent.start(info, rng)
        self.learners.append(learner)
        if self.watched:
            learner.on_episode.append(lambda learner: self.begun.append(learner.t + 1))
        return learner


def curves(run: Any) -> dict[str, bytes]:
    """Return all that was measured, as bytes."""
    return {name: part.tobytes() for name, part in ({n: getattr(run, n) for n in CURVE} | run.episodes).items()}


def known(learner: Any) -> dict[str, Any]:
    """Return all that a learner knows, bits as bytes, but for what depends on who runs the loop."""
    state = learner.get_state()
    for name in ("seconds", "by_hand", "seen.pair", "seen.reward", "seen.succ", "seen.times"):
        state.pop(name, None)
    state["rng"] = get_state(learner.rng)
    return {name: part.tobytes() if isinstance(part, np.ndarray) else part for name, part in state.items()}


def compiled(env: Any, agent: Any, horizon: int, seed: int, *, watched: bool = False) -> tuple[Any, Any]:
    """Return the run of ``learn`` and its learner."""
    kept = Kept(agent, watched)
    run = learn(env, kept, horizon=horizon, seed=seed, gain=0.5)
    assert not watched or kept.begun == run.episodes["start"].tolist()
    return run, kept.learners[0]


def by_hand(env: Env, agent: Any, horizon: int, seed: int) -> tuple[Any, list[tuple[int, int, float]]]:
    """Play with act, ``env.step`` and observe; return the learner and (state, action, reward) of all steps."""
    env_rng, agent_rng = streams(seed)
    learner, state, steps = agent.start(ProblemInfo.from_mdp(env.mdp, horizon), agent_rng), env.reset(env_rng), []
    for _ in range(horizon):
        action = learner.act(state)
        reward, succ = env.step(state, action, env_rng)
        learner.observe(reward, succ)
        steps.append((state, action, reward))
        state = succ
    return learner, steps


def assert_interpreted_agrees(env: Env, agent: Any, horizon: int, seed: int) -> None:
    """Compare with the same run as plain Python, in which the contract of the sets is asserted in every plan."""
    run, learner = compiled(env, agent, horizon, seed)
    with interpreted(), patch("spanrl.kernels.clock._read.py_func", lambda buffer: 0.0):  # Python has no such clock
        other, slow = compiled(env, agent, horizon, seed)
    assert curves(other) == curves(run)
    assert known(slow) == known(learner)


class Stop(Exception):  # noqa: N818
    """A look was enough."""


def in_pieces(env: Any, agent: Any, horizon: int, seed: int, *, looks: int) -> tuple[Any, Any, int]:
    """Run with a stop after so many looks, each piece by a fresh session; return the run, its learner and the number of stops."""
    stops, blob = 0, b""
    with patch("spanrl.learning.session.BUDGET", 50):
        while True:
            session = Session(as_world(env), agent, "Kept", horizon=horizon, seed=seed, points=100)
            if blob:
                session.restore(unpack(blob))
            left = looks

            def tick(t: int) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Stop

            with suppress(Stop):
                session.run(0.5, tick)
                return session.result(interrupted=False), session.learner, stops
            blob, stops = pack(session.state()), stops + 1


def assert_all_ways_agree(env: Env, agent: Any, horizon: int, seed: int) -> tuple[Any, Any]:
    """Compare all ways bit by bit; return the run and its learner."""
    run, learner = compiled(env, agent, horizon, seed)
    wanted, facts = curves(run), known(learner)
    if hasattr(learner, "on_episode"):
        other, watched = compiled(env, agent, horizon, seed, watched=True)
        assert curves(other) == wanted
        assert known(watched) == facts
    hand, steps = by_hand(env, agent, horizon, seed)
    assert known(hand) == facts
    paid = np.cumsum([reward for _, _, reward in steps])[run.t - 1]
    np.testing.assert_allclose(run.reward, paid, rtol=0, atol=1e-9 * horizon)  # added up in another order
    pieces, last, stops = in_pieces(env, agent, horizon, seed, looks=3)
    assert stops > 5
    assert curves(pieces) == wanted
    assert known(last) == facts
    return run, learner
