"""Honest mistakes in the environments: rules misread, outcomes drawn from wrong tables, random numbers shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from mutants_planning import Mutant

from spanrl.confidence.estimate import read_only
from spanrl.envs.env import Env, Outcome
from spanrl.kernels.sampling import Sampler
from spanrl.models.info import ProblemInfo
from spanrl.paper.system import System
from spanrl.seeding import streams


def making(change: Callable[[Env], Env]) -> Mutant:
    """Return the mutant whose environments are changed."""
    return lambda system: system.changed(make=lambda name, **options: change(system.make(name, **options)))


def drawing(change: Callable[[Sampler], Sampler]) -> Mutant:
    """Return the mutant whose environments have the right outcomes and draw from other tables."""
    return making(lambda env: _other_tables(env, change))


def drawing_compiled(change: Callable[[Sampler], Sampler]) -> Mutant:
    """Return the mutant whose tables are right, but not those that runs see."""

    def mutant(system: System) -> System:
        def learn(env: Env, agent: Any, **options: Any) -> Any:
            return system.learn(_other_tables(env, change), agent, **options)

        return system.changed(learn=learn)

    return mutant


def _other_tables(env: Env, change: Callable[[Sampler], Sampler]) -> Env:
    other = replace(env)
    *tables, clock = change(env.sampler)
    vars(other)["sampler"] = Sampler(*map(read_only, tables), clock)  # of the types that loops are compiled for
    return other


def lower_thresholds(sampler: Sampler) -> Sampler:
    """Draw the first outcome of every slot a little too rarely."""
    return sampler._replace(threshold=(sampler.threshold * 0.999).astype(np.uint64))


def swapped_successors(sampler: Sampler) -> Sampler:
    """Go on in the state of the other outcome of the slot."""
    half = np.uint64(32)
    return sampler._replace(successors=(sampler.successors << half) | (sampler.successors >> half))


paid_as_means = making(lambda env: Env.from_mdp(env.mdp, info=env.info))


def one_stream(system: System) -> System:
    """Give the agent the random numbers of the environment."""

    class Sharing:
        def __init__(self, agent: Any, seed: int) -> None:
            self.agent, self.seed = agent, seed

        def start(self, info: ProblemInfo, rng: Any) -> Any:
            return self.agent.start(info, streams(self.seed)[0])

    def learn(env: Any, agent: Any, *, seed: int, **options: Any) -> Any:
        return system.learn(env, Sharing(agent, seed), seed=seed, **options)

    return system.changed(learn=learn)


def quest(change: Callable[[Env, int, str, Outcome], Outcome]) -> Mutant:
    """Return the mutant whose Knight Quest has other rules: ``change(env, state, name of the action, outcome)``."""

    def ruled(env: Env) -> Env:
        mdp, names = env.mdp, env.mdp.action_names
        if env.info.id != "knight-quest" or names is None:
            return env
        pairs = zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True)
        table = {(s, a): [change(env, s, names[a], one) for one in env.outcomes(s, a)] for s, a in pairs}
        return Env.from_outcomes(table, start=mdp.start, state_names=mdp.state_names, action_names=names, info=env.info)

    return making(ruled)


def lesser_death(env: Env, s: int, action: str, one: Outcome) -> Outcome:
    """Let death cost −10, not −20."""
    return one._replace(reward=0.25) if one.reward == 0 else one


def free_misuse(env: Env, s: int, action: str, one: Outcome) -> Outcome:
    """Let misuse cost −1, not −10."""
    return one._replace(reward=0.475) if one.reward == 0.25 else one


def same_lair(env: Env, s: int, action: str, one: Outcome) -> Outcome:
    """Begin every new game with the dragon in its first cell."""
    first = int(np.flatnonzero(env.mdp.start)[0])
    return one._replace(succ=first) if one.reward in (0.0, 1.0) else one


def key_to_armour(env: Env, s: int, action: str, one: Outcome) -> Outcome:
    """Turn a second key into armour, as the formula in the text does."""
    names = env.mdp.state_names or ()
    here, after = names[s], names[one.succ]
    buys = action == "buy key" and here.startswith("(0,3) gold") and here.endswith(" key")
    return one._replace(succ=names.index(f"{after}+armour")) if buys else one
