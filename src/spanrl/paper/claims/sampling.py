"""That runs draw what the rules say: successors and rewards of compiled runs, of single steps, starts, and the random streams.

The runs are those of a learner that plans nothing and mixes two random pairs in every state, so that it goes everywhere and draws as often
as the environment. Three things are looked at: that the tables have the law of the rules; that every random word brings what the tables
say; and, without a look at the tables, that what is seen has the law of the rules. The thresholds of these tests are those of large counts;
all tests together have level 10⁻³.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, kstwo

from spanrl import streams
from spanrl.agents.episodes import UNLIMITED
from spanrl.agents.learner import Episode, Learner, Rules
from spanrl.agents.offers import HOOK
from spanrl.agents.planner import Plan
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.envs.env import Env
from spanrl.kernels.sampling import Sampler
from spanrl.models.counts import Batch
from spanrl.models.info import ProblemInfo
from spanrl.paper.claims.base import Ledger
from spanrl.paper.claims.domains import Law, check_tables, rules_of, title
from spanrl.paper.instances import generator
from spanrl.paper.replay import pair_index
from spanrl.paper.system import System

LEVEL = 1e-3
"""Probability, over all tests together, with which right draws would be called wrong."""

RUNS = (("three-state", 10**7, 10**5), ("three-state[delta=0.05]", 10**7, 10**5), ("knight-quest", 10**6, 100))
"""Domain, horizon, and how often a choice may be played in an episode.

While an episode lasts, environment and agent draw in step: were their streams one, long episodes would show it.
"""

WEIGHT = 0.3
"""Probability of the second pair of every state."""

_WORDS = 1000
_STEPS = 5000
_WALK = 20_000


class Statistic(NamedTuple):
    """A number that is large where the draws are wrong, and its law where they are right."""

    name: str
    value: float
    law: Any


@dataclass(frozen=True)
class Wanderer:
    """An agent that plans nothing: in every state it mixes two random pairs, other ones in each episode; it keeps what it saw."""

    limit: int
    seen: list[Batch] = field(default_factory=list)
    choices: list[NDArray[np.int64]] = field(default_factory=list)
    learners: list[Learner] = field(default_factory=list)

    def start(self, info: ProblemInfo, rng: np.random.Generator) -> Learner:
        """Return the learner."""
        self.learners.append(_Wandering(self, info, rng))
        return self.learners[-1]


class _Wandering(Learner):
    offers = frozenset({HOOK})

    def __init__(self, agent: Wanderer, info: ProblemInfo, rng: np.random.Generator) -> None:
        super().__init__(Rules(BernsteinBox()), info, rng)
        self._agent, self._whims = agent, generator("wanderer")

    def begin_episode(self, batch: Batch | None, state: int) -> None:
        """Keep what was seen, and choose other pairs."""
        if batch is not None and self.plan is not None:
            self._planner.take_in(self.counts, batch)
            self._agent.seen.append(batch)
            visits = np.bincount(batch.pair, batch.times, self.info.n_pairs).astype(np.int64)
            both = self.plan.pairs.reshape(-1, 2)
            self._agent.choices.append(visits[both[both[:, 0] != both[:, 1]]].sum(axis=0))
        S, ptr = int(self.info.n_states), self.info.pair_ptr
        pairs = self._whims.integers(np.repeat(ptr[:-1], 2), np.repeat(ptr[1:], 2))
        left = np.full(2 * S, self._agent.limit, dtype=np.int64)
        self.plan = Plan(pairs, np.full(S, WEIGHT), True, left, (0.0, 1.0), 0.0, 0, left.copy(), UNLIMITED)
        self._steps_left = self.plan.steps
        self.episode = Episode(self.t + 1, 0.5, 0.0, 0, False, 0.0, 1.0)
        self.n_episodes += 1
        for told in self.on_episode:
            told(self)


def check_sampling(system: System, ledger: Ledger) -> None:
    """Require that what is drawn has the law of the rules, and that the streams of random numbers have nothing to do with each other."""
    tests = streams_apart(ledger)
    for name, horizon, limit in RUNS:
        env = system.make(name)
        rules = rules_of(ledger, env, name)
        if rules is None:
            return
        check_tables(ledger, env, name, rules)
        tests += wander(system, ledger, env, name, rules.law, horizon=horizon, limit=limit)
        word_by_word(system, ledger, env, name)
        tests += starts(env, name, rules.start)
    judge(ledger, tests)


def judge(ledger: Ledger, tests: list[Statistic]) -> None:
    """Require that no statistic exceeds its threshold; note both, of equal names the worst."""
    for called in dict.fromkeys(test.name for test in tests):
        name, value, law = max((test for test in tests if test.name == called), key=lambda test: test.value)
        threshold = float(law.isf(LEVEL / len(tests)))
        ledger.note(f"{name}: statistic and threshold", [value, threshold])
        ledger.true(f"{name} (level {LEVEL:g} over all tests)", value <= threshold)


def wander(
    system: System, ledger: Ledger, env: Env, name: str, law: Law, *, horizon: int, limit: int, seed: int = 0
) -> list[Statistic]:
    """Run a wanderer in compiled code; return the tests of what it drew."""
    agent, other = Wanderer(limit), Wanderer(limit)
    run = system.learn(env, agent, horizon=horizon, seed=seed, points=2)
    short = [system.learn(env, other, horizon=min(horizon, 10**5), seed=seed + k, points=2).reward[-1] for k in (1, 2)]
    ledger.true(f"{name}: other seeds, other rewards", len({*short, run.reward[-1]}) == 3)
    ledger.true(f"{name}: episodes end", agent.seen)
    if not agent.seen:
        return []
    seen, counts = _added(agent.seen), agent.learners[0].counts
    ledger.note(f"{name}: steps looked at", int(seen.times.sum()))
    _kept_count(ledger, name, seen, counts)
    arrived = np.bincount(seen.succ, seen.times, env.mdp.n_states)
    left = np.bincount(env.mdp.pair_state, counts.n, env.mdp.n_states)
    ledger.within(f"{title(name)}: visits of a state less its arrivals", np.abs(arrived - left).max(), 1.0)
    first, second = np.sum(agent.choices, axis=0)
    n = first + second
    z = float((second - WEIGHT * n) / np.sqrt(n * WEIGHT * (1 - WEIGHT)))
    return [*drawn(ledger, f"{name}, compiled", seen, law), Statistic(f"{name}: weights of a mixture", z**2, chi2(1))]


def drawn(ledger: Ledger, name: str, seen: Batch, law: Law) -> list[Statistic]:
    """Return the tests of what was seen: χ² of successor and reward given the visits, and the mean of all rewards.

    A reward outside its law, such as a mean paid for a Bernoulli reward, is noticed exactly.
    """
    rows = zip(seen.pair.tolist(), seen.succ.tolist(), np.round(seen.reward, 12).tolist(), strict=True)
    times, size = dict(zip(rows, seen.times.tolist(), strict=True)), 1 + max(i for i, _, _ in law)
    ledger.within(f"{name}: outcomes seen that cannot be", sum(times[row] for row in times.keys() - law.keys()), 0.0)
    table = [(i, reward, prob, times.get((i, s, reward), 0)) for (i, s, reward), prob in law.items()]
    pair, (reward, prob, found) = np.array([row[0] for row in table]), np.array([row[1:] for row in table]).T
    expected = prob * np.bincount(seen.pair, seen.times, size)[pair]
    least = np.full(size, np.inf)
    np.minimum.at(least, pair, expected)
    kept = least[pair] >= 5
    statistic = float((((found - expected) ** 2)[kept] / expected[kept]).sum())
    freedom = int(kept.sum() - np.unique(pair[kept]).size)
    mean = np.bincount(pair, prob * reward, size)
    spread = (expected * (reward - mean[pair]) ** 2).sum()
    z = (seen.times * (seen.reward - mean[seen.pair])).sum() / np.sqrt(spread)
    ledger.true(f"{name}: visits enough for a test", freedom > 0 and spread > 0)
    return [
        Statistic(f"{name}: χ² of what was drawn", statistic, chi2(freedom)),
        Statistic(f"{name}: mean of the rewards", float(z**2), chi2(1)),
    ]


def word_by_word(system: System, ledger: Ledger, env: Env, name: str, seed: int = 3) -> None:
    """Require that a compiled run and single steps make of every random word what the tables say, to the last bit."""
    draw, agent = PlainDraw(env.sampler), Wanderer(_WALK // 100)
    system.learn(env, agent, horizon=_WALK, seed=seed, points=2)
    plain = _walked(env, draw, Wanderer(agent.limit), seed)
    ledger.true(f"{name}: a compiled run draws what its words say", agent.seen and _equal(agent.seen, plain))
    mdp, rng = env.mdp, streams(seed)[0]
    pairs = np.linspace(0, mdp.n_pairs - 1, _STEPS).astype(int).tolist()
    stepped = [env.step(int(mdp.pair_state[i]), int(mdp.action[i]), rng) for i in pairs]
    words = streams(seed)[0].bit_generator.random_raw(_STEPS).tolist()
    same = stepped == [draw(i, word) for i, word in zip(pairs, words, strict=True)]
    ledger.true(f"{name}: single steps draw what their words say", same)


def _walked(env: Env, draw: PlainDraw, agent: Wanderer, seed: int) -> list[Batch]:
    """Return what a wanderer sees that is driven step by step, by plain draws."""
    env_rng, agent_rng = streams(seed)
    learner, state = agent.start(ProblemInfo.from_mdp(env.mdp, _WALK), agent_rng), env.reset(env_rng)
    index = pair_index(env.mdp)
    for word in env_rng.bit_generator.random_raw(_WALK).tolist():
        reward, after = draw(index[state, learner.act(state)], word)
        learner.observe(reward, after)
        state = after
    return agent.seen


class PlainDraw:
    """Draws of a sampler in whole numbers: the first bits of a word choose a slot, the rest one of its two outcomes."""

    def __init__(self, sampler: Sampler) -> None:
        """Take the tables."""
        self._start, self._threshold, self._outcome = (
            table.tolist() for table in (sampler.start, sampler.threshold, sampler.outcome)
        )
        self._found: list[tuple[float, int]] = list(zip(sampler.reward.tolist(), sampler.succ.tolist(), strict=True))

    def __call__(self, pair: int, word: int) -> tuple[float, int]:
        """Return the reward and the next state that a word brings."""
        first, bits = self._start[pair] // 64, 63 - self._start[pair] % 64
        slot, rest = divmod(word << bits, 2**64)
        outcome: int = self._outcome[2 * (first + slot) + (rest >= self._threshold[first + slot])]
        return self._found[outcome]


def starts(env: Env, name: str, start: dict[int, float]) -> list[Statistic]:
    """Return the test of the first states, where chance has a say in them."""
    if len(start) == 1:
        return []
    rng = streams(4)[0]
    found = np.bincount([env.reset(rng) for _ in range(_STEPS)], minlength=env.mdp.n_states)
    statistic = sum((found[s] - p * _STEPS) ** 2 / (p * _STEPS) for s, p in start.items())
    rest = _STEPS - found[list(start)].sum()
    return [Statistic(f"{name}: first states", float(statistic if rest == 0 else np.inf), chi2(len(start) - 1))]


def streams_apart(ledger: Ledger, seeds: tuple[int, int] = (0, 1)) -> list[Statistic]:
    """Return the tests of the first numbers of environment and agent for two seeds: uniform, and uncorrelated one with another."""
    first = [rng.random(_WORDS) for seed in seeds for rng in streams(seed)]
    ledger.true("streams share no number", np.unique(np.concatenate(first)).size == len(first) * _WORDS)
    uniform = [Statistic("streams: distance from uniform", _distance(u), kstwo(_WORDS)) for u in first]
    r = [float(np.corrcoef(u, v)[0, 1]) for u, v in combinations(first, 2)]
    return [*uniform, *(Statistic("streams: correlation", (_WORDS - 1) * one**2, chi2(1)) for one in r)]


def _distance(u: NDArray[np.float64]) -> float:
    """Return the Kolmogorov–Smirnov distance from the uniform law."""
    steps = np.arange(u.size + 1) / u.size
    u = np.sort(u)
    return float(max((steps[1:] - u).max(), (u - steps[:-1]).max()))


def _added(batches: list[Batch]) -> Batch:
    """Return all batches in one."""
    pair, reward, succ, times = (np.concatenate(column) for column in zip(*batches, strict=True))
    order = np.lexsort((succ, reward, pair))
    rows = np.stack((pair, reward, succ))[:, order]
    first = np.concatenate(([True], np.any(rows[:, 1:] != rows[:, :-1], axis=0)))
    sums = np.add.reduceat(times[order], np.flatnonzero(first))
    return Batch(pair[order][first], reward[order][first], succ[order][first], sums)


def _equal(batches: list[Batch], others: list[Batch]) -> bool:
    """Tell whether two lists of batches add up to the same."""
    one, other = _added(batches), _added(others)
    return all(np.array_equal(getattr(one, column), getattr(other, column)) for column in Batch._fields)


def _kept_count(ledger: Ledger, name: str, seen: Batch, counts: Any) -> None:
    """Require that the statistics of the learner are those of what it was handed."""
    n = np.bincount(seen.pair, seen.times, counts.n_pairs)
    visited = np.maximum(n, 1)
    mean = np.bincount(seen.pair, seen.times * seen.reward, n.size) / visited
    squares = np.bincount(seen.pair, seen.times * (seen.reward - mean[seen.pair]) ** 2, n.size) / visited
    listed = np.repeat(np.arange(n.size), np.diff(counts.succ_ptr))
    width = int(seen.succ.max()) + 1
    found = np.bincount(listed * width + counts.succ, counts.times, n.size * width)
    ledger.true(f"{name}: a learner counts its visits", np.array_equal(counts.n, n))
    wanted = np.bincount(seen.pair * width + seen.succ, seen.times, n.size * width)
    ledger.true(f"{name}: a learner counts its successors", np.array_equal(found, wanted))
    ledger.within("means that a learner keeps", np.abs(counts.r_mean - mean).max())
    ledger.within("variances that a learner keeps", np.abs(counts.r_sq / visited - squares).max())
