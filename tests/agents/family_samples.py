"""One plain loop for the agents of the family, in numpy and dictionaries, to be compared with the compiled ones decision by decision."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import numpy as np

from spanrl import MDP, Env, ProblemInfo, reference, streams

TIE = 1e-9


class Decision(NamedTuple):
    """What an agent decides at the start of an episode: in state s ``best[s]``, with probability weight[s] ``other[s]``."""

    best: np.ndarray
    other: np.ndarray
    weight: np.ndarray
    visits: np.ndarray  # [S, A], how often each pair may be played
    steps: float = inf


def fixed_outcomes(env: Env) -> Callable[[int, int], tuple[float, int]]:
    """Return a ``step(s, a)`` whose n-th call for a pair always brings the same, whoever asks."""
    calls: dict[tuple[int, int], int] = {}

    def step(s: int, a: int) -> tuple[float, int]:
        n = calls[s, a] = calls.get((s, a), 0) + 1
        return env.step(s, a, np.random.default_rng((s, a, n)))

    return step


def first_state(env: Env) -> int:
    return int(np.flatnonzero(env.mdp.start)[0])


def by_the_book(env: Env, decide: Callable[..., Decision], horizon: int, rng: Any) -> list[tuple[int, Any]]:
    """Play ``decide(counts, allowed, t, state, steps of the last episode)``; return (t_k, policy [S, A]) of all episodes."""
    allowed = env.mdp.to_dense()[2]
    counts, step, s, t, last, episodes = (
        reference.Counts(*allowed.shape),
        fixed_outcomes(env),
        first_state(env),
        1,
        0,
        [],
    )
    while t <= horizon:
        plan = decide(counts, allowed, t, s, last)
        episodes.append((t, table(plan, allowed.shape)))
        nu, t_k, steps = np.zeros(allowed.shape), t, []
        while t <= horizon and t - t_k < plan.steps:
            mixed = plan.weight[s] > 0 and rng.random() < plan.weight[s]
            a = int(plan.other[s] if mixed else plan.best[s])
            if nu[s, a] >= plan.visits[s, a]:
                break
            r, following = step(s, a)
            nu[s, a] += 1
            steps.append((s, a, r, following))
            s, t = following, t + 1
        last = t - t_k
        for one in steps:
            counts.add(*one)
    return episodes


def table(plan: Decision, shape: tuple[int, int]) -> np.ndarray:
    probs = np.zeros(shape)
    for s in range(shape[0]):
        probs[s, plan.best[s]] += 1 - plan.weight[s]
        probs[s, plan.other[s]] += plan.weight[s]
    return probs


def by_the_agent(env: Env, agent: Any, horizon: int, rng: Any) -> tuple[list[tuple[int, Any]], Any]:
    """Do the same with an agent of ours, by act and observe; also return its learner."""
    learner, step, s, episodes = (
        agent.start(ProblemInfo.from_mdp(env.mdp, horizon), rng),
        fixed_outcomes(env),
        first_state(env),
        [],
    )
    learner.on_episode.append(lambda one: episodes.append((one.episode.start, one.policy.probs)))
    for _ in range(horizon):
        r, s = step(s, learner.act(s))
        learner.observe(r, s)
    return episodes, learner


def assert_same_decisions(env: Env, agent: Any, decide: Callable[..., Decision], horizon: int, *, fewest: int) -> None:
    """Compare episodes and policies of a whole run; both draw from equal streams."""
    ours, _ = by_the_agent(env, agent, horizon, streams(3)[1])
    plain = by_the_book(env, decide, horizon, streams(3)[1])
    assert len(ours) >= fewest
    assert [t for t, _ in ours] == [t for t, _ in plain]
    for (t, mine), (_, theirs) in zip(ours, plain, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6, err_msg=f"t_k = {t}")


def lowest(q: np.ndarray, tie: float = TIE) -> np.ndarray:
    """Return the lowest action of each state whose value is the largest, up to rounding."""
    return np.array([np.flatnonzero(row >= row.max() - tie * (1 + np.abs(row.max())))[0] for row in q])


def iterate(q: Callable[[np.ndarray], np.ndarray], S: int, c: float, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Iterate v ← Γ_c max_a q(v) from 0 until the steps are equal up to ε; return (v, Lv)."""
    v = np.zeros(S)
    while True:
        Lv = q(v).max(axis=1)
        Tv = np.minimum(Lv, Lv.min() + c)
        if np.ptp(Tv - v) <= epsilon:
            return v, Lv
        v = Tv - Tv[0]


def played(env: Env, agent: Any, horizon: int, seed: int) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Play by hand; return the first steps of all episodes, and all (state, action, next state)."""
    env_rng, agent_rng = streams(seed)
    learner, s, steps, starts = agent.start(ProblemInfo.from_mdp(env.mdp), agent_rng), env.reset(env_rng), [], []
    learner.on_episode.append(lambda one: starts.append(one.episode.start))
    for _ in range(horizon):
        a = learner.act(s)
        r, following = env.step(s, a, env_rng)
        learner.observe(r, following)
        steps.append((s, a, following))
        s = following
    return starts, steps


def walled_grid() -> Env:
    """Return a grid of 2 × 3 cells behind a wall from which cells 4 and 5 are never reached; they would pay most.

    Moves succeed with probability 0.8 and otherwise leave the agent where it is. Cell 0 pays 0.3 for staying, cell 3 pays 0.7.
    """
    moves = {
        (0, 1): 1,
        (1, 0): 0,
        (1, 1): 2,
        (2, 0): 1,
        (2, 1): 3,
        (3, 0): 2,
        (4, 0): 5,
        (4, 1): 5,
        (5, 0): 4,
        (5, 1): 3,
    }
    P, r = np.zeros((6, 2, 6)), np.zeros((6, 2))
    for s in range(6):
        for a in range(2):
            P[s, a, s] += 0.2
            P[s, a, moves.get((s, a), s)] += 0.8
    r[0, 0], r[3, 1], r[4:] = 0.3, 0.7, 1.0
    return Env.from_mdp(MDP.from_dense(P, r, start=0), "bernoulli")
