"""Agents that decide anew at every step: compiled, by hand and resumed they are one, and refuse what all learners refuse."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from loop_samples import curves, new_session, random_env, stopped

from spanrl import Env, ProblemInfo, check_agent, learn, make, streams
from spanrl.agents.offers import RESUME, STEPS, offers
from spanrl.agents.stepwise import STEPS as SIGNATURE
from spanrl.agents.stepwise import StepLearner, StepRules, current_state, take_step
from spanrl.errors import InputError, OptionError, RunFileError
from spanrl.kernels.jit import interpreted, kernel, passed
from spanrl.kernels.sampling import sfc64, to_unit
from spanrl.learning import session as module
from spanrl.learning.snapshot import pack, unpack
from spanrl.learning.times import measurement_times
from spanrl.seeding import get_state

HORIZON = 3000
SEEDS = range(4)


@kernel
def draw_unit(words):
    """Return a number in [0, 1) and advance the agent's random state."""
    x, words[0], words[1], words[2], words[3] = sfc64(words[0], words[1], words[2], words[3])
    return to_unit(x)


@kernel
def decide(memory, state):
    """Return the pair of the best mean reward so far; with probability ε the next one in turn, from the last pair of the state on."""
    first, end = memory.pair_ptr[state], memory.pair_ptr[state + 1]
    best, at = -np.inf, first
    for i in range(first, end):
        mean = memory.values[i] / max(memory.visits[i], 1)
        if mean > best:
            best, at = mean, i
    n_pairs = memory.pair_ptr[-1]
    if draw_unit(memory.words) < memory.settings[0]:
        last = memory.visits[n_pairs + state]
        at = last + 1 if first <= last < end - 1 else first
    memory.visits[n_pairs + state] = at
    return at


@kernel
def update(memory, pair, reward, next_state):
    """Add up the rewards of each pair, counted from where they begin, and keep a discounted mean of all."""
    memory.values[pair] += reward
    memory.visits[pair] += 1
    memory.values[memory.pair_ptr[-1]] *= 0.99
    memory.values[memory.pair_ptr[-1]] += 0.01 * reward + 0.001 * next_state


@passed(SIGNATURE)
def steps(world, memory, n):
    """Take n steps."""
    for _ in range(n):
        pair = decide(memory, current_state(world))
        reward, next_state = take_step(world, pair)
        update(memory, pair, reward, next_state)


@dataclass(frozen=True)
class Curious:
    """Plays the best mean so far, or pairs in turn."""

    epsilon: float = 0.2
    learners: list[Any] = field(default_factory=list, compare=False)

    def start(self, info: ProblemInfo, rng: Any) -> StepLearner:
        made = StepRules(decide, update, steps, (self.epsilon,), info.n_pairs + 1, info.n_pairs + int(info.n_states))
        generator = np.random.Generator(np.random.SFC64(rng)) if isinstance(rng, int) else rng
        self.learners.append(StepLearner(made, info, generator))
        return self.learners[-1]


@dataclass(frozen=True)
class Registered:
    """The same without a place to keep learners: what check_agent takes."""

    epsilon: float = 0.2

    def start(self, info: ProblemInfo, rng: Any) -> StepLearner:
        return Curious(self.epsilon).start(info, rng)


def remembered(learner: StepLearner) -> tuple[Any, ...]:
    """Return all that a learner knows, bits as bytes, and the state of its generator."""
    memory = learner.memory
    parts = memory.values, memory.visits, memory.words, get_state(learner.rng)
    return learner.t, *(part.tobytes() for part in parts)


def by_hand(env: Env, agent: Any, horizon: int, seed: int) -> tuple[StepLearner, np.ndarray, np.ndarray]:
    """Play with act and observe; return the learner, the rewards and the mean rewards of the pairs played."""
    env_rng, agent_rng = streams(seed)
    learner, state = agent.start(ProblemInfo.from_mdp(env.mdp), agent_rng), env.reset(env_rng)
    rewards, means = [], []
    for _ in range(horizon):
        action = learner.act(state)
        means.append(env.mdp.reward[env.mdp.pair(state, action)])
        reward, state = env.step(state, action, env_rng)
        learner.observe(reward, state)
        rewards.append(reward)
    return learner, np.array(rewards), np.array(means)


class TestAllWaysOfRunning:
    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
    def test_compiled_is_by_hand(self, seed, epsilon):
        env, agent = random_env(seed), Curious(epsilon)
        run = learn(env, agent, horizon=HORIZON, seed=seed, points=30, gain=0.25)
        learner, rewards, means = by_hand(env, agent, HORIZON, seed)
        assert remembered(agent.learners[0]) == remembered(learner)
        assert run.t.tolist() == measurement_times(HORIZON, 30).tolist()
        assert run.reward.tobytes() == np.cumsum(rewards)[run.t - 1].tobytes(), "whole rewards, summed in order"
        assert run.pseudo_regret.tobytes() == (run.t * 0.25 - np.cumsum(means)[run.t - 1]).tobytes()
        assert run.regret.tobytes() == (run.t * 0.25 - run.reward).tobytes()

    def test_what_it_learned_is_what_happened(self):
        env, agent = random_env(3), Curious()
        learner, rewards, _ = by_hand(env, agent, HORIZON, 3)
        n = env.mdp.n_pairs
        assert learner.memory.visits[:n].sum() == HORIZON
        assert learner.memory.values[:n].sum() == rewards.sum()
        assert (learner.memory.visits[:n] > 0).all(), "all pairs are played in turn"

    def test_it_has_no_episodes(self):
        run = learn(random_env(1), Curious(), horizon=HORIZON, seed=1)
        assert np.isnan(run.span).all()
        assert run.n_episodes.tolist() == [0] * run.t.size
        assert {name: column.size for name, column in run.episodes.items()} == dict.fromkeys(run.episodes, 0)
        assert set(run.episodes) == {"start", "gain", "span", "sweeps", "deterministic"}
        assert run.meta["seconds"]["planning"] == 0.0

    @pytest.mark.parametrize("points", [1, 1000])
    def test_few_and_many_measurements(self, points):
        """A thousand a decade are more than compiled code takes at once."""
        env = random_env(4)
        run = learn(env, Curious(), horizon=20_000, seed=4, points=points)
        _, rewards, _ = by_hand(env, Curious(), 20_000, 4)
        assert run.reward.tolist() == np.cumsum(rewards)[run.t - 1].tolist()
        assert run.t.size > module._RECORDS or points == 1

    @pytest.mark.parametrize("records", [1, 7, 1024])
    def test_how_much_is_done_at_once_changes_nothing(self, records, monkeypatch):
        env, agent = random_env(2), Curious()
        wanted = curves(learn(env, agent, horizon=1500, seed=2))
        monkeypatch.setattr(module, "_RECORDS", records)
        for budget in (1, 5, 1 << 20):
            monkeypatch.setattr(module, "BUDGET", budget)
            assert curves(learn(env, agent, horizon=1500, seed=2)) == wanted
        assert len({remembered(learner) for learner in agent.learners}) == 1

    @pytest.mark.parametrize("horizon", [1, 2, 10, 11])
    def test_short_horizons(self, horizon):
        env = random_env(1)
        run = learn(env, Curious(), horizon=horizon, seed=1)
        assert run.t[-1] == horizon
        assert run.reward[-1] == by_hand(env, Curious(), horizon, 1)[1].sum()

    def test_interpreted(self):
        env, agent = random_env(1), Curious()
        compiled = learn(env, agent, horizon=200, seed=1, gain=0.0)
        with interpreted():
            assert curves(learn(env, agent, horizon=200, seed=1, gain=0.0)) == curves(compiled)
        assert remembered(agent.learners[0]) == remembered(agent.learners[1])

    def test_another_generator_serves_by_hand(self):
        """Compiled code draws from SFC64 alone."""

        @dataclass(frozen=True)
        class Other:
            def start(self, info: ProblemInfo, rng: Any) -> StepLearner:
                return Curious().start(info, np.random.Generator(np.random.PCG64(5)))

        one, other = (learn(random_env(1), Other(), horizon=500, seed=1) for _ in range(2))
        assert curves(one) == curves(other)
        assert not new_session(random_env(1), Other(), 10, 0).is_compiled

    def test_a_gymnasium_environment(self):
        gymnasium = pytest.importorskip("gymnasium")
        run = learn(gymnasium.make("FrozenLake-v1"), Curious(), horizon=200, seed=0)
        assert run.t[-1] == 200
        assert not run.n_episodes.any()


class TestCheckpoints:
    @pytest.mark.parametrize("budget", [1, 40])
    def test_go_on_with_the_same_bits(self, budget, monkeypatch):
        """From the first steps on, when numbers of pairs are larger than t."""
        env, horizon, seed, agent = random_env(3), 600, 1, Curious(1.0)
        whole = new_session(env, agent, horizon, seed)
        whole.run(0.5, lambda t: None)
        wanted, learned = curves(whole.result(interrupted=False)), remembered(whole.learner)
        monkeypatch.setattr(module, "BUDGET", budget)
        larger = 0
        for look in (0, 1, 2, 3, 4, 5, 9, 14):
            blob = stopped(new_session(env, agent, horizon, seed), look)
            assert blob is not None
            session = new_session(env, agent, horizon, seed)
            session.restore(unpack(blob))
            larger += session.learner.memory.visits.max(initial=0) > session.learner.t
            session.run(0.5, lambda t: None)
            assert curves(session.result(interrupted=False)) == wanted, look
            assert remembered(session.learner) == learned, look
        assert larger or budget == 40

    def test_many_stops_in_one_run(self, monkeypatch):
        env, agent = random_env(1), Curious()
        whole = new_session(env, agent, HORIZON, 1)
        whole.run(0.5, lambda t: None)
        monkeypatch.setattr(module, "BUDGET", 40)
        blob, stops = stopped(new_session(env, agent, HORIZON, 1), 3), 0
        while blob is not None:
            session, stops = new_session(env, agent, HORIZON, 1), stops + 1
            session.restore(unpack(blob))
            blob = stopped(session, 3)
        assert curves(session.result(interrupted=False)) == curves(whole.result(interrupted=False))
        assert remembered(session.learner) == remembered(whole.learner)
        assert stops > 10

    def test_a_longer_horizon(self):
        env, agent = random_env(1), Curious()
        one = new_session(env, agent, 777, 1)
        one.run(0.5, lambda t: None)
        other, whole = new_session(env, agent, 2000, 1), new_session(env, agent, 2000, 1)
        other.restore(unpack(pack(one.state())))
        for session in (other, whole):
            session.run(0.5, lambda t: None)
        assert curves(other.result(interrupted=False)) == curves(whole.result(interrupted=False))

    @pytest.mark.parametrize(
        ("key", "change", "words"),
        [
            ("t", lambda t: -1, "'t' must be a whole number"),
            ("values", lambda x: x[:1], "'values' must be an array of float64"),
            ("values", lambda x: x * np.nan, "'values' must hold possible values"),
            ("visits", lambda x: x[:1], "'visits' must be an array of int64"),
            ("visits", lambda x: None, "'visits' must be an array of int64"),
        ],
    )
    def test_forged_states_are_refused(self, key, change, words):
        learner, _, _ = by_hand(random_env(1), Curious(), 100, 1)
        state = learner.get_state()
        other = Curious().start(learner.info, streams(1)[1])
        with pytest.raises(RunFileError, match=words):
            other.set_state(state | {key: change(state[key])})
        del state[key]
        with pytest.raises(RunFileError, match=f"'{key}' is missing"):
            other.set_state(state)

    def test_it_says_what_it_offers(self):
        learner = Curious().start(ProblemInfo(2, 2), 0)
        assert offers(learner) == {STEPS, RESUME}
        assert new_session(random_env(0), Curious(), 10, 0).is_resumable

        class Silent(StepLearner):
            pass

        @dataclass(frozen=True)
        class Quiet:
            def start(self, info: ProblemInfo, rng: Any) -> Any:
                return Silent(Curious().start(info, rng).rules, info, rng)

        session = new_session(random_env(0), Quiet(), 100, 0)
        assert (session.is_compiled, session.is_resumable) == (False, False)
        session.run(0.5, lambda t: None)
        wanted = learn(random_env(0), Curious(), horizon=100, seed=0, points=30)
        assert session.result(interrupted=False).reward.tobytes() == wanted.reward.tobytes()

    def test_it_cannot_be_audited(self):
        with pytest.raises(OptionError, match="audit needs the true model and an agent with confidence sets"):
            learn("three-state", Curious(), horizon=10, seed=0, audit=True)


class TestRefusals:
    INFO = ProblemInfo.from_mdp(make("three-state").mdp)

    def test_check_agent_is_content(self):
        check_agent(Registered())

    def test_act_twice(self):
        learner = Curious().start(self.INFO, 0)
        learner.act(0)
        with pytest.raises(
            OptionError, match=r"act: step 1 has no reward yet\. Call observe\(reward, next_state\) first"
        ):
            learner.act(0)

    @pytest.mark.parametrize("pair", [-1, 2, 99])
    def test_a_pair_of_another_state(self, pair):
        learner = Curious().start(self.INFO, 0)
        learner.rules = replace(learner.rules, decide=lambda memory, state: pair)
        with pytest.raises(OptionError, match=rf"decide must return a pair of state 0, in 0\.\.\d; got {pair}"):
            learner.act(0)

    def test_observe_first(self):
        learner = Curious().start(self.INFO, 0)
        with pytest.raises(
            OptionError, match=r"observe: no action is waiting for its reward\. Call act\(state\) first"
        ):
            learner.observe(0.5, 0)
        learner.act(0)
        learner.observe(0.5, 0)
        with pytest.raises(OptionError, match="observe: no action is waiting"):
            learner.observe(0.5, 0)

    @pytest.mark.parametrize("state", [-1, 3, 0.0, "0", None, True])
    def test_states_that_are_none(self, state):
        learner = Curious().start(self.INFO, 0)
        with pytest.raises(OptionError, match=r"act: the state must be in 0\.\.2; got .* at step 1"):
            learner.act(state)
        learner.act(0)
        with pytest.raises(OptionError, match=r"observe: the next state must be in 0\.\.2; got .* at step 1"):
            learner.observe(0.5, state)

    @pytest.mark.parametrize("reward", [-0.1, 1.5, np.nan, np.inf, "1", None])
    def test_rewards_out_of_range(self, reward):
        learner = Curious().start(self.INFO, 0)
        learner.act(0)
        with pytest.raises(InputError, match=r"observe: the reward must lie in \[0, 1\]; got .* at step 1"):
            learner.observe(reward, 0)

    def test_a_refusal_leaves_the_learner_as_it_was(self):
        clean, tried = (Curious().start(self.INFO, 3) for _ in range(2))
        for t in range(100):
            state, succ = t % 3, (t + 1) % 3
            assert clean.act(state) == tried.act(state)
            for wrong in ((7.0, 0), (0.5, 9)):
                with pytest.raises(InputError, match="observe:"):
                    tried.observe(*wrong)
            with pytest.raises(InputError, match="act:"):
                tried.act(state)
            clean.observe(0.25, succ)
            tried.observe(np.float32(0.25), np.uint8(succ))
        assert remembered(clean) == remembered(tried)
