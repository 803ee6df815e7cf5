"""learn: the same as by hand, decision by decision; the same bits whatever the budget; measurements; environments; refusals."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import numpy as np
import pytest
from learning_samples import RAGGED_MASK, Keeping, play_by_hand, ragged_env

from spanrl import MDP, SCAL, UCRL, UCRL2, Env, Run, analyse, learn, make, register_agent
from spanrl.agents import registry
from spanrl.agents.learner import Learner
from spanrl.agents.offers import HOOK
from spanrl.errors import InputError, ModelFileError, OptionError, UnknownNameError
from spanrl.learning import session as module
from spanrl.learning.recorder import Recorder
from spanrl.learning.times import measurement_times
from spanrl.seeding import get_state

CURVE = ("t", "reward", "regret", "pseudo_regret", "span", "n_episodes")
COUNTS = ("n", "r_mean", "r_sq", "succ_ptr", "succ", "times")

ENVS = {"three-state": make("three-state"), "ragged": ragged_env()}
AGENTS = {
    "mixture": SCAL(0.5),
    "greedy": SCAL(0.5, policy="greedy"),
    "narrow mixture": SCAL(0.7, p_scale=0.05, r_scale=0.05, warm_start=False),
    "ucrl": UCRL(),
    "ucrl2": UCRL2(),
}


def assert_same_bits(one: Run, other: Run, rows: int | None = None, episodes: int | None = None) -> None:
    for name in CURVE:
        assert getattr(one, name)[:rows].tobytes() == getattr(other, name)[:rows].tobytes(), name
    for name, column in one.episodes.items():
        assert column[:episodes].tobytes() == other.episodes[name][:episodes].tobytes(), name


class TestByHand:
    """``learn`` and act/observe differ only in who runs the loop."""

    @pytest.mark.parametrize(
        ("where", "name"),
        [(where, name) for where in ENVS for name in AGENTS if (where, name) != ("three-state", "narrow mixture")],
    )
    def test_equals_learn(self, where, name, monkeypatch):
        """Rewards, episodes, counts and both random states; over 10⁵ steps for one agent, of which 3·10⁴ show most episodes."""
        env, agent, horizon, seed = ENVS[where], AGENTS[name], 100_000 if name == "mixture" else 30_000, 3
        words, keeping = [], Keeping(agent)

        def keep(rng):
            words.append(get_state(rng))
            return words[-1]

        monkeypatch.setattr(module, "get_state", keep)  # the kernels leave their states in what it returns
        run = learn(env, keeping, horizon=horizon, seed=seed)
        log = play_by_hand(env, agent, horizon, seed)
        (learner,) = keeping.learners

        times = run.t - 1
        g = analyse(env.mdp, diameter=False).gain
        paid, expected = np.cumsum(log.reward)[times], np.cumsum(env.mdp.reward[log.pair])[times]
        np.testing.assert_array_equal(run.reward, paid)  # rewards are whole numbers: sums are exact
        np.testing.assert_allclose(run.regret, run.t * g - paid, rtol=0, atol=1e-8)
        np.testing.assert_allclose(run.pseudo_regret, run.t * g - expected, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(run.n_episodes, log.episode[times])
        np.testing.assert_array_equal(run.span, [log.episodes[k - 1].span for k in log.episode[times]])
        for column in run.episodes:
            assert run.episodes[column].tolist() == [getattr(episode, column) for episode in log.episodes], column

        assert (
            (learner.t, learner.n_episodes) == (log.learner.t, log.learner.n_episodes) == (horizon, len(log.episodes))
        )
        for part in COUNTS:
            assert getattr(learner.counts, part).tobytes() == getattr(log.learner.counts, part).tobytes(), part
        np.testing.assert_array_equal(learner.bias, log.learner.bias)
        assert learner.policy == log.learner.policy
        np.testing.assert_array_equal(get_state(learner.rng), get_state(log.learner.rng))
        np.testing.assert_array_equal(words[0], get_state(log.env_rng))

        nu = np.bincount(log.pair[log.episode == len(log.episodes)], minlength=env.mdp.n_pairs)  # of the last episode
        pairs, n = learner.plan.pairs, learner.counts.n
        played = np.array([k % 2 == 0 or pairs[k] != pairs[k - 1] for k in range(pairs.size)])
        np.testing.assert_array_equal(learner.plan.left[played], np.maximum(n[pairs], 1)[played] - nu[pairs[played]])

    @pytest.mark.parametrize(("where", "name"), [("three-state", "mixture"), ("ragged", "narrow mixture")])
    def test_these_runs_really_mix(self, where, name):
        keeping = Keeping(AGENTS[name])
        run = learn(ENVS[where], keeping, horizon=100_000, seed=3)
        assert 0 < run.episodes["deterministic"].sum() < run.episodes["deterministic"].size
        weight = keeping.learners[0].plan.weight
        assert ((weight > 0) & (weight < 1)).any()
        start = Keeping(AGENTS[name])
        learn(ENVS[where], start, horizon=1, seed=3)
        assert (get_state(keeping.learners[0].rng) != get_state(start.learners[0].rng)).any(), "it drew"


class TestBits:
    @pytest.mark.parametrize("name", ["mixture", "narrow mixture", "ucrl2"])
    @pytest.mark.parametrize("where", ENVS)
    def test_the_budget_changes_nothing(self, where, name, monkeypatch):
        runs = []
        for budget in (1 << 20, 1, 7, 1000):
            monkeypatch.setattr(module, "BUDGET", budget)
            runs.append(learn(ENVS[where], AGENTS[name], horizon=10_000, seed=5))
        for run in runs[1:]:
            assert_same_bits(run, runs[0])

    @pytest.mark.parametrize("where", ENVS)
    def test_same_seed_same_bits_and_another_differs(self, where):
        runs = [learn(ENVS[where], SCAL(0.5), horizon=30_000, seed=seed) for seed in (0, 0, 1)]
        assert_same_bits(runs[0], runs[1])
        assert runs[0].reward.tolist() != runs[2].reward.tolist()

    @pytest.mark.parametrize("name", AGENTS)
    def test_a_longer_horizon_extends_the_same_curve(self, name):
        short, long = (learn(ENVS["ragged"], AGENTS[name], horizon=horizon, seed=2) for horizon in (12_345, 100_000))
        rows, episodes = short.t.size - 1, short.episodes["start"].size
        assert_same_bits(short, long, rows, episodes)
        assert short.t[-1] == 12_345
        assert long.n_episodes[-1] > episodes

    def test_the_number_of_points_changes_no_value(self):
        many, few = (
            learn(ENVS["three-state"], SCAL(0.5), horizon=20_000, seed=2, points=points) for points in (100, 5)
        )
        common = np.isin(many.t, few.t)
        for name in CURVE:
            assert getattr(many, name)[common].tobytes() == getattr(few, name).tobytes()

    def test_the_horizon_may_be_a_float(self):
        assert_same_bits(*(learn("two-state", "ucrl", horizon=horizon, seed=np.int64(1)) for horizon in (1000, 1e3)))

    def test_the_global_random_state_is_not_used(self):
        np.random.seed(5)
        before = np.random.get_state()[1].tobytes()
        learn("three-state", "scal[span_bound=0.5]", horizon=5000, seed=0)
        assert np.random.get_state()[1].tobytes() == before


class TestMeasurements:
    def test_times(self):
        run = learn("three-state", "ucrl", horizon=2345, seed=0, points=10)
        np.testing.assert_array_equal(run.t, measurement_times(2345, 10))
        assert run.meta["points"] == 10
        assert learn("three-state", "ucrl", horizon=1, seed=0).t.tolist() == [1]

    def test_regrets_from_a_log(self):
        """By plain sums over a logged run, with g* = 2/3 as the paper has it."""
        env = make("three-state[delta=0.005]")
        run = learn(env, "scal[span_bound=2]", horizon=5000, seed=4)
        log = play_by_hand(env, SCAL(2.0), 5000, 4)
        mean = {0: 0.0, 1: 1 / 3, 2: 2 / 3, 3: 2 / 3}
        for row, t in enumerate(run.t.tolist()):
            paid = sum(log.reward[:t].tolist())
            assert run.reward[row] == paid
            assert run.regret[row] == pytest.approx(t * 2 / 3 - paid, abs=1e-9)
            assert run.pseudo_regret[row] == pytest.approx(
                t * 2 / 3 - sum(mean[i] for i in log.pair[:t].tolist()), abs=1e-9
            )

    def test_curve_and_episodes_fit(self):
        run = learn("riverswim", "scal[span_bound=2]", horizon=30_000, seed=0)
        starts = run.episodes["start"]
        assert starts[0] == 1
        assert (np.diff(starts) > 0).all()
        np.testing.assert_array_equal(run.n_episodes, np.searchsorted(starts, run.t, side="right"))
        np.testing.assert_array_equal(run.span, run.episodes["span"][run.n_episodes - 1])
        assert (run.episodes["sweeps"] >= 1).all()
        assert (np.diff(run.reward) >= 0).all()
        assert not run.interrupted

    def test_a_given_gain(self):
        plain, given = (learn("three-state", "ucrl", horizon=1000, seed=0, gain=gain) for gain in (None, 1.0))
        assert plain.meta["gain"] == pytest.approx(2 / 3, abs=1e-12)
        assert given.meta["gain"] == 1.0
        np.testing.assert_array_equal(given.regret, given.t - given.reward)
        np.testing.assert_array_equal(given.reward, plain.reward)
        np.testing.assert_allclose(given.pseudo_regret - plain.pseudo_regret, plain.t / 3, rtol=0, atol=1e-9)

    def test_the_gain_of_the_start_where_gains_differ(self):
        """Two closed states that pay 0 and 1."""
        P = [[[1.0, 0.0]], [[0.0, 1.0]]]
        for start, gain in (([0.5, 0.5], 0.5), ([0.0, 1.0], 1.0), (0, 0.0)):
            run = learn(MDP.from_dense(P, [[0.0], [1.0]], start=start), "scal[span_bound=1]", horizon=50, seed=0)
            assert run.meta["gain"] == pytest.approx(gain, abs=1e-12)

    def test_meta(self):
        run = learn("three-state[delta=0.0050]", "scal[span_bound=2.0]", horizon=100, seed=9)
        wanted = {
            "env": "three-state", "agent": "scal[span_bound=2]", "seed": 9, "horizon": 100, "points": 100, "audit": False,
            "r_min": 0.0, "r_max": 1.0, "n_states": 3, "n_actions": 2, "interrupted": False,
        }  # fmt: skip
        assert {key: run.meta[key] for key in wanted} == wanted
        assert set(run.meta) == {*wanted, "gain", "seconds", "notes"}
        seconds = run.meta["seconds"]
        assert list(seconds) == ["planning", "simulating", "total"]
        assert 0 < seconds["planning"] + seconds["simulating"] <= seconds["total"]

    def test_a_run_can_be_saved(self, tmp_path):
        run = learn("three-state", UCRL2(), horizon=500, seed=1, audit=True)
        run.save(tmp_path / "run")
        assert_same_bits(Run.load(tmp_path / "run"), run)


class TestAudit:
    @pytest.mark.parametrize("agent", [SCAL(0.5), UCRL(), UCRL2()])
    def test_columns(self, agent):
        plain, audited = (learn("three-state", agent, horizon=20_000, seed=0, audit=audit) for audit in (False, True))
        assert set(audited.episodes) - set(plain.episodes) == {"contains", "gain_low", "gain_high"}
        for name in CURVE:
            assert getattr(plain, name).tobytes() == getattr(audited, name).tobytes()
        episodes = audited.episodes
        assert episodes["contains"].all(), "α = 1: the failure probability is far below 1e-3 here"
        width = episodes["gain_high"] - episodes["gain_low"]
        assert (width >= 0).all()
        assert (width <= 1 / np.sqrt(episodes["start"])).all()
        np.testing.assert_array_equal(episodes["gain"], (episodes["gain_low"] + episodes["gain_high"]) / 2)

    def test_optimism(self):
        """g* is below the upper end of the bracket whenever the set holds the truth and c ≥ sp(h*)."""
        for agent in (SCAL(1.5), UCRL(), UCRL2()):
            episodes = learn("three-state", agent, horizon=50_000, seed=1, audit=True).episodes
            assert (episodes["gain_high"][episodes["contains"]] >= 2 / 3).all()

    def test_narrow_sets_lose_the_truth(self):
        """So that the column can be false: α = 1e-5."""
        run = learn("three-state[delta=0.3]", UCRL(p_scale=1e-5, r_scale=1e-5), horizon=2000, seed=0, audit=True)
        assert not run.episodes["contains"].all()
        assert run.episodes["contains"][0], "nothing seen: everything is possible"

    def test_it_needs_sets(self):
        with pytest.raises(
            OptionError, match=r"learn: audit needs the true model and an agent with confidence sets\. Leave audit out"
        ):
            learn("three-state", Alternating(), horizon=10, seed=0, audit=True)


@dataclass(frozen=True)
class Alternating:
    """Plays the available actions in turn; ``wrong_at`` plays one that is not available, ``stop_at`` is Ctrl-C."""

    wrong_at: int = 0
    stop_at: int = 0

    def start(self, info, rng):
        return _AlternatingLearner(self, info, rng)


class _AlternatingLearner:
    def __init__(self, agent, info, rng):
        self.agent, self.info, self.rng, self.t, self.seen = agent, info, rng, 0, []

    def act(self, state):
        self.t += 1
        if self.t == self.agent.stop_at:
            raise KeyboardInterrupt
        actions = self.info.action[self.info.pair_ptr[state] : self.info.pair_ptr[state + 1]]
        return self.info.n_actions + 3 if self.t == self.agent.wrong_at else int(actions[self.t % actions.size])

    def observe(self, reward, next_state):
        self.seen.append((reward, next_state))


class TestOtherAgents:
    """Anything with act and observe learns, too."""

    def test_an_agent_of_ones_own(self):
        keeping = Keeping(Alternating())
        env = ENVS["ragged"]
        run = learn(env, keeping, horizon=2000, seed=6)
        (learner,) = keeping.learners
        rewards = np.array([reward for reward, _ in learner.seen])
        np.testing.assert_array_equal(run.reward, np.cumsum(rewards)[run.t - 1])
        g = analyse(env.mdp).gain
        np.testing.assert_allclose(run.regret, run.t * g - run.reward, rtol=0, atol=1e-9)
        assert (run.pseudo_regret[-1] - run.regret[-1]) != 0
        assert np.isnan(run.span).all()
        assert not run.n_episodes.any()
        assert all(column.size == 0 for column in run.episodes.values())
        assert RAGGED_MASK.any()

    def test_its_steps_are_those_of_the_environments_stream(self):
        from spanrl import streams

        env, keeping = ENVS["three-state"], Keeping(Alternating())
        learn(env, keeping, horizon=300, seed=8)
        rng = streams(8)[0]
        state, seen = env.reset(rng), []
        shadow = _AlternatingLearner(Alternating(), keeping.learners[0].info, None)
        for _ in range(300):
            reward, state = env.step(state, shadow.act(state), rng)
            seen.append((reward, state))
        assert keeping.learners[0].seen == seen

    def test_by_its_registered_name(self, monkeypatch):
        monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
        register_agent("alternating", Alternating, summary="In turn.")
        run = learn("three-state", "alternating[stop_at=900]", horizon=500, seed=0)
        assert run.meta["agent"] == "alternating[stop_at=900]"
        assert run.t[-1] == 500

    def test_an_unavailable_action_is_refused(self):
        with pytest.raises(
            OptionError, match=r"learn: the agent played action 5 in state \d at step 7, where it is not available"
        ):
            learn("three-state", Alternating(wrong_at=7), horizon=10, seed=0)

    def test_ours_behind_another_class(self):
        """It is driven step by step, to the same result; its episodes are its own affair."""

        @dataclass(frozen=True)
        class Wrapped:
            agent: SCAL

            def start(self, info, rng):
                inner = self.agent.start(info, rng)

                class Around:
                    act, observe = staticmethod(inner.act), staticmethod(inner.observe)

                return Around()

        plain, wrapped = (
            learn("three-state", agent, horizon=3000, seed=0) for agent in (SCAL(0.5), Wrapped(SCAL(0.5)))
        )
        np.testing.assert_allclose(wrapped.pseudo_regret, plain.pseudo_regret, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(wrapped.reward, plain.reward)
        assert not wrapped.n_episodes.any()

    def test_ours_with_another_bit_generator(self):
        """An agent of one's own may start a learner of ours with PCG64."""

        @dataclass(frozen=True)
        class Other:
            def start(self, info, rng):
                return SCAL(0.5).start(info, np.random.default_rng(0))

        assert learn("three-state", Other(), horizon=20_000, seed=0).t[-1] == 20_000

    def test_an_attribute_named_episode_is_not_ours(self):
        class Counting(_AlternatingLearner):
            n_episodes = episode = 1

        @dataclass(frozen=True)
        class Other:
            def start(self, info, rng):
                return Counting(Alternating(), info, rng)

        assert learn("three-state", Other(), horizon=100, seed=0).t[-1] == 100

    @pytest.mark.parametrize("wrong", ["learner", "action"])
    def test_what_is_no_learner_and_no_action(self, wrong):
        class Array(_AlternatingLearner):
            def act(self, state):
                return np.array([0])

        @dataclass(frozen=True)
        class Other:
            def start(self, info, rng):
                return 5 if wrong == "learner" else Array(Alternating(), info, rng)

        with pytest.raises(OptionError, match="learn: "):
            learn("three-state", Other(), horizon=100, seed=0)


class TestEnvironments:
    def test_text_and_env_agree(self):
        assert_same_bits(
            *(
                learn(env, "ucrl", horizon=2000, seed=0)
                for env in ("three-state[delta=0.1]", make("three-state", delta=0.1))
            )
        )

    def test_an_mdp_pays_its_mean_rewards(self):
        mdp = make("three-state").mdp
        run = learn(mdp, "ucrl", horizon=2000, seed=0)
        assert_same_bits(run, learn(Env.from_mdp(mdp), "ucrl", horizon=2000, seed=0))
        np.testing.assert_allclose(run.regret, run.pseudo_regret, rtol=0, atol=1e-9)

    def test_a_model_file(self, tmp_path):
        mdp = ENVS["ragged"].mdp
        path = tmp_path / "my model.npz"
        mdp.save(path)
        run = learn(str(path), "ucrl", horizon=2000, seed=0)
        assert_same_bits(run, learn(mdp, "ucrl", horizon=2000, seed=0))
        assert run.meta["env"] == "my model"

    def test_a_path_of_pathlib(self, tmp_path):
        ENVS["ragged"].mdp.save(tmp_path / "model.npz")
        assert learn(tmp_path / "model.npz", "ucrl", horizon=10, seed=0).meta["env"] == "model"

    def test_a_file_that_is_none(self, tmp_path):
        with pytest.raises(ModelFileError, match=r"nothing\.npz"):
            learn(str(tmp_path / "nothing.npz"), "ucrl", horizon=10, seed=0)

    def test_several_start_states(self):
        runs = [learn(ENVS["ragged"], Keeping(UCRL()), horizon=1, seed=seed) for seed in range(40)]
        assert len({run.reward[0] for run in runs}) > 1

    @pytest.mark.parametrize("env", [None, 5, object(), ["three-state"], MDP])
    def test_what_is_no_environment(self, env):
        with pytest.raises(
            OptionError, match="learn: the environment must be a text, an Env, an MDP or a Gymnasium environment; got"
        ):
            learn(env, "ucrl", horizon=10, seed=0)

    def test_an_unknown_name(self):
        with pytest.raises(
            UnknownNameError, match=r"make: unknown environment 'tree-state'\. Did you mean 'three-state'\?"
        ):
            learn("tree-state", "ucrl", horizon=10, seed=0)

    @pytest.mark.parametrize("low", [0.0, -1.0, 1e9])
    def test_rewards_far_from_zero(self, low):
        """The brackets close however far the rewards lie from 0, and no decision depends on it."""
        P = [[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]]
        mdp = MDP.from_dense(P, low + np.array([[0.0, 2.0**-10], [2.0**-10, 0.0]]), r_min=low, r_max=low + 2.0**-10)
        run = learn(mdp, SCAL(2.0**-9), horizon=3000, seed=0)
        plain = learn(MDP.from_dense(P, [[0.0, 1.0], [1.0, 0.0]]), SCAL(2.0), horizon=3000, seed=0)
        np.testing.assert_array_equal(run.episodes["start"], plain.episodes["start"])
        assert run.episodes["gain"] == pytest.approx(low + plain.episodes["gain"] * 2.0**-10, abs=1e-6)

    def test_one_state(self):
        run = learn(MDP.from_dense([[[1.0]]], [[0.25]]), "scal[span_bound=0]", horizon=100, seed=0)
        assert run.reward[-1] == 25.0
        assert run.regret[-1] == 0.0


class TestWrongInput:
    @pytest.mark.parametrize("value", [0, -1, 1.5, nan, inf, "100", None, True])
    def test_horizon(self, value):
        with pytest.raises(OptionError, match=r"learn: horizon must be a whole number ≥ 1; got .*1e6 is one, too"):
            learn("three-state", "ucrl", horizon=value, seed=0)

    def test_a_horizon_beyond_all_counters(self):
        with pytest.raises(
            OptionError, match=r"learn: horizon must be .*; got 9223372036854775808, which is more than"
        ):
            learn("three-state", "ucrl", horizon=2**63, seed=0)

    @pytest.mark.parametrize("value", [0, 0.5, "10", None])
    def test_points(self, value):
        with pytest.raises(OptionError, match="learn: points must be a whole number ≥ 1; got"):
            learn("three-state", "ucrl", horizon=10, seed=0, points=value)

    def test_more_points_than_fit_into_memory(self):
        with pytest.raises(OptionError, match="learn: points must be"):
            learn("three-state", "ucrl", horizon=10, seed=0, points=10**12)

    @pytest.mark.parametrize("value", [-1, 0.0, "0", None, False])
    def test_seed(self, value):
        with pytest.raises(OptionError, match="learn: the seed must be a whole number ≥ 0; got"):
            learn("three-state", "ucrl", horizon=10, seed=value)

    def test_a_seed_that_the_files_cannot_hold(self):
        assert learn("three-state", "ucrl", horizon=10, seed=2**63 - 1).meta["seed"] == 2**63 - 1
        with pytest.raises(
            OptionError, match=r"learn: the seed must be below 2⁶³, to fit into the files; got 9223372036854775808"
        ):
            learn("three-state", "ucrl", horizon=10, seed=2**63)

    @pytest.mark.parametrize("value", [nan, inf, "0.5", [0.5]])
    def test_gain(self, value):
        with pytest.raises(
            OptionError, match=r"learn: gain must be a finite number or None; got .*Leave it out to have it computed"
        ):
            learn("three-state", "ucrl", horizon=10, seed=0, gain=value)

    @pytest.mark.parametrize("agent", [SCAL, None, 5, object(), make("two-state")])
    def test_what_is_no_agent(self, agent):
        with pytest.raises(
            OptionError, match=r"learn: the agent must be a text such as 'scal\[span_bound=5\]' or an agent with start"
        ):
            learn("three-state", agent, horizon=10, seed=0)

    def test_an_unknown_agent(self):
        with pytest.raises(UnknownNameError, match="Did you mean 'scal'"):
            learn("three-state", "skal", horizon=10, seed=0)

    def test_options_are_given_by_name(self):
        with pytest.raises(TypeError, match="positional"):
            learn("three-state", "ucrl", 10, 0)

    def test_all_of_it_is_wrong_input(self):
        assert issubclass(OptionError, InputError)


class TestInterruptions:
    """Ctrl-C at known moments; :mod:`test_interrupt` sends it from outside."""

    def test_while_playing_by_hand(self):
        run = learn("three-state", Alternating(stop_at=38), horizon=1000, seed=0)
        whole = learn("three-state", Alternating(), horizon=37, seed=0)
        assert run.interrupted
        assert run.t[-1] == 37
        assert_same_bits(run, whole)
        assert run.meta["horizon"] == 1000

    def test_while_planning(self):
        class Interrupted(Learner):
            offers = frozenset({HOOK})

            def begin_episode(self, batch, state):
                if self.n_episodes == 12:
                    raise KeyboardInterrupt
                super().begin_episode(batch, state)

        @dataclass(frozen=True)
        class Hasty:
            def start(self, info, rng):
                return Interrupted(SCAL(2.0).rules, info, rng)

        run = learn("three-state", Hasty(), horizon=100_000, seed=0)
        whole = learn("three-state", "scal[span_bound=2]", horizon=int(run.t[-1]), seed=0)
        assert run.interrupted
        assert run.n_episodes[-1] == 12
        assert_same_bits(run, whole)

    def test_before_the_first_step(self, monkeypatch):
        def interrupted(mdp):
            raise KeyboardInterrupt

        monkeypatch.setattr("spanrl.learning.learn.find_optimum", interrupted)
        run = learn("three-state", "ucrl", horizon=100, seed=0)
        assert run.interrupted
        assert run.t.size == 0
        assert run.meta["gain"] is None
        assert "interrupted after 0 of 100 steps" in str(run)

    def test_between_the_steps_and_their_record(self, monkeypatch):
        """What is returned is what was recorded: consistent, if a little short."""
        calls = []

        def interrupted(*arguments):
            calls.append(arguments)
            if len(calls) == 30:
                raise KeyboardInterrupt
            return take(*arguments)

        take = Recorder.take
        monkeypatch.setattr(module, "BUDGET", 100)
        monkeypatch.setattr(Recorder, "take", interrupted)
        run = learn("three-state", "ucrl", horizon=10_000, seed=0)
        monkeypatch.undo()
        assert run.interrupted
        assert 0 < run.t[-1] < 10_000
        assert_same_bits(
            run, learn("three-state", "ucrl", horizon=int(run.t[-1]), seed=0), episodes=int(run.n_episodes[-1])
        )


class TestProgress:
    @pytest.mark.parametrize("agent", ["ucrl", Alternating()])
    def test_it_writes_to_standard_error_alone(self, agent, capfd):
        shown = learn("three-state", agent, horizon=5000, seed=0, progress=True)
        out, _ = capfd.readouterr()
        assert out == ""
        assert_same_bits(shown, learn("three-state", agent, horizon=5000, seed=0))

    def test_without_it_nothing_is_written(self, capfd):
        learn("three-state", "ucrl", horizon=5000, seed=0)
        assert capfd.readouterr() == ("", "")

    def test_it_shows_what_runs(self, capfd, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        learn("three-state", "scal[span_bound=2]", horizon=3e7, seed=0, progress=True)
        out, err = capfd.readouterr()
        assert out == ""
        assert "scal[span_bound=2] on three-state" in err
        assert "steps/s" in err
