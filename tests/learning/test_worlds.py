"""Gymnasium environments as worlds: endings, ranges, spaces, tables and the wrappers that make them untrusted."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from learning_samples import Keeping

from spanrl import MDP, SCAL, UCRL, Env, ProblemInfo, learn, make
from spanrl.errors import InputError, OptionError
from spanrl.learning.worlds import GymWorld, TableWorld, as_world

TOY_TEXT = ["Taxi-v4", "FrozenLake-v1", "CliffWalking-v1"]


class Scripted(gymnasium.Env):
    """Plays a script of (state, reward, terminated, truncated), over and over; each reset starts at the next of ``starts``."""

    def __init__(self, script, starts=(0,), n_states=4, n_actions=2, first_state=0, first_action=0, **attributes):
        self.observation_space = spaces.Discrete(n_states, start=first_state)
        self.action_space = spaces.Discrete(n_actions, start=first_action)
        self.script, self.starts = list(script), list(starts)
        self.t = self.n_resets = 0
        self.actions, self.seeds = [], []
        for name, value in attributes.items():
            setattr(self, name, value)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.n_resets += 1
        return self.starts[(self.n_resets - 1) % len(self.starts)], {}

    def step(self, action):
        self.actions.append(action)
        state, reward, terminated, truncated = self.script[self.t % len(self.script)]
        self.t += 1
        return state, reward, terminated, truncated, {}


@dataclass(frozen=True)
class Witness:
    """Plays action 0 (or those of a script) and remembers what it saw."""

    script: tuple[int, ...] = (0,)

    def start(self, info, rng):
        return _WitnessLearner(self.script, info)


class _WitnessLearner:
    def __init__(self, script, info):
        self.script, self.info, self.log = script, info, []

    def act(self, state):
        self.state = state
        self.action = self.script[len(self.log) % len(self.script)]
        return self.action

    def observe(self, reward, next_state):
        self.log.append((self.state, self.action, reward, next_state))


def witness(env, horizon, script=(0,), seed=0, **options):
    """Return what a learner saw in ``env``, and the run."""
    keeping = Keeping(Witness(script))
    run = learn(env, keeping, horizon=horizon, seed=seed, **options)
    return keeping.learners[0], run


class TestToyText:
    @pytest.mark.parametrize("name", TOY_TEXT)
    def test_scal_learns_in_the_installed_version(self, name):
        env = gymnasium.make(name)
        run = learn(env, SCAL(10.0, p_scale=0.05, r_scale=0.05), horizon=2000, seed=0)
        mdp = MDP.from_gymnasium(env)
        assert run.t[-1] == 2000
        assert run.meta["env"] == name
        assert (run.meta["n_states"], run.meta["n_actions"]) == (env.observation_space.n, env.action_space.n)
        assert (run.meta["r_min"], run.meta["r_max"]) == (mdp.r_min, mdp.r_max)
        assert np.isfinite(run.regret).all(), "the table is there, so g* is known"
        assert run.span.max() <= 10.0 + 1e-9
        np.testing.assert_allclose(run.regret, run.t * run.meta["gain"] - run.reward, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("name", TOY_TEXT)
    def test_same_seed_same_bits(self, name):
        runs = [learn(gymnasium.make(name), SCAL(10.0), horizon=500, seed=1) for _ in range(2)]
        assert runs[0].reward.tobytes() == runs[1].reward.tobytes()
        assert runs[0].pseudo_regret.tobytes() == runs[1].pseudo_regret.tobytes()
        assert runs[0].n_episodes.tobytes() == runs[1].n_episodes.tobytes()
        again = gymnasium.make(name)
        first, second = (learn(again, SCAL(10.0), horizon=500, seed=1) for _ in range(2))
        assert first.reward.tobytes() == second.reward.tobytes() == runs[0].reward.tobytes(), (
            "a used environment begins anew"
        )

    def test_another_seed_is_another_start(self):
        seen = [witness(gymnasium.make("Taxi-v4"), 50, seed=seed)[0].log for seed in (1, 1, 2)]
        assert seen[0] == seen[1] != seen[2]

    def test_a_learner_by_hand_in_taxi(self):
        """The README's loop: terminal states are never occupied; after an ending the learner continues at the reset state."""
        env = gymnasium.make("Taxi-v4")
        learner = SCAL(10.0).start(ProblemInfo(500, 6, r_min=-10.0, r_max=20.0), 0)
        state, _ = env.reset(seed=0)
        for _ in range(2000):
            action = learner.act(int(state))
            succ, reward, terminated, truncated, _ = env.step(action)
            if terminated:
                succ, _ = env.reset()
            learner.observe(reward, int(succ))
            state = env.reset()[0] if truncated and not terminated else succ
        assert learner.t == 2000
        assert learner.n_episodes > 10

    def test_by_hand_is_learn(self):
        """The same loop with the seed that learn draws."""
        from spanrl import streams

        env, agent = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("FrozenLake-v1")), SCAL(2.0)
        run = learn(env, agent, horizon=1500, seed=4)
        env_rng, agent_rng = streams(4)
        learner = agent.start(ProblemInfo(16, 4, horizon=1500), agent_rng)
        state, _ = env.reset(seed=int(env_rng.integers(2**31)))
        total = 0.0
        for _ in range(1500):
            succ, reward, terminated, truncated, _ = env.step(learner.act(state))
            if terminated:
                succ, _ = env.reset()
            learner.observe(reward, succ)
            state = env.reset()[0] if truncated and not terminated else succ
            total += reward
        assert run.reward[-1] == total
        assert run.n_episodes[-1] == learner.n_episodes


class TestEndings:
    def test_terminated_continues_at_the_reset_state(self):
        env = Scripted([(1, 0.0, False, False), (3, 1.0, True, False)], starts=(0, 2))
        learner, run = witness(env, 6)
        assert learner.log == [
            (0, 0, 0.0, 1),
            (1, 0, 1.0, 2),
            (2, 0, 0.0, 1),
            (1, 0, 1.0, 0),
            (0, 0, 0.0, 1),
            (1, 0, 1.0, 2),
        ]
        assert run.reward[-1] == 3.0

    def test_truncated_only_resets(self):
        """The transition is recorded as it was; the jump to the reset state is none."""
        env = Scripted([(1, 0.0, False, False), (3, 1.0, False, True)], starts=(0, 2))
        learner, _ = witness(env, 5)
        assert learner.log == [(0, 0, 0.0, 1), (1, 0, 1.0, 3), (2, 0, 0.0, 1), (1, 0, 1.0, 3), (0, 0, 0.0, 1)]

    def test_both_at_once_is_terminated(self):
        env = Scripted([(3, 1.0, True, True)], starts=(0, 2))
        learner, _ = witness(env, 4)
        assert learner.log == [(0, 0, 1.0, 2), (2, 0, 1.0, 0), (0, 0, 1.0, 2), (2, 0, 1.0, 0)]
        assert env.n_resets == 5

    def test_only_the_first_reset_is_seeded(self):
        env = Scripted([(1, 0.0, True, False)])
        witness(env, 3)
        assert env.seeds[1:] == [None] * 3
        assert isinstance(env.seeds[0], int)

    def test_a_time_limit_is_no_transition(self):
        """A chain that never goes back: only the limit does, and no count may show it."""
        chain = Scripted([(1, 0.0, False, False), (2, 0.0, False, False), (3, 0.0, False, False)])
        keeping = Keeping(UCRL())
        learn(gymnasium.wrappers.TimeLimit(chain, 3), keeping, horizon=300, seed=0)
        counts = keeping.learners[0].counts
        for s in range(3):
            for pair in (2 * s, 2 * s + 1):
                assert set(counts.succ[counts.succ_ptr[pair] : counts.succ_ptr[pair + 1]].tolist()) <= {s + 1}


class TestRewards:
    @pytest.mark.parametrize("reward", [5.0, -0.1, np.nan, np.inf, np.float32(1.5)])
    def test_out_of_range(self, reward):
        env = Scripted([(1, 0.0, False, False), (2, 1.0, False, False), (3, reward, False, False)])
        words = rf"learn: Scripted paid a reward of {float(reward):g} at step 3, outside \[0, 1\]\. Declare the range: env\.unwrapped"
        with pytest.raises(InputError, match=words):
            witness(env, 10)

    @pytest.mark.parametrize("reward", [None, "1"])
    def test_what_is_no_number(self, reward):
        with pytest.raises(InputError, match="learn: Scripted paid a reward of"):
            witness(Scripted([(1, reward, False, False)]), 5)

    def test_a_declared_range(self):
        env = Scripted([(1, -3.0, False, False), (0, 7, False, False)], reward_range=(-3, 7))
        learner, run = witness(env, 10)
        assert (learner.info.r_min, learner.info.r_max) == (-3.0, 7.0)
        assert run.reward[-1] == 20.0
        env.reward_range = (-3, 6)
        with pytest.raises(InputError, match=r"paid a reward of 7 at step 2, outside \[-3, 6\]"):
            witness(env, 10)

    @pytest.mark.parametrize("declared", [(-np.inf, np.inf), (0.0, np.inf), None, 5, (1, 2, 3), ("a", "b")])
    def test_what_declares_nothing(self, declared):
        learner, _ = witness(Scripted([(1, 0.5, False, False)], reward_range=declared), 5)
        assert (learner.info.r_min, learner.info.r_max) == (0.0, 1.0)

    def test_a_declared_range_through_wrappers(self):
        env = gymnasium.wrappers.TimeLimit(Scripted([(1, 4.0, False, False)], reward_range=(0.0, 4.0)), 10)
        learner, _ = witness(env, 5)
        assert learner.info.r_max == 4.0


class TestStates:
    @pytest.mark.parametrize("state", [4, -1, np.array([1]), np.int64(4)])
    def test_out_of_range(self, state):
        env = Scripted([(1, 0.0, False, False), (state, 0.0, False, False)])
        words = r"learn: Scripted returned state .* at step 2; it must lie in 0\.\.3, as its observation_space says"
        with pytest.raises(InputError, match=words):
            witness(env, 10)

    @pytest.mark.parametrize("state", [1.5, np.array(1.5), "1", None])
    def test_what_is_no_whole_number(self, state):
        with pytest.raises(InputError, match="learn: Scripted returned state"):
            witness(Scripted([(state, 0.0, False, False)]), 5)

    def test_a_reset_state_out_of_range(self):
        with pytest.raises(InputError, match=r"learn: Scripted returned state 9 at step 0; it must lie in 0\.\.3"):
            witness(Scripted([(1, 0.0, False, False)], starts=(9,)), 10)
        with pytest.raises(InputError, match=r"learn: Scripted returned state 9 at step 1; it must lie in 0\.\.3"):
            witness(Scripted([(1, 0.0, True, False)], starts=(0, 9)), 10)

    @pytest.mark.parametrize("kind", [int, np.int64, np.uint8, np.array])
    def test_whole_numbers_of_any_kind(self, kind):
        learner, _ = witness(Scripted([(kind(2), 0.0, False, False)]), 3)
        assert [row[3] for row in learner.log] == [2, 2, 2]
        assert type(learner.log[0][3]) is int


class TestSpaces:
    def test_states_and_actions_may_start_anywhere(self):
        env = Scripted(
            [(11, 0.0, False, False), (13, 1.0, False, False)], starts=(10,), first_state=10, first_action=-1
        )
        learner, _ = witness(env, 4, script=(0, 1))
        assert learner.log == [(0, 0, 0.0, 1), (1, 1, 1.0, 3), (3, 0, 0.0, 1), (1, 1, 1.0, 3)]
        assert env.actions == [-1, 0, -1, 0]
        with pytest.raises(InputError, match=r"returned state 3 at step 1; it must lie in 10\.\.13"):
            witness(Scripted([(3, 0.0, False, False)], starts=(10,), first_state=10), 4)

    @pytest.mark.parametrize(
        "space", [spaces.Box(0.0, 1.0, (2,)), spaces.MultiDiscrete([2, 2]), spaces.MultiBinary(3)], ids=str
    )
    @pytest.mark.parametrize("what", ["observation", "action"])
    def test_others_are_refused(self, what, space):
        env = Scripted([(1, 0.0, False, False)])
        setattr(env, f"{what}_space", space)
        words = rf"learn: Scripted has the {what} space .*; only Discrete spaces are supported\. Number the {what}s, or wrap"
        with pytest.raises(OptionError, match=words):
            learn(env, "ucrl", horizon=10, seed=0)

    def test_a_real_one(self):
        with pytest.raises(
            OptionError, match=r"learn: CartPole-v1 has the observation space Box.*only Discrete spaces are supported"
        ):
            learn(gymnasium.make("CartPole-v1"), "ucrl", horizon=10, seed=0)


class TestTables:
    def test_without_a_table_regrets_are_not_known(self):
        _, run = witness(Scripted([(1, 0.25, False, False)]), 10)
        assert run.meta["gain"] is None
        assert np.isnan(run.regret).all()
        assert np.isnan(run.pseudo_regret).all()
        assert run.reward[-1] == 2.5

    def test_a_given_gain(self):
        _, run = witness(Scripted([(1, 0.25, False, False)]), 10, gain=0.5)
        np.testing.assert_allclose(run.regret, run.t * 0.25, rtol=0, atol=1e-12)
        assert np.isnan(run.pseudo_regret).all(), "mean rewards are not known"

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda env: env,
            lambda env: gymnasium.wrappers.TimeLimit(env, 50),
            lambda env: gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.wrappers.TimeLimit(env, 50)),
        ],
    )
    def test_harmless_wrappers_keep_it(self, wrap):
        run = learn(wrap(gymnasium.make("FrozenLake-v1")), "ucrl", horizon=200, seed=0)
        assert run.meta["gain"] is not None
        assert np.isfinite(run.pseudo_regret).all()

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda env: gymnasium.wrappers.TransformReward(env, lambda reward: 0.5 * reward),
            lambda env: gymnasium.wrappers.TimeLimit(
                gymnasium.wrappers.TransformReward(env, lambda reward: reward), 50
            ),
            lambda env: gymnasium.wrappers.StickyAction(env, 0.5),
        ],
    )
    def test_a_wrapper_that_may_change_something_makes_it_untrusted(self, wrap):
        run = learn(wrap(gymnasium.make("FrozenLake-v1")), "ucrl", horizon=200, seed=0)
        assert run.meta["gain"] is None
        assert np.isnan(run.regret).all()
        assert (run.meta["r_min"], run.meta["r_max"]) == (0.0, 1.0)

    def test_audit_needs_it(self):
        run = learn(gymnasium.make("FrozenLake-v1"), UCRL(), horizon=200, seed=0, audit=True)
        assert run.episodes["contains"].all()
        with pytest.raises(OptionError, match="learn: audit needs the true model"):
            learn(Scripted([(1, 0.0, False, False)]), UCRL(), horizon=200, seed=0, audit=True)

    def test_a_table_that_does_not_fit_the_spaces(self):
        env = Scripted(
            [(1, 0.0, False, False)], n_states=4, P={0: {0: [(1.0, 0, 0.0, False)]}}, initial_state_distrib=np.ones(1)
        )
        assert GymWorld(env).mdp is None

    @pytest.mark.parametrize("declared", [("a", "b"), (1, 2, 3)])
    def test_a_range_that_declares_nothing_beside_a_table(self, declared):
        table = {s: {a: [(1.0, 1, 0.5, False)] for a in range(2)} for s in range(4)}
        start = np.eye(4)[0]
        env = Scripted([(1, 0.5, False, False)], P=table, initial_state_distrib=start, reward_range=declared)
        assert witness(env, 5)[1].t[-1] == 5

    def test_a_broken_table(self):
        env = Scripted([(1, 0.0, False, False)], P={0: "nothing"}, initial_state_distrib=np.ones(1))
        assert GymWorld(env).mdp is None

    @pytest.mark.parametrize("name", ["two-state", "riverswim"])
    def test_our_own_as_a_gymnasium_environment(self, name):
        from spanrl.envs.gym import SpanrlEnv

        run = learn(SpanrlEnv(name), "scal[span_bound=2]", horizon=500, seed=0)
        assert run.meta["gain"] == pytest.approx(learn(name, "ucrl", horizon=1, seed=0).meta["gain"], abs=1e-9)
        assert np.isfinite(run.pseudo_regret).all()

    def test_our_own_with_ragged_action_sets(self):
        """An action that is not available acts as the lowest one there: a pair that the table does not have."""
        from spanrl.envs.gym import SpanrlEnv

        run = learn(SpanrlEnv("three-state"), "scal[span_bound=2,p_scale=0.01,r_scale=0.01]", horizon=500, seed=0)
        assert run.t[-1] == 500

    def test_a_fickle_passenger_is_not_in_the_table(self):
        """Taxi's ``P`` knows nothing of passengers who change their mind, so that g* is not known."""
        run = learn(gymnasium.make("Taxi-v4", fickle_passenger=True), "ucrl", horizon=50, seed=0)
        assert run.meta["gain"] is None


class TestAsWorld:
    def test_tables(self):
        env = make("three-state")
        for given in ("three-state", env, env.mdp):
            world = as_world(given)
            assert isinstance(world, TableWorld)
            assert world.mdp == env.mdp
            info = world.info(50)
            assert (info.n_pairs, info.horizon) == (4, 50)
        assert as_world("three-state[delta=0.1]").id == "three-state[delta=0.1]"
        assert as_world(env.mdp).id == "unnamed"

    def test_a_step_of_a_table(self):
        world = as_world(Env.from_mdp(MDP.from_dense([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.25], [0.5]])))
        assert world.reset(np.random.default_rng(0)) == 0
        assert world.step(0, 0, 1) == (0.25, 1, 1)
        assert world.step(1, 0, 2) == (0.5, 0, 0)

    def test_gymnasium(self):
        world = as_world(gymnasium.make("FrozenLake-v1"))
        assert isinstance(world, TableWorld)
        assert (world.id, world.played, world.step_limit) == ("FrozenLake-v1", "from its table", 100)
        wrapped = as_world(gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("FrozenLake-v1")))
        assert isinstance(wrapped, GymWorld)
        assert (wrapped.id, wrapped.played, wrapped.step_limit) == ("FrozenLake-v1", "step by step", 100)
        assert as_world(Scripted([])).id == "Scripted", "without an id the class"
