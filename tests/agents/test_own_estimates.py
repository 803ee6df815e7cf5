"""Estimates of one's own, written as :mod:`spanrl.confidence.estimate` says: odd boxes, closed states, a plain model, broken ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np
import pytest
from loop_samples import Kept, assert_is_by_hand, both, curves, known, new_session, random_env, stopped
from planner_samples import assert_certified, assert_is_the_rule, at, new_planner

from experience import empirical_mdp
from spanrl import MDP, BoundedMDP, Env, ProblemInfo, check_agent, learn, solve, span_bellman, streams
from spanrl.agents.episodes import TOLERANCE
from spanrl.agents.learner import Learner, Rules
from spanrl.confidence.bernstein import BernsteinBox, fill_bernstein
from spanrl.confidence.estimate import FILL, Estimate, check_sets
from spanrl.errors import InputError, NotConvergedError, OptionError
from spanrl.kernels.jit import interpreted, part, passed
from spanrl.kernels.layout import BALL, BOX, KL, PLAIN
from spanrl.learning import session as module
from spanrl.learning.snapshot import unpack
from spanrl.models.counts import Counts

HORIZON = 1500
SEEDS = range(4)
PRIME = 1_000_003


@part
def spread(a, b, c, salt):
    """Return a number in [0, 1) that looks like chance."""
    x = (a * 7919 + b * 104_729 + c * 1_299_709 + salt * 15_485_863) % PRIME
    return ((x * x + 31 * x) % PRIME) / PRIME


@part
def write_row(known, sets, i):
    """Write an odd box: any lower ends below p̂, no room above it or plenty, and any end for unlisted states."""
    seen = known.seen
    n, mean = seen.n[i], seen.r_mean[i]
    if n == 0:
        sets.rest[i], sets.r_low[i], sets.r_high[i] = 1.0, known.r_min, known.r_max
        return
    sets.rest[i] = 1.0 if spread(i, n, 0, 7) < 0.3 else max(spread(i, n, 0, 1) ** 2, 0.002)
    sets.r_low[i] = mean - spread(i, n, 0, 2) * (mean - known.r_min)
    sets.r_high[i] = mean + spread(i, n, 0, 3) * (known.r_max - mean)
    for j in range(seen.succ_ptr[i], seen.succ_ptr[i + 1]):
        p, s, times = seen.times[j] / n, np.int64(seen.succ[j]), seen.times[j]
        low = p if spread(i, n, 0, 8) < 0.2 else p * spread(i, s, times, 4)
        high = p if spread(i, s, times, 5) < 0.5 else p + (1.0 - p) * spread(i, s, times, 6)
        sets.low[j], sets.room[j] = low, high - low


@passed(FILL)
def fill_changed(known, settings, kept, sets):
    """Write the rows that must be written, and no others."""
    for i in known.changed:
        write_row(known, sets, i)


@passed(FILL)
def fill_all(known, settings, kept, sets):
    """Write all rows."""
    for i in range(known.seen.n.size):
        write_row(known, sets, i)


class OddBox(Estimate):
    """Boxes that depend on the counts alone."""

    fill = fill_changed
    geometry = BOX


class OddBoxAgain(OddBox):
    """The same, from scratch every time."""

    fill = fill_all


@passed(FILL)
def fill_closing(known, settings, kept, sets):
    """Write Bernstein boxes; pairs with many visits cannot reach states that were never visited (the idea of TUCRL).

    Where nothing leads to these, they must not be better than the rest: their pairs pay r_min.
    """
    fill_bernstein(known, settings, kept, sets)
    n, ptr, reachable = known.seen.n, known.pair_ptr, False
    for s in range(known.n_states):
        visits = 0
        for i in range(ptr[s], ptr[s + 1]):
            visits += n[i]
        sets.closed[s] = visits == 0 and s != known.state
    for s in range(known.n_states):
        for i in range(ptr[s], ptr[s + 1]):
            sets.flagged[i] = n[i] >= settings[3]
            reachable |= not sets.flagged[i] and not sets.closed[s]
    for s in range(known.n_states):
        if sets.closed[s] and not reachable:
            for i in range(ptr[s], ptr[s + 1]):
                sets.r_low[i], sets.r_high[i] = known.r_min, known.r_min


@dataclass(frozen=True)
class Closing(BernsteinBox):
    """Bernstein boxes that close states for pairs with at least ``many`` visits."""

    many: int = 5

    fill: ClassVar = fill_closing
    closes_states: ClassVar = True

    def settings(self, info: ProblemInfo) -> np.ndarray:
        return np.append(super().settings(info), float(self.many))


@passed(FILL)
def fill_mean(known, settings, kept, sets):
    """Write p̄ = (N p̂ + 1{s' = 0})/(N + 1) and r̂; a pair never seen pays r_max."""
    seen, k = known.seen, 0
    for i in range(seen.n.size):
        n, first, end = seen.n[i], seen.succ_ptr[i], seen.succ_ptr[i + 1]
        sets.succ_ptr[i] = k
        if first == end or seen.succ[first] != 0:
            sets.succ[k], sets.low[k] = 0, 1.0 / (n + 1)
            k += 1
        for j in range(first, end):
            sets.succ[k], sets.low[k] = seen.succ[j], (seen.times[j] + (seen.succ[j] == 0)) / (n + 1)
            k += 1
        sets.r_low[i] = sets.r_high[i] = seen.r_mean[i] if n > 0 else known.r_max
    sets.succ_ptr[seen.n.size] = k


class Mean(Estimate):
    """One plain model, in rows of its own."""

    fill = fill_mean
    geometry = PLAIN
    owns_rows = True

    def capacity(self, info: ProblemInfo, n_listed: int) -> int:
        return n_listed + info.n_pairs


@dataclass(frozen=True)
class Planning:
    """An agent that plans on an estimate."""

    estimate: Estimate
    span_bound: float = inf
    mixture: bool = True
    warm_start: bool = True

    def start(self, info: ProblemInfo, rng: Any) -> Learner:
        size = info.r_max - info.r_min
        rules = Rules(
            self.estimate, span_bound=self.span_bound * size, mixture=self.mixture, warm_start=self.warm_start
        )
        return Learner(rules, info, rng)


def begun(env: Env, agent: Planning, horizon: int, seed: int) -> Iterator[Learner]:
    """Play by hand; yield the learner at the start of every episode."""
    env_rng, agent_rng = streams(seed)
    learner, state, n = agent.start(ProblemInfo.from_mdp(env.mdp), agent_rng), env.reset(env_rng), 0
    for _ in range(horizon):
        action = learner.act(state)
        if learner.n_episodes > n:
            n = learner.n_episodes
            yield learner
        reward, state = env.step(state, action, env_rng)
        learner.observe(reward, state)


def assert_all_ways_are_one(env: Env, agent: Planning, seed: int) -> Any:
    run, learner = both(env, agent, HORIZON, seed)
    assert_is_by_hand(run, learner, env, agent, HORIZON, seed)
    return run, learner


def assert_resumes(env: Env, agent: Planning, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a run resumed in the middle has the same bits."""
    whole = Kept(agent)
    session = new_session(env, whole, HORIZON, seed)
    session.run(0.5, lambda t: None)
    monkeypatch.setattr(module, "BUDGET", 40)
    for look in (1, 4, 11, 25):
        blob, after = stopped(new_session(env, agent, HORIZON, seed), look), Kept(agent)
        other = new_session(env, after, HORIZON, seed)
        assert blob is not None
        other.restore(unpack(blob))
        other.run(0.5, lambda t: None)
        assert curves(other.result(interrupted=False)) == curves(session.result(interrupted=False))
        assert known(after.learners[0]) == known(whole.learners[0])


BOUNDS = [0.3, inf]


class TestOddBoxes:
    @pytest.mark.parametrize("c", BOUNDS)
    @pytest.mark.parametrize("seed", SEEDS)
    def test_rows_that_have_not_changed_need_not_be_written(self, seed, c):
        env = random_env(seed)
        run, learner = assert_all_ways_are_one(env, Planning(OddBox(), c), seed)
        again = Kept(Planning(OddBoxAgain(), c))
        assert curves(learn(env, again, horizon=HORIZON, seed=seed, points=30)) == curves(run)
        assert known(again.learners[0]) == known(learner)

    def test_a_run_goes_on(self, monkeypatch):
        assert_resumes(random_env(1), Planning(OddBox(), 0.3), 1, monkeypatch)

    @pytest.mark.parametrize("warm", [True, False])
    @pytest.mark.parametrize("c", BOUNDS)
    def test_plans_are_those_of_the_general_solver(self, c, warm):
        mixes = sweeps = 0
        for seed in SEEDS:
            for learner in begun(random_env(seed), Planning(OddBox(), c, warm_start=warm), 400, seed):
                bounded, bound = learner.confidence_set().augment(), learner.rules.span_bound
                tol = learner.info.size / sqrt(learner.episode.start)
                assert_certified(learner.plan, learner._planner, bounded, bound, tol)
                assert_is_the_rule(learner.plan, learner._planner, bounded, bound)
                mixes, sweeps = mixes + learner.plan.mixes, max(sweeps, learner.plan.sweeps)
        assert mixes > 10 or c == inf
        assert sweeps > 3

    @pytest.mark.parametrize("seed", SEEDS)
    def test_the_set_is_what_was_written(self, seed):
        """Also what holds for Bernstein boxes alone does not hold here: otherwise these runs say little."""
        env, odd = random_env(seed), {"low ends, all allowed": 0, "less room than unlisted": 0}
        for learner in begun(env, Planning(OddBox()), 600, seed):
            counts, bounded, info = learner.counts, learner.confidence_set(), learner.info
            assert bounded.contains(empirical_mdp(counts, info)) or (counts.n == 0).any()
            for i in range(info.n_pairs):
                n, mean, span = int(counts.n[i]), counts.r_mean[i], slice(*counts.succ_ptr[i : i + 2])
                if n == 0:
                    assert (bounded.rest_high[i], bounded.r_low[i], bounded.r_high[i]) == (1, info.r_min, info.r_max)
                    continue
                rest = 1.0 if spread(i, n, 0, 7) < 0.3 else max(spread(i, n, 0, 1) ** 2, 0.002)
                assert bounded.rest_high[i] == rest
                assert bounded.r_low[i] == mean - spread(i, n, 0, 2) * (mean - info.r_min)
                assert bounded.r_high[i] == mean + spread(i, n, 0, 3) * (info.r_max - mean)
                assert bounded.succ[span].tolist() == counts.succ[span].tolist()
                for j in range(span.start, span.stop):
                    s, times = int(counts.succ[j]), int(counts.times[j])
                    p = times / n
                    low = p if spread(i, n, 0, 8) < 0.2 else p * spread(i, s, times, 4)
                    high = p if spread(i, s, times, 5) < 0.5 else p + (1 - p) * spread(i, s, times, 6)
                    assert (bounded.p_low[j], bounded.p_high[j]) == pytest.approx((low, high), abs=1e-15)
                    odd["low ends, all allowed"] += rest == 1 and low > 0
                    odd["less room than unlisted"] += high - low < rest
        assert all(times > 5 for times in odd.values()), odd

    def test_what_lies_outside_is_not_contained(self):
        *_, learner = begun(random_env(3), Planning(OddBox()), 600, 3)
        bounded, info = learner.confidence_set(), learner.info
        inside = empirical_mdp(learner.counts, info)
        assert bounded.contains(inside)
        P, r, available = inside.to_dense()
        i = int(np.argmin(bounded.r_high))
        r[info.pair_state[i], info.action[i]] = bounded.r_high[i] + 0.01
        outside = MDP.from_dense(P, r, available=available, r_min=info.r_min, r_max=info.r_max)
        assert not bounded.contains(outside)


def with_an_island(seed: int) -> Env:
    """Return six states, of which three are never reached, and which an optimist would like to visit."""
    rng = np.random.default_rng(seed)
    P = np.zeros((6, 2, 6))
    P[:3, :, :3] = rng.dirichlet(np.full(3, 0.5), size=(3, 2))
    P[3:] = rng.dirichlet(np.ones(6), size=(3, 2))
    r = rng.uniform(0.0, 0.5, (6, 2))
    start = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]) / 3
    return Env.from_mdp(MDP.from_dense(P, r, start=start), "bernoulli")


class TestClosedStates:
    ESTIMATE = Closing(0.05, 0.05, 0.05)

    @pytest.mark.parametrize("c", BOUNDS)
    @pytest.mark.parametrize("seed", SEEDS)
    def test_all_ways_of_running_are_one(self, seed, c):
        assert_all_ways_are_one(with_an_island(seed), Planning(self.ESTIMATE, c), seed)

    @pytest.mark.parametrize("c", BOUNDS)
    def test_a_run_goes_on(self, c, monkeypatch):
        assert_resumes(with_an_island(1), Planning(self.ESTIMATE, c), 1, monkeypatch)

    @pytest.mark.parametrize("warm", [True, False])
    @pytest.mark.parametrize("c", BOUNDS)
    def test_plans_are_those_of_the_general_solver(self, c, warm):
        """States closed to a pair are listed by it with [0, 0]."""
        flagged = mixes = lower = 0
        for seed in SEEDS:
            for learner in begun(with_an_island(seed), Planning(self.ESTIMATE, c, warm_start=warm), 1000, seed):
                bounded = learner.confidence_set()
                tol = learner.info.size / sqrt(learner.episode.start)
                assert_certified(learner.plan, learner._planner, bounded.augment(), c, tol)
                assert_is_the_rule(learner.plan, learner._planner, bounded.augment(), c)
                many = np.flatnonzero(learner.counts.n >= 5)
                visited = np.unique(learner.info.pair_state[learner.counts.n > 0])
                for i in many:
                    part = slice(*bounded.succ_ptr[i : i + 2])
                    shut = bounded.succ[part][bounded.p_high[part] == 0]
                    assert shut.tolist() == sorted(set(range(6)) - set(visited.tolist()) - {learner.began_in})
                    flagged += shut.size > 0
                mixes += learner.plan.mixes
                open_to_all = BernsteinBox(0.05, 0.05, 0.05).bounded(
                    learner.counts, learner.episode.start, learner.info
                )
                free = solve(open_to_all.augment(), span_bound=c, tol=1e-6)
                lower += learner.plan.gain_bounds[1] < free.gain_bounds[0] - 0.01
        assert flagged > 50
        assert lower > 5, "closing states matters"
        assert mixes > 5 or c == inf

    def test_the_set_is_that_of_the_state_in_which_the_episode_began(self):
        """A state that was reached and not yet left is open: some pairs list it. Compiled, resumed and by hand."""
        env, starts = with_an_island(0), set()
        for learner in begun(env, Planning(self.ESTIMATE), 300, 0):
            other = Kept(Planning(self.ESTIMATE))
            session = new_session(env, other, learner.episode.start, 0)
            session.run(0.5, lambda t: None)
            (compiled,) = other.learners
            resumed = Planning(self.ESTIMATE).start(learner.info, streams(0)[1])
            resumed.set_state(compiled.get_state())
            assert learner.began_in == compiled.began_in == resumed.began_in
            wanted = learner.confidence_set()
            for bounded in (compiled.confidence_set(), resumed.confidence_set()):
                assert bounded.succ.tolist() == wanted.succ.tolist()
                assert bounded.p_high.tolist() == wanted.p_high.tolist()
            starts.add(learner.began_in)
        assert starts == {0, 1, 2}

    def test_it_can_be_audited(self):
        run = learn(with_an_island(2), Planning(self.ESTIMATE), horizon=HORIZON, seed=2, audit=True)
        plain = learn(with_an_island(2), Planning(self.ESTIMATE), horizon=HORIZON, seed=2)
        assert run.reward.tobytes() == plain.reward.tobytes()
        assert run.episodes["start"].tolist() == plain.episodes["start"].tolist()


def mean_mdp(counts: Counts, info: ProblemInfo) -> MDP:
    """Return the model that :class:`Mean` plans on."""
    S, A = int(info.n_states), int(info.n_actions)
    P, r, available = np.zeros((S, A, S)), np.full((S, A), info.r_max), np.zeros((S, A), dtype=bool)
    for i, (s, a) in enumerate(zip(info.pair_state, info.action, strict=True)):
        available[s, a] = True
        for j in range(counts.succ_ptr[i], counts.succ_ptr[i + 1]):
            P[s, a, counts.succ[j]] = counts.times[j] / (counts.n[i] + 1)
        P[s, a, 0] += 1 / (counts.n[i] + 1)
        if counts.n[i]:
            r[s, a] = counts.r_mean[i]
    return MDP.from_dense(P, r, available=available, r_min=info.r_min, r_max=info.r_max)


class TestPlainModel:
    @pytest.mark.parametrize("c", BOUNDS)
    @pytest.mark.parametrize("seed", SEEDS)
    def test_all_ways_of_running_are_one(self, seed, c):
        assert_all_ways_are_one(random_env(seed), Planning(Mean(), c), seed)

    @pytest.mark.parametrize("c", BOUNDS)
    def test_a_run_goes_on(self, c, monkeypatch):
        assert_resumes(random_env(1), Planning(Mean(), c), 1, monkeypatch)

    @pytest.mark.parametrize("policy", ["mixture", "greedy"])
    @pytest.mark.parametrize("warm", [True, False])
    @pytest.mark.parametrize("c", [0.0, 0.1, inf])
    def test_plans_are_those_of_the_general_solver(self, c, warm, policy):
        """The mixture is that of the model with rewards augmented: they reach down to r_min."""
        mixes = 0
        for seed in SEEDS:
            agent = Planning(Mean(), c, mixture=policy == "mixture", warm_start=warm)
            for learner in begun(random_env(seed), agent, 500, seed):
                mdp, bound, v = mean_mdp(learner.counts, learner.info), learner.rules.span_bound, learner.bias
                low, high = learner.plan.gain_bounds
                assert high - low <= learner.info.size / sqrt(learner.episode.start)
                step = span_bellman(mdp, v, bound) - v
                assert (low, high) == pytest.approx((step.min(), step.max()), abs=1e-11)
                exact = solve(mdp, span_bound=bound, tol=1e-9)
                assert low - 1e-11 <= exact.gain_bounds[1]
                assert exact.gain_bounds[0] <= high + 1e-11
                P, r, available = mdp.to_dense()
                least = np.full(r.shape, mdp.r_min)
                wide = BoundedMDP.from_dense(P, P, least, r, available=available, r_min=mdp.r_min, r_max=mdp.r_max)
                assert_is_the_rule(learner.plan, learner._planner, wide, bound, policy)
                mixes += learner.plan.mixes
        assert mixes > 5 or c == inf or policy == "greedy"

    def test_there_is_no_set(self):
        env = random_env(0)
        learner = Planning(Mean()).start(ProblemInfo.from_mdp(env.mdp), streams(0)[1])
        learner.act(0)
        with pytest.raises(OptionError, match="Mean: has one model, no set of plausible ones"):
            learner.confidence_set()
        with pytest.raises(OptionError, match="audit needs the true model and an agent with confidence sets"):
            learn(env, Planning(Mean()), horizon=10, seed=0, audit=True)

    def test_sets_are_the_model(self):
        *_, learner = begun(random_env(2), Planning(Mean()), 300, 2)
        sets, mdp = Mean().sets(learner.counts, 5, learner.info), mean_mdp(learner.counts, learner.info)
        n = int(sets.succ_ptr[-1])
        assert sets.succ_ptr.tolist() == mdp.succ_ptr.tolist()
        assert sets.succ[:n].tolist() == mdp.succ.tolist()
        np.testing.assert_allclose(sets.low[:n], mdp.prob, rtol=1e-14)
        assert sets.r_high.tolist() == sets.r_low.tolist() == mdp.reward.tolist()


@pytest.mark.parametrize("agent", [Planning(OddBox(), 0.3), Planning(Closing(0.05, 0.05, 0.05)), Planning(Mean(), 0.3)])
def test_interpreted_runs_have_the_same_bits(agent):
    """And the contract is checked in all of their plans."""
    env = with_an_island(1)
    compiled = [decided(learner) for learner in begun(env, agent, 150, 1)]
    with interpreted():
        assert [decided(learner) for learner in begun(env, agent, 150, 1)] == compiled
    assert len(compiled) > 5


def decided(learner: Learner) -> tuple[Any, ...]:
    """Return what a learner knows and has planned, bits as bytes."""
    plan = [part.tobytes() if isinstance(part, np.ndarray) else part for part in learner.plan]
    return (
        learner.episode,
        learner.bias.tobytes(),
        *plan,
        *(part.tobytes() for part in learner.counts.arrays().values()),
    )


BROKEN = {
    "lower ends must be ≥ 0": {"low": -0.1},
    "lower ends must not sum to more than 1": {"low": 0.6, "room": 0.0},
    "rooms must be ≥ 0": {"room": -0.1},
    "upper ends must be ≤ 1": {"low": 0.5, "room": 0.6},
    "upper ends must reach 1": {"low": 0.1, "room": 0.1, "rest": 0.0},
    "probabilities must be finite": {"low": np.nan},
    "the upper end of unlisted states must lie in": {"rest": 1.1},
    "r_low must not exceed r_high": {"r_low": 0.9, "r_high": 0.1},
    "rewards must be finite": {"r_high": np.inf},
}
PARTS = ("low", "room", "rest", "r_low", "r_high")


@passed(FILL)
def fill_constants(known, settings, kept, sets):
    """Write the same numbers everywhere."""
    for j in range(known.seen.succ_ptr[-1]):
        sets.low[j], sets.room[j] = settings[0], settings[1]
    for i in range(known.seen.n.size):
        sets.rest[i], sets.r_low[i], sets.r_high[i] = settings[2], settings[3], settings[4]


@dataclass(frozen=True)
class Constants(Estimate):
    """Boxes with the same ends everywhere."""

    low: float = 0.2
    room: float = 0.7
    rest: float = 0.5
    r_low: float = 0.0
    r_high: float = 1.0

    fill: ClassVar = fill_constants
    geometry: ClassVar = BOX

    def settings(self, info: ProblemInfo) -> np.ndarray:
        return np.array([getattr(self, name) for name in PARTS])


class TestBrokenContracts:
    INFO = ProblemInfo(3, 1)
    COUNTS = Counts(
        np.array([2, 2, 0]), np.zeros(3), np.zeros(3), np.array([0, 2, 4, 4]),
        np.array([0, 1, 1, 2], dtype=np.uint32), np.array([1, 1, 1, 1]),
    )  # fmt: skip

    def plan(self, estimate):
        return new_planner(self.INFO, estimate).plan(self.COUNTS, at(4), span_bound=1.0, mixture=True, from_bias=False)

    def test_a_contract_that_is_kept(self):
        assert Constants().bounded(self.COUNTS, 4, self.INFO).p_low.tolist() == [0.2] * 4
        with interpreted():
            assert self.plan(Constants()).gain_bounds == self.plan(Constants()).gain_bounds

    @pytest.mark.parametrize("words", BROKEN)
    def test_is_noticed_in_a_set_and_where_kernels_are_interpreted(self, words):
        broken = Constants(**BROKEN[words])
        with pytest.raises(AssertionError, match=words):
            broken.bounded(self.COUNTS, 4, self.INFO)
        with interpreted(), pytest.raises(AssertionError, match=words):
            self.plan(broken)

    def test_of_a_learner(self):
        with interpreted(), pytest.raises(AssertionError, match="rooms must be"):
            list(begun(random_env(0), Planning(Constants(rest=1.0, room=-1.0)), 100, 0))

    @pytest.mark.parametrize(
        ("geometry", "changes", "words"),
        [
            (PLAIN, {"low": np.array([0.5, 0.4, 0.5, 0.5, 1.0])}, "the distributions of a plain model must sum to 1"),
            (BALL, {"size": np.array([-0.1, 0.5, 0.5])}, "radii must be ≥ 0"),
            (KL, {"size": np.array([-0.1, 0.5, 0.5])}, "radii must be ≥ 0"),
            (KL, {"low": np.array([1.0, 0.0, 0.5, 0.5, 1.0])}, "the centres of KL balls must be > 0"),
            (KL, {"low": np.array([0.5, 0.4, 0.5, 0.5, 1.0])}, "the centres of balls must sum to 1"),
            (BALL, {"low": np.array([0.5, 0.4, 0.5, 0.5, 1.0])}, "the centres of balls must sum to 1"),
            (PLAIN, {"succ": np.array([1, 0, 1, 2, 0], dtype=np.uint32)}, "the successors of a row must rise"),
            (PLAIN, {"succ": np.array([1, 1, 1, 2, 0], dtype=np.uint32)}, "the successors of a row must rise"),
            (PLAIN, {"succ_ptr": np.array([0, 3, 2, 5])}, "rows must begin where the last one ends"),
            (BOX, {"closed": np.array([False, True, False])}, "flagged rows must not list closed states"),
            (BOX, {"closed": np.ones(3, dtype=bool), "flagged": np.array([False, False, False])}, None),
            (
                BOX,
                {"closed": np.array([True, False, False]), "flagged": np.array([False, True, False]),
                 "room": np.array([0.5, 0.5, 0.0, 0.0, 0.0]), "low": np.array([0.2, 0.2, 0.4, 0.4, 0.5])},
                "upper ends must reach 1",
            ),
            (7, {}, "the geometry is BOX, BALL, KL, PLAIN, BONUS or NOSS"),
        ],
    )  # fmt: skip
    def test_what_else_may_be_wrong(self, geometry, changes, words):
        """Rows of three pairs, of which the second is flagged where states are closed; the last lists state 0 alone."""
        estimate = Closing()
        counts = Counts(
            np.array([2, 2, 1]), np.zeros(3), np.zeros(3), np.array([0, 2, 4, 5]),
            np.array([0, 1, 1, 2, 0], dtype=np.uint32), np.array([1, 1, 1, 1, 1]),
        )  # fmt: skip
        sets = estimate.sets(counts, 3, self.INFO)
        flags = {"flagged": np.array([False, True, False]), "closed": np.zeros(3, dtype=bool)}
        middle = {"low": np.array([0.5, 0.5, 0.5, 0.5, 1.0]), "size": np.full(3, 0.5), "rest": np.full(3, 0.5)}
        sound = sets._replace(room=np.zeros(5), **middle, **flags)
        check_sets(geometry if geometry < 4 else BOX, 3, sound)
        if words is None:
            check_sets(geometry, 3, sound._replace(**changes))
            return
        with pytest.raises(AssertionError, match=words):
            check_sets(geometry, 3, sound._replace(**changes))


@dataclass(frozen=True)
class Promising(Estimate):
    """Odd boxes that promise what they do not keep."""

    fill: ClassVar = fill_changed
    geometry: ClassVar = BOX
    roomy: ClassVar = True


@dataclass(frozen=True)
class Described:
    """An agent with this estimate."""

    estimate: Any
    tolerance: Any = None

    def start(self, info: ProblemInfo, rng: Any) -> Learner:
        rules = Rules(self.estimate) if self.tolerance is None else Rules(self.estimate, tolerance=self.tolerance)
        return Learner(rules, info, rng)


class TestMistakesAreTold:
    def test_a_promise_that_is_not_kept(self):
        with pytest.raises(
            InputError, match="the sets of Promising break the contract: roomy: a listed successor has less"
        ):
            check_agent(Described(Promising()))

    def test_a_part_that_is_not_compiled(self):
        class Plain(BernsteinBox):
            fill = staticmethod(lambda known, settings, kept, sets: None)

        with pytest.raises(
            OptionError, match=r"must be a compiled function of the signature FILL\. Write @passed\(FILL\)"
        ):
            Described(Plain()).start(ProblemInfo(2, 2), streams(0)[1])

    def test_a_part_of_another_signature(self):
        with pytest.raises(
            OptionError, match=r"'fill_bernstein' must be a compiled function of the signature TOLERANCE"
        ):
            Described(BernsteinBox(), fill_bernstein).start(ProblemInfo(2, 2), streams(0)[1])

    def test_an_unknown_geometry(self):
        class Odd(BernsteinBox):
            geometry = 7

        with pytest.raises(OptionError, match=r"the geometry of Odd must be PLAIN, BOX, BALL, KL, BONUS or NOSS"):
            Described(Odd()).start(ProblemInfo(2, 2), streams(0)[1])

    @pytest.mark.parametrize("watched", [False, True])
    def test_a_tolerance_of_nothing(self, watched):
        agent = Kept(Described(BernsteinBox(), nothing), watched=watched)
        with pytest.raises(NotConvergedError, match="A tolerance must be > 0"):
            learn(random_env(1), agent, horizon=100, seed=0)


@passed(TOLERANCE)
def nothing(known):
    """Ask for the impossible."""
    return 0.0
