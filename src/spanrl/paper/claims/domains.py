"""That an environment is the domain it is called: every outcome of every pair, and the tables that runs draw from.

The other side is :mod:`spanrl.paper.oracles_domains`, a second writing of the rules; states and actions are matched by their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.envs.env import BERNOULLI, Env
from spanrl.kernels.sampling import Sampler
from spanrl.paper.claims.base import Ledger
from spanrl.paper.oracles_domains import Chance, domain, state_of

TABLES = 1e-12
"""Allowed distance of a probability or a reward from the second writing."""

Law = dict[tuple[int, int, float], float]
"""Probability of (pair, next state, reward); rewards are rounded to 12 digits, so that those of two writings meet."""

_TITLES = {"two-state": "two states", "three-state": "three states", "knight-quest": "Knight Quest"}
_DIGITS = 12


class Rules(NamedTuple):
    """A domain by the second writing, with the numbers that an environment gives to pairs and states."""

    start: dict[int, float]
    rows: list[tuple[int, int, Chance]]

    @property
    def law(self) -> Law:
        """What is really paid, and where it leads: a Bernoulli reward is 1 or 0."""
        return _summed(
            ((i, s, pay), one.prob * share)
            for i, s, one in self.rows
            for pay, share in (((1.0, one.mean), (0.0, 1 - one.mean)) if one.law == "bernoulli" else ((one.mean, 1.0),))
        )

    @property
    def outcomes(self) -> dict[Any, float]:
        """The outcome table: (pair, next state, law, mean) → probability."""
        return _summed(((i, s, one.law, one.mean), one.prob) for i, s, one in self.rows)

    def model(self) -> tuple[NDArray[np.float64], dict[tuple[int, int], float]]:
        """Return r(s, a) of each pair, and p(s'|s, a) by (pair, next state)."""
        reward = np.zeros(1 + max(i for i, _, _ in self.rows))
        successors: defaultdict[tuple[int, int], float] = defaultdict(float)
        for i, s, one in self.rows:
            reward[i] += one.prob * one.mean
            successors[i, s] += one.prob
        return reward, successors


def title(name: str) -> str:
    """Return how a domain is called in the numbers of a claim."""
    return _TITLES[name.partition("[")[0]]


def rules_of(ledger: Ledger, env: Env, name: str) -> Rules | None:
    """Return the rules of the domain ``name`` for ``env``, which must have their states and pairs; None where it has not."""
    want, mdp = domain(name), env.mdp
    states, actions = [state_of(name) for name in mdp.state_names or ()], mdp.action_names or ()
    numbers = {state: s for s, state in enumerate(states)}
    pairs = zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True)
    index = {(states[s], actions[a]): i for i, (s, a) in enumerate(pairs)} if states and actions else {}
    same = len(numbers) == mdp.n_states and len(index) == mdp.n_pairs and index.keys() == want.chances.keys()
    ledger.true(f"{title(name)}: the states and actions are those of the rules", same)
    if not same:
        return None
    rows = [(i, numbers[one.after], one) for pair, i in index.items() for one in want.chances[pair]]
    return Rules({numbers[state]: p for state, p in want.start.items()}, rows)


def check_domain(ledger: Ledger, env: Env, name: str) -> None:
    """Require that ``env`` is the domain ``name``: start, outcomes, model, and the tables to draw from."""
    rules, mdp, called = rules_of(ledger, env, name), env.mdp, title(name)
    if rules is None:
        return
    second = "against a second writing of the rules"
    start = {s: float(p) for s, p in enumerate(mdp.start) if p}
    ledger.within(f"{called}: start, {second}", apart(start, rules.start), TABLES)
    ledger.within(f"{called}: outcomes, {second}", apart(_outcomes(env), rules.outcomes), TABLES)
    reward, successors = rules.model()
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
    model = zip(zip(pair.tolist(), mdp.succ.tolist(), strict=True), mdp.prob.tolist(), strict=True)
    ledger.within(f"{called}: mean rewards of the model", float(np.abs(mdp.reward - reward).max()), TABLES)
    ledger.within(f"{called}: transitions of the model", apart(dict(model), successors), TABLES)
    ledger.true(f"{called}: rewards are declared to lie in [0, 1]", (mdp.r_min, mdp.r_max) == (0, 1))
    check_tables(ledger, env, name, rules)


def check_tables(ledger: Ledger, env: Env, name: str, rules: Rules) -> None:
    """Require that the tables which runs draw from have the law of the rules."""
    ledger.within(f"{title(name)}: tables to draw from", apart(drawn_law(env.sampler), rules.law), TABLES)
    ledger.true(f"{title(name)}: what is drawn leads where it says", leads_on(env.sampler))


def drawn_law(sampler: Sampler) -> Law:
    """Return the law of the alias tables: a slot has the chance 2^−bits, its first outcome threshold/2⁶⁴ of that."""
    slots = _slots(sampler)
    share = np.repeat(1 / slots, slots)
    first = sampler.threshold.astype(np.float64) / 2.0**64
    prob = np.stack((share * first, share * (1 - first)), axis=1).ravel()
    total = np.bincount(sampler.outcome, prob, sampler.succ.size)
    pair = np.repeat(np.arange(slots.size), np.diff(sampler.out_ptr))
    rows = zip(pair.tolist(), sampler.succ.tolist(), sampler.reward.tolist(), strict=True)
    return _summed(zip(rows, total.tolist(), strict=True))


def leads_on(sampler: Sampler) -> bool:
    """Tell whether the slots stand in the order of the pairs, with outcomes of their own pair and the successors of these."""
    slots = _slots(sampler)
    owner = np.repeat(np.arange(slots.size), 2 * slots)
    both = np.stack((sampler.successors & np.uint64(0xFFFFFFFF), sampler.successors >> np.uint64(32)), axis=1).ravel()
    return bool(
        np.array_equal(sampler.start >> np.uint64(6), np.cumsum(slots) - slots)
        and np.array_equal(np.searchsorted(sampler.out_ptr, sampler.outcome, side="right") - 1, owner)
        and np.array_equal(both, sampler.succ[sampler.outcome])
    )


def apart(one: Mapping[Any, float], other: Mapping[Any, float]) -> float:
    """Return the largest distance of two tables, in which what is not listed is 0."""
    return float(np.max([abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys()]))


def _slots(sampler: Sampler) -> NDArray[np.int64]:
    """Return the number of slots of each pair."""
    bits: NDArray[np.int64] = 63 - (sampler.start & np.uint64(63)).astype(np.int64)
    return np.left_shift(np.int64(1), bits)


def _outcomes(env: Env) -> dict[Any, float]:
    """Return the outcome table of ``env``: (pair, next state, law, mean) → probability."""
    pair = np.repeat(np.arange(env.mdp.n_pairs), np.diff(env.out_ptr)).tolist()
    law = np.where(env.out_law == BERNOULLI, "bernoulli", "fixed").tolist()
    rows = zip(pair, env.out_succ.tolist(), law, env.out_reward.tolist(), strict=True)
    return _summed(zip(rows, env.out_prob.tolist(), strict=True))


def _summed(rows: Iterable[tuple[tuple[Any, ...], float]]) -> dict[Any, float]:
    """Add up the probabilities of equal rows, whose last column is a reward."""
    out: defaultdict[Any, float] = defaultdict(float)
    for (*head, reward), prob in rows:
        out[*head, round(reward, _DIGITS)] += prob
    return dict(out)
