"""Run learners under observation: step by step with counters of one's own, or compiled with a look at every episode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl import streams
from spanrl.agents.learner import Learner
from spanrl.agents.registry import Agent
from spanrl.envs.env import Env
from spanrl.learning.run import Run
from spanrl.models.info import ProblemInfo
from spanrl.models.mdp import MDP
from spanrl.paper.oracles_learning import Seen
from spanrl.paper.system import System

Counter = NDArray[np.int64]


class LastEpisode(NamedTuple):
    """An episode as it was counted from outside: N_k, ν_k, and the pairs that the policy had in the state where it ended."""

    n: Counter
    visits: Counter
    about: tuple[int, ...]


class Moment(NamedTuple):
    """The start of an episode, or the end of the run (``over``): what was seen before step t, and the episode before."""

    learner: Any
    t: int
    seen: list[Seen]
    n: Counter
    last: LastEpisode | None
    over: bool


def replay(system: System, env: Env, agent: Agent, *, horizon: int, seed: int) -> Iterator[Moment]:
    """Drive a learner by ``act`` and ``observe``; yield a moment at every start of an episode, and one at the end."""
    env_rng, agent_rng = streams(seed)
    mdp = env.mdp
    learner = system.start(agent, ProblemInfo.from_mdp(mdp, horizon), agent_rng)
    index = pair_index(mdp)
    seen = [Seen() for _ in range(mdp.n_pairs)]
    before, visits = np.zeros(mdp.n_pairs, dtype=np.int64), [0] * mdp.n_pairs
    state, episodes, probs = env.reset(env_rng), 0, np.zeros((mdp.n_states, mdp.n_actions))
    for t in range(1, horizon + 1):
        action = learner.act(state)
        if learner.n_episodes > episodes:
            about = tuple(index[state, int(a)] for a in np.flatnonzero(probs[state]))
            last = LastEpisode(before, np.array(visits), about) if episodes else None
            before = before + np.array(visits)
            visits = [0] * mdp.n_pairs
            episodes, probs = learner.n_episodes, learner.policy.probs
            yield Moment(learner, t, seen, before, last, False)
        i = index[state, action]
        reward, state = env.step(state, action, env_rng)
        learner.observe(reward, state)
        visits[i] += 1
        seen[i].add(reward, state)
    last = LastEpisode(before, np.array(visits), ())
    yield Moment(learner, horizon + 1, seen, before + last.visits, last, True)


def pair_index(mdp: MDP) -> dict[tuple[int, int], int]:
    """Return the number of each pair (s, a)."""
    return {pair: i for i, pair in enumerate(zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True))}


def sizes(mdp: MDP) -> tuple[int, int]:
    """Return S and A = max_s |A_s|."""
    return mdp.n_states, int(np.bincount(mdp.pair_state).max())


@dataclass(frozen=True)
class Watched:
    """An agent whose learner is looked at after the start of every episode, also inside a compiled run."""

    agent: Agent
    begin: Callable[[Agent, ProblemInfo, Any], Any]
    watch: Callable[[Any], None]

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return the learner."""
        learner: Learner = self.begin(self.agent, info, rng)
        learner.on_episode.append(self.watch)
        return learner


def run(
    system: System,
    env: Env | str,
    agent: Agent,
    *,
    horizon: float,
    seed: int,
    watch: Callable[[Any], None] = lambda learner: None,
    audit: bool = False,
) -> Run:
    """Learn in compiled code; ``watch(learner)`` is called after the start of every episode."""
    place = system.make(env) if isinstance(env, str) else env
    found: Run = system.learn(
        place, Watched(agent, system.start, watch), horizon=int(horizon), seed=seed, points=20, audit=audit
    )
    return found
