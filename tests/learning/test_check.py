"""The checkers: silent on everything that is registered, and one sentence for everything that can be broken."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from spanrl import (
    MDP,
    SCAL,
    UCRL,
    Env,
    check_agent,
    check_env,
    list_agents,
    list_envs,
    make,
    register_agent,
    register_env,
)
from spanrl.agents import registry as agent_registry
from spanrl.agents.learner import Learner
from spanrl.envs import registry as env_registry
from spanrl.envs.env import EnvInfo
from spanrl.errors import InputError, OptionError, UnknownNameError
from spanrl.models.checks import immutable

ENVS = [entry.name for entry in list_envs()] + ["three-state[delta=0]", "riverswim[variant=osband]"]
REQUIRED = {name: f"{name}[span_bound=2]" for name in ("focus", "scal", "scal-plus")}
AGENTS = [REQUIRED.get(entry.name, entry.name) for entry in list_agents()] + [
    "scal[span_bound=0]",
    "scal[span_bound=0.5,policy=greedy]",
    "scal[span_bound=0.5,p_scale=0.05,r_scale=0.05]",
    "scal[span_bound=1,perturb=true]",
    "scal[span_bound=1,best_of_both=true]",
    "ucrl[delta=rsqrt]",
    "ucrl2[warm_start=false]",
]


@pytest.fixture(autouse=True)
def _restore(monkeypatch):
    monkeypatch.setattr(env_registry, "_ENTRIES", dict(env_registry._ENTRIES))
    monkeypatch.setattr(agent_registry, "_ENTRIES", dict(agent_registry._ENTRIES))


def small_env(**changes: Any) -> Env:
    """Return a valid environment of two states, with some of its fields replaced."""
    env = Env.from_outcomes(
        {(0, 0): [(0.25, 0, 0.0), (0.75, 1, 0.5, 1)], (0, 1): [(1.0, 1, 1.0)], (1, 0): [(0.5, 0, 0.0), (0.5, 1, 1.0)]},
        info=EnvInfo("small"),
    )
    return replace(env, **changes)


class TestEnvironments:
    @pytest.mark.parametrize("text", ENVS)
    def test_all_that_are_registered(self, text):
        assert check_env(text) is None

    def test_an_object_of_ones_own(self):
        rng = np.random.default_rng(0)
        mdp = MDP.from_dense(
            rng.dirichlet(np.ones(4), size=(4, 2)),
            rng.uniform(-5, 20, (4, 2)),
            r_min=-5,
            r_max=20,
            start=[0.1, 0.2, 0.3, 0.4],
        )
        for rewards in ("mean", "bernoulli"):
            check_env(Env.from_mdp(mdp, rewards))
        check_env(small_env())
        check_env(Env.from_mdp(MDP.from_dense([[[1.0]]], [[0.5]])))

    def test_one_that_was_registered(self):
        register_env("mine", lambda p=0.5: Env.from_outcomes({(0, 0): [(p, 0, 0.0), (1 - p, 0, 1.0)]}), summary="Mine.")
        check_env("mine")
        check_env("mine[p=0.1]")
        check_env(make("mine", p=0.3))

    def test_many_successors_and_rare_ones(self):
        prob = np.full(400, 1 / 400)
        rows = {(s, 0): [(float(p), x, 0.0) for x, p in enumerate(prob)] for s in range(400)}
        rows[0, 0] = [(1e-9, 1, 1.0), (1 - 1e-9, 0, 0.0)]
        check_env(Env.from_outcomes(rows))

    @pytest.mark.parametrize("env", [None, 5, MDP, object()])
    def test_what_is_none(self, env):
        with pytest.raises(OptionError, match="check_env: takes an Env or a text such as 'three-state'; got"):
            check_env(env)

    def test_an_unknown_name(self):
        with pytest.raises(UnknownNameError, match="Did you mean 'three-state'"):
            check_env("tree-state")


def broken(match: str, **changes: Any) -> None:
    with pytest.raises(InputError, match=f"check_env: small: .*{match}"):
        check_env(small_env(**changes))


class TestBrokenTables:
    def test_writable_arrays(self):
        broken("out_prob must be a read-only vector", out_prob=np.array([0.25, 0.75, 1.0, 0.5, 0.5]))
        broken("out_ptr must be a read-only vector", out_ptr=[0, 2, 3, 5])

    def test_lengths(self):
        broken("the outcome arrays do not fit together", out_law=immutable([0, 0], np.uint8))
        broken("the outcome arrays do not fit together", out_ptr=immutable([0, 2, 5], np.int64))
        broken("the outcome arrays do not fit together", out_ptr=immutable([0, 2, 3, 4], np.int64))

    def test_a_pair_without_outcomes(self):
        broken("every pair must have an outcome; entry 1 is the first of 1", out_ptr=immutable([0, 3, 3, 5], np.int64))

    def test_probabilities(self):
        broken(
            "the probability of an outcome must be above 0; entry 1 is the first of 1",
            out_prob=immutable([1.0, 0.0, 1.0, 0.5, 0.5], float),
        )
        broken(
            "the probability of an outcome must be above 0", out_prob=immutable([np.nan, 0.75, 1.0, 0.5, 0.5], float)
        )
        words = r"the total probability of the pair \[s=0, a=0\] is 1.01 by the outcomes; it must be 1"
        broken(words, out_prob=immutable([0.26, 0.75, 1.0, 0.5, 0.5], float))

    def test_successors_and_laws(self):
        broken(
            r"the successor of an outcome must be a state in 0\.\.1; entry 2",
            out_succ=immutable([0, 1, 2, 0, 1], np.uint32),
        )
        broken(
            r"the law of an outcome must be 0 \(fixed\) or 1 \(Bernoulli\); entry 0",
            out_law=immutable([7, 1, 0, 0, 0], np.uint8),
        )

    def test_rewards(self):
        broken(
            r"the mean reward of an outcome must lie in \[0, 1\]; entry 4",
            out_reward=immutable([0, 0.5, 1, 0, 1.5], float),
        )
        words = r"the mean reward of the pair \[s=1, a=0\] is 0.45 by the outcomes; it must be 0.5"
        broken(words, out_reward=immutable([0, 0.5, 1, 0, 0.9], float))
        check_env(small_env(out_reward=immutable([0, 0.5, 1, 0, 1 - 1e-13], float)))

    def test_transitions(self):
        broken(
            r"the probability of \[s=0, a=0\] → [01] by the outcomes differs from that of mdp by 0\.\d",
            out_succ=immutable([0, 0, 1, 0, 1], np.uint32),
        )
        broken(
            r"\[s=0, a=1\] → [01] by the outcomes differs from that of mdp by 1",
            out_succ=immutable([0, 1, 0, 0, 1], np.uint32),
        )

    @pytest.mark.parametrize("start", [[0.5, 0.4], [-0.5, 1.5], [np.nan, 1.0]])
    def test_start(self, start):
        mdp = replace(small_env().mdp, start=np.array(start))
        broken("mdp.start must be a distribution over states", mdp=mdp)

    def test_another_model(self):
        broken("mdp must be an MDP; it is of type int", mdp=5)

    def test_a_sampler_that_does_not_follow_the_table(self):
        env = small_env()
        other = Env.from_outcomes(
            {
                (0, 0): [(0.35, 0, 0.0), (0.65, 1, 0.5, 1)],
                (0, 1): [(1.0, 1, 1.0)],
                (1, 0): [(0.5, 0, 0.0), (0.5, 1, 1.0)],
            }
        )
        env.__dict__["sampler"] = other.sampler
        with pytest.raises(
            InputError, match=r"check_env: small: the frequencies of outcomes do not agree with the table \(χ² = .*p = "
        ):
            check_env(env)


class TestBrokenBehaviour:
    def check(self, match, **methods):
        cls = type("Odd", (Env,), methods)
        env = small_env()
        odd = cls(env.mdp, env.out_ptr, env.out_prob, env.out_succ, env.out_reward, env.out_law, env.info)
        with pytest.raises(InputError, match=match):
            check_env(odd)

    @pytest.mark.parametrize("state", [2, -1, 1, 0.0, None])
    def test_reset(self, state):
        self.check(
            r"reset must return a state with a positive start probability; it returned", reset=lambda env, rng: state
        )

    def test_start_frequencies(self):
        def reset(env, rng):
            return 0

        env = small_env(mdp=replace(small_env().mdp, start=np.array([0.9, 0.1])))
        odd = type("Odd", (Env,), {"reset": reset})(
            env.mdp, env.out_ptr, env.out_prob, env.out_succ, env.out_reward, env.out_law, env.info
        )
        with pytest.raises(InputError, match="the frequencies of start states do not agree with the table"):
            check_env(odd)

    @pytest.mark.parametrize("reward", [2.0, np.nan, "1"])
    def test_rewards_of_steps(self, reward):
        self.check(r"step\[s=0, a=0\] must pay a reward in \[0, 1\]; it paid", step=lambda env, s, a, rng: (reward, 0))

    @pytest.mark.parametrize(("reward", "state"), [(0.0, 5), (0.25, 0), (0.0, 0.5), (1.0, 0)])
    def test_outcomes_of_steps(self, reward, state):
        self.check(
            r"step\[s=0, a=0\] gave reward .* and state .*, which is none of its outcomes",
            step=lambda env, s, a, rng: (reward, state),
        )

    def test_a_second_random_number(self):
        def step(env, s, a, rng):
            rng.random()
            return Env.step(env, s, a, rng)

        self.check("step must take one 64-bit number of the generator, as learn does", step=step)

    def test_a_generator_of_its_own(self):
        own = np.random.default_rng(0)

        def step(env, s, a, rng):
            rng.bit_generator.random_raw()
            return Env.step(env, s, a, own)

        self.check("reset and step with equal generators must give equal draws", step=step)

    @pytest.mark.parametrize("use", [np.random.random, random.random])
    def test_the_global_random_state(self, use):
        def step(env, s, a, rng):
            use()
            return Env.step(env, s, a, rng)

        self.check("the global random state of numpy or of Python was used", step=step)

    def test_steps_that_learn_does_not_take(self):
        """A step of one's own with the right law, but not from the table that learn plays."""

        def step(env, s, a, rng):
            mirrored = np.random.Generator(np.random.SFC64(int(rng.bit_generator.random_raw() >> 1)))
            return Env.step(env, s, a, mirrored)

        self.check("learn must give what the same steps by hand give; they differ at step", step=step)

    def test_a_name_of_another(self):
        with pytest.raises(
            InputError,
            match=r"check_env: three-state: make\('three-state'\) must give an equal environment with that id",
        ):
            check_env(small_env(info=EnvInfo("three-state")))
        check_env(small_env(info=EnvInfo("of no registered name")))

    def test_a_name_that_is_not_canonical(self):
        env = make("three-state")
        with pytest.raises(InputError, match="must give an equal environment with that id"):
            check_env(replace(env, info=EnvInfo("three-state[delta=0.005]")))

    def test_a_factory_that_is_not_the_same_twice(self):
        rng = np.random.default_rng(0)
        register_env("moody", lambda: Env.from_mdp(MDP.from_dense([[[1.0]]], [[rng.random()]])), summary="Moody.")
        with pytest.raises(InputError, match=r"check_env: moody: make\('moody'\) must give an equal environment"):
            check_env("moody")


@dataclass(frozen=True)
class Noisy:
    """A good agent of one's own: plays at random."""

    bias: float = 0.5

    def start(self, info, rng):
        return _NoisyLearner(info, rng)


class _NoisyLearner:
    def __init__(self, info, rng):
        self.info, self.rng = info, rng

    def act(self, state):
        first, end = self.info.pair_ptr[state], self.info.pair_ptr[state + 1]
        return int(self.info.action[self.rng.integers(first, end)])

    def observe(self, reward, next_state):
        pass


def agent_of(learner):
    """Return an agent whose learners are of the class ``learner``."""

    @dataclass(frozen=True)
    class Odd:
        def start(self, info, rng):
            return learner(info, rng)

    return Odd()


class TestAgents:
    @pytest.mark.parametrize("text", AGENTS)
    def test_all_that_are_registered(self, text):
        assert check_agent(text) is None

    def test_objects(self):
        check_agent(SCAL(2.0))
        check_agent(UCRL())
        check_agent(Noisy())

    def test_one_that_was_registered(self):
        register_agent("noisy", Noisy, summary="Plays at random.")
        check_agent("noisy")
        check_agent("noisy[bias=0.25]")

    @pytest.mark.parametrize("agent", [None, 5, SCAL, object()])
    def test_what_is_none(self, agent):
        with pytest.raises(
            OptionError, match=r"check_agent: takes an agent with start\(info, rng\), or a text such as 'ucrl'; got"
        ):
            check_agent(agent)

    def test_an_unknown_name_and_a_missing_parameter(self):
        with pytest.raises(UnknownNameError, match="Did you mean 'ucrl'"):
            check_agent("ucrll")
        with pytest.raises(OptionError, match="scal: span_bound must be given"):
            check_agent("scal")


class TestBrokenAgents:
    def test_a_configuration_that_can_be_set(self):
        @dataclass
        class Loose:
            bias: float = 0.5

            def start(self, info, rng):
                return _NoisyLearner(info, rng)

        class Plain:
            def __init__(self):
                self.bias = 0.5

            def start(self, info, rng):
                return _NoisyLearner(info, rng)

        for agent in (Loose(), Plain()):
            with pytest.raises(
                InputError,
                match=r"the field 'bias' can be set; an agent is a frozen configuration, so use @dataclass\(frozen=True\)",
            ):
                check_agent(agent)

    def test_a_configuration_that_changes(self):
        @dataclass(frozen=True)
        class Counting:
            started: list[int] = field(default_factory=list)

            def start(self, info, rng):
                self.started.append(1)
                return _NoisyLearner(info, rng)

        with pytest.raises(
            InputError,
            match=r"the fields \['started'\] changed while its learners ran; keep what changes in the learner",
        ):
            check_agent(Counting())

    def test_equal_texts_and_other_agents(self):
        class Identity:
            __slots__ = ()

            def start(self, info, rng):
                return _NoisyLearner(info, rng)

        register_agent("identity", Identity, summary="Compares by identity.")
        with pytest.raises(InputError, match="the text 'identity' must give equal agents; compare by fields"):
            check_agent("identity")

    def test_no_learner(self):
        with pytest.raises(InputError, match="start must return a learner with act and observe; it returned 5"):
            check_agent(agent_of(lambda info, rng: 5))

    @pytest.mark.parametrize("action", [0, 7, -1, None, 0.5, "1"])
    def test_actions_that_are_not_available(self, action):
        class Wrong(_NoisyLearner):
            def act(self, state):
                return action if state == 2 else super().act(state)

        with pytest.raises(
            InputError, match=r"act must return an available action, one of \[1, 2\] in state 2; it returned"
        ):
            check_agent(agent_of(Wrong))

    def test_a_generator_of_its_own(self):
        class Unseeded(_NoisyLearner):
            def __init__(self, info, rng):
                super().__init__(info, np.random.default_rng())

        with pytest.raises(
            InputError, match=r"learners with equal generators must decide alike; they differ at step \d+"
        ):
            check_agent(agent_of(Unseeded))

    def test_what_learners_share(self):
        class Sharing(_NoisyLearner):
            steps = 0

            def act(self, state):
                Sharing.steps += 1
                first, end = int(self.info.pair_ptr[state]), int(self.info.pair_ptr[state + 1])
                return int(self.info.action[first + Sharing.steps // 3 % (end - first)])

        with pytest.raises(InputError, match="learners with equal generators must decide alike"):
            check_agent(agent_of(Sharing))

    @pytest.mark.parametrize("use", [np.random.random, random.random, lambda: np.random.seed(0)])
    def test_the_global_random_state(self, use):
        class Global(_NoisyLearner):
            def observe(self, reward, next_state):
                use()

        with pytest.raises(InputError, match="the global random state of numpy or of Python was used"):
            check_agent(agent_of(Global))

    def test_one_that_acts_otherwise_is_taken_at_its_word(self):
        """A compiled loop that would differ from the steps by hand; here by a Learner whose ``act`` is another."""

        class Other(Learner):
            def act(self, state):
                super().act(state)
                _first, end = self.info.pair_ptr[state], self.info.pair_ptr[state + 1]
                self._last = (2 * state, int(end - 1))
                return int(self.info.action[end - 1])

        inner = UCRL()

        @dataclass(frozen=True)
        class Odd:
            def start(self, info, rng):
                learner = inner.start(info, rng)
                learner.__class__ = Other
                return learner

        check_agent(Odd())  # learn takes its steps by hand, so that they are the same

    def test_a_learner_of_ours_that_lets_everything_pass(self):
        class Lenient(Learner):
            def act(self, state):
                self._last = None
                return super().act(state)

        @dataclass(frozen=True)
        class Odd:
            def start(self, info, rng):
                learner = UCRL().start(info, rng)
                learner.__class__ = Lenient
                return learner

        with pytest.raises(InputError, match="a learner must refuse observe before act, and act twice"):
            check_agent(Odd())
