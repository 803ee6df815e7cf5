"""Episode rules of one's own: compiled, watched and by hand they end the same episodes, and no experience is lost."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from loop_samples import Kept, assert_is_by_hand, both, curves, known, new_session, random_env, stopped

from spanrl import SCAL, UCRL, UCRL2, Env, ProblemInfo, learn, streams
from spanrl.agents import episodes
from spanrl.agents.episodes import DOUBLING, LIMIT, UNLIMITED, EpisodeRule, episode_rule
from spanrl.agents.learner import Learner
from spanrl.errors import OptionError
from spanrl.kernels.jit import passed
from spanrl.learning import session as module
from spanrl.learning.snapshot import unpack

HORIZON = 1500
SCALE = {"p_scale": 0.002, "r_scale": 0.002}
SEEDS = range(3)


@passed(LIMIT)
def limit_steps(known, settings, pairs, allowed):
    """Allow as many steps as the setting says, whatever is visited."""
    for k in range(pairs.size):
        allowed[k] = UNLIMITED
    return int(settings[0])


@passed(LIMIT)
def limit_thrice(known, settings, pairs, allowed):
    """Allow 3·max(1, N) visits."""
    for k in range(pairs.size):
        allowed[k] = 3 * max(1, known.seen.n[pairs[k]])
    return UNLIMITED


@passed(LIMIT)
def limit_both(known, settings, pairs, allowed):
    """Allow one step more than the last episode had, as TSDE does, and another where it begins in an odd state; and max(1, N) visits."""
    for k in range(pairs.size):
        allowed[k] = max(1, known.seen.n[pairs[k]])
    return known.steps + 1 + known.state % 2


@dataclass(frozen=True)
class Steps(EpisodeRule):
    """End an episode after so many steps."""

    steps: int
    limit: ClassVar = limit_steps

    def settings(self, info: ProblemInfo) -> np.ndarray:
        return np.array([self.steps], dtype=np.float64)


class Thrice(EpisodeRule):
    """End an episode when a pair was played three times as often as before."""

    limit = limit_thrice


class Both(EpisodeRule):
    """End an episode by visits or by steps."""

    limit = limit_both


@dataclass(frozen=True)
class Ruled:
    """An agent with another episode rule."""

    agent: Any
    rule: EpisodeRule

    def start(self, info: ProblemInfo, rng: Any) -> Learner:
        inner = self.agent.start(info, rng)
        return Learner(replace(inner.rules, episodes=self.rule), info, inner.rng)


RULES = {"steps": Steps(7), "one step": Steps(1), "thrice": Thrice(), "both": Both()}
AGENTS = {
    "mixture": SCAL(0.4, **SCALE),
    "ucrl": UCRL(**SCALE),
    "ucrl2": UCRL2(),
    "cold": SCAL(0.4, **SCALE, warm_start=False),
    "best of both": SCAL(0.4, **SCALE, best_of_both=True),
}
CASES = [(name, rule, SEEDS[(i + j) % 3]) for i, name in enumerate(AGENTS) for j, rule in enumerate(RULES)]
"""Every agent with every rule; every agent, and every rule, in every environment."""


def log(env: Env, agent: Any, horizon: int, seed: int) -> tuple[Learner, list[tuple[int, int, int, int]]]:
    """Play by hand; return the learner, and (number of the episode, pair, successor, state) of every step."""
    env_rng, agent_rng = streams(seed)
    learner, state, rows = agent.start(ProblemInfo.from_mdp(env.mdp), agent_rng), env.reset(env_rng), []
    for _ in range(horizon):
        action = learner.act(state)
        reward, succ = env.step(state, action, env_rng)
        learner.observe(reward, succ)
        rows.append((learner.n_episodes, env.mdp.pair(state, action), succ, state))
        state = succ
    return learner, rows


def split(rows: list[tuple[int, int, int, int]]) -> list[list[tuple[int, int, int, int]]]:
    """Return the rows of each episode."""
    return [[row for row in rows if row[0] == k + 1] for k in range(rows[-1][0])]


class TestTheRules:
    """By hand, from the log alone."""

    @pytest.mark.parametrize("steps", [1, 7])
    def test_a_fixed_number_of_steps(self, steps):
        _, rows = log(random_env(1), Ruled(AGENTS["mixture"], Steps(steps)), 200, 1)
        lengths = [len(episode) for episode in split(rows)]
        assert lengths[:-1] == [steps] * (len(lengths) - 1)
        assert lengths[-1] == 200 - steps * (len(lengths) - 1) <= steps

    def test_three_times_the_visits(self):
        _, rows = log(random_env(1), Ruled(AGENTS["mixture"], Thrice()), 2000, 1)
        N, done = np.zeros(rows[-1][1] + 100, dtype=int), split(rows)
        for k, episode in enumerate(done):
            nu = np.bincount([pair for _, pair, _, _ in episode], minlength=N.size)
            assert (nu <= 3 * np.maximum(N, 1)).all()
            assert k == len(done) - 1 or (nu == 3 * np.maximum(N, 1)).any()
            N += nu
        assert len(done) > 5

    def test_both_together(self):
        _, rows = log(random_env(1), Ruled(AGENTS["mixture"], Both()), 2000, 1)
        N, before, ends, done = np.zeros(rows[-1][1] + 100, dtype=int), 0, set(), split(rows)
        for episode in done[:-1]:
            nu = np.bincount([pair for _, pair, _, _ in episode], minlength=N.size)
            steps = before + 1 + episode[0][3] % 2
            assert (nu <= np.maximum(N, 1)).all()
            assert len(episode) <= steps
            by_steps, by_visits = len(episode) == steps, bool((nu == np.maximum(N, 1)).any())
            assert by_steps or by_visits
            ends.add((by_steps, by_visits))
            N, before = N + nu, len(episode)
        assert {(True, False), (False, True)} <= ends
        assert {episode[0][3] % 2 for episode in done} == {0, 1}


class TestAllWaysOfRunning:
    @pytest.mark.parametrize(("name", "rule", "seed"), CASES)
    def test_have_the_same_bits(self, name, rule, seed):
        env, agent = random_env(seed), Ruled(AGENTS[name], RULES[rule])
        run, learner = both(env, agent, HORIZON, seed)
        assert run.n_episodes[-1] > 5
        assert_is_by_hand(run, learner, env, agent, HORIZON, seed)

    @pytest.mark.parametrize("rule", RULES)
    @pytest.mark.parametrize("watched", [False, True])
    def test_no_experience_is_lost(self, rule, watched):
        """Σ N and what is under way are all steps, and the counts are those of the log."""
        env, agent = random_env(4), Ruled(AGENTS["mixture"], RULES[rule])
        kept = Kept(agent, watched)
        session = new_session(env, kept, HORIZON, 4)
        session.run(0.5, lambda t: None)
        (learner,) = kept.learners
        counts, start = learner.counts, learner.episode.start
        assert counts.n.sum() == start - 1
        assert session._tally.sum() == HORIZON - start + 1 == learner.plan.steps - learner.steps_left
        assert (learner.plan.allowed - learner.plan.left).sum() == HORIZON - start + 1
        _, rows = log(env, agent, HORIZON, 4)
        before = [(pair, succ) for number, pair, succ, _ in rows if number < learner.n_episodes]
        pairs, times = np.unique(before, axis=0, return_counts=True)
        assert counts.n.tolist() == np.bincount(pairs[:, 0], times, counts.n_pairs).tolist()
        row = np.repeat(np.arange(counts.n_pairs), np.diff(counts.succ_ptr))
        assert np.column_stack((row, counts.succ)).tolist() == pairs.tolist()
        assert counts.times.tolist() == times.tolist()

    @pytest.mark.parametrize("rule", ["steps", "thrice", "both"])
    @pytest.mark.parametrize("records", [1, 7, 1024])
    def test_how_much_is_done_at_once_changes_nothing(self, rule, records, monkeypatch):
        env, agent = random_env(2), Ruled(AGENTS["mixture"], RULES[rule])
        wanted = curves(learn(env, agent, horizon=400, seed=2))
        monkeypatch.setattr(module, "_RECORDS", records)
        for watched in (False, True):
            kept = Kept(agent, watched)
            for budget in (1, 5, 7, 1 << 20):
                monkeypatch.setattr(module, "BUDGET", budget)
                assert curves(learn(env, kept, horizon=400, seed=2)) == wanted
            assert all(known(one) == known(kept.learners[0]) for one in kept.learners)

    @pytest.mark.parametrize("rule", ["steps", "one step", "thrice", "both"])
    def test_horizons_that_end_with_an_episode(self, rule):
        """The next one is neither planned nor recorded."""
        env, agent = random_env(1), Ruled(AGENTS["mixture"], RULES[rule])
        starts = learn(env, agent, horizon=HORIZON, seed=1).episodes["start"]
        for k in (1, 2, 5, starts.size - 1):
            for horizon in (int(starts[k]) - 1, int(starts[k])):
                run, learner = both(env, agent, horizon, 1)
                assert_is_by_hand(run, learner, env, agent, horizon, 1)
                assert run.episodes["start"].tolist() == starts[starts <= horizon].tolist()


class TestCheckpoints:
    @pytest.mark.parametrize("then", ["alone", "watched"])
    @pytest.mark.parametrize("rule", ["steps", "one step", "thrice", "both"])
    @pytest.mark.parametrize("budget", [7, 10])
    def test_go_on_with_the_same_bits(self, rule, then, budget, monkeypatch):
        """In the middle of episodes, and exactly where one has no more steps."""
        env, agent, horizon, seed = random_env(1), Ruled(AGENTS["mixture"], RULES[rule]), 600, 1
        whole = Kept(agent)
        session = new_session(env, whole, horizon, seed)
        session.run(0.5, lambda t: None)
        wanted, learned = curves(session.result(interrupted=False)), known(whole.learners[0])
        monkeypatch.setattr(module, "BUDGET", budget)
        at_end = within = 0
        for look in (1, 2, 5, 14, 35):
            blob = stopped(new_session(env, agent, horizon, seed), look)
            assert blob is not None
            after = Kept(agent, watched=then == "watched")
            session = new_session(env, after, horizon, seed)
            session.restore(unpack(blob))
            (learner,) = after.learners
            at_end += learner.steps_left == 0
            within += 0 < learner.steps_left < learner.plan.steps
            session.run(0.5, lambda t: None)
            assert curves(session.result(interrupted=False)) == wanted, look
            assert known(learner) == learned, look
        assert at_end or rule in ("thrice", "both") or (rule, budget) == ("steps", 10)
        assert within or rule == "one step" or (rule, budget) == ("steps", 7)

    def test_by_hand_at_every_step(self):
        """Also between the last step of an episode and the first of the next."""
        env, agent = random_env(1), Ruled(AGENTS["mixture"], Both())
        env_rng, agent_rng = streams(3)
        info = ProblemInfo.from_mdp(env.mdp)
        one, state, ended = agent.start(info, agent_rng), env.reset(env_rng), 0
        for _ in range(300):
            other = agent.start(info, agent_rng)
            other.set_state(one.get_state())
            assert known(other) == known(one)
            ended += one.steps_left == 0
            one = other
            action = one.act(state)
            reward, state = env.step(state, action, env_rng)
            one.observe(reward, state)
        assert ended > 10
        assert known(one) == known(log(env, agent, 300, 3)[0])


@passed(LIMIT)
def limit_to_nothing(known, settings, pairs, allowed):
    """Allow no step, or no visit, once there have been ten steps."""
    late = known.t > 10
    for k in range(pairs.size):
        allowed[k] = 0 if late and settings[0] == 1.0 else 1
    return 0 if late and settings[0] == 2.0 else 3


@dataclass(frozen=True)
class Nothing(EpisodeRule):
    """A rule that is none."""

    kind: int
    limit: ClassVar = limit_to_nothing

    def settings(self, info: ProblemInfo) -> np.ndarray:
        return np.array([self.kind], dtype=np.float64)


class TestRulesThatAllowNothing:
    @pytest.mark.parametrize("kind", [1, 2])
    @pytest.mark.parametrize("way", ["alone", "watched", "by hand"])
    def test_are_refused_in_all_ways_of_running(self, kind, way):
        """They would go on for ever. Before it is noticed, all goes well."""
        env, agent = random_env(1), Ruled(AGENTS["mixture"], Nothing(kind))
        words = r"learn: the episode of step (\d+) may have no step\. An episode rule must allow a step"
        with pytest.raises(OptionError, match=words) as found:
            log(env, agent, 100, 1) if way == "by hand" else learn(
                env, Kept(agent, way == "watched"), horizon=100, seed=1
            )
        assert 10 < int(re.search(words, str(found.value))[1]) <= 14
        assert learn(env, agent, horizon=10, seed=1).t[-1] == 10

    def test_a_function_that_is_not_compiled(self):
        class Bare(EpisodeRule):
            limit = limit_steps.py_func

        with pytest.raises(
            OptionError, match=r"must be a compiled function of the signature LIMIT\. Write @passed\(LIMIT\)"
        ):
            Ruled(AGENTS["mixture"], Bare()).start(ProblemInfo(2, 2), streams(0)[1])


class TestByName:
    def test_doubling_is_the_rule_unless_another_is_named(self):
        assert episode_rule("SCAL", "doubling") is DOUBLING
        assert UCRL().rules.episodes is SCAL(1.0).rules.episodes is DOUBLING

    def test_a_name_that_is_none(self):
        with pytest.raises(OptionError, match=r"SCAL: episodes must be .*doubling.*; got 'tripling'"):
            SCAL(1.0, episodes="tripling")
        with pytest.raises(OptionError, match=r"UCRL: episodes must be .*doubling.*; got 5"):
            UCRL(episodes=5)

    def test_ones_own(self, monkeypatch):
        monkeypatch.setitem(episodes.EPISODE_RULES, "sevens", "episodes:SEVENS")
        monkeypatch.setattr(episodes, "SEVENS", Steps(7), raising=False)
        run = learn("three-state", "ucrl[episodes=sevens]", horizon=70, seed=0)
        assert run.episodes["start"].tolist() == list(range(1, 71, 7))
