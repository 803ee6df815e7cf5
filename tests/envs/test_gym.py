"""Our environments seen through Gymnasium: its own checker, ids, random numbers, masks, text, and the way back to an MDP."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import numpy as np
import pytest

from spanrl import MDP, Env, list_envs, make, register_env
from spanrl.envs import registry
from spanrl.envs.env import EnvInfo, Outcome
from spanrl.envs.knight_quest import state_index
from spanrl.envs.rendering import MOST_LINES, describe
from spanrl.errors import OptionError, UnknownNameError
from spanrl.seeding import streams

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed (pip install 'spanrl[gym]')")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from spanrl.envs.gym import SpanrlEnv, gym_id, register  # noqa: E402

IDS = {
    "2-rooms": "spanrl/2Rooms-v0",
    "4-rooms": "spanrl/4Rooms-v0",
    "counterexample-cycle": "spanrl/CounterexampleCycle-v0",
    "counterexample-fixed-point": "spanrl/CounterexampleFixedPoint-v0",
    "counterexample-nonfeasible": "spanrl/CounterexampleNonfeasible-v0",
    "deep-sea": "spanrl/DeepSea-v0",
    "ergodic-riverswim": "spanrl/ErgodicRiverSwim-v0",
    "focus-pair": "spanrl/FocusPair-v0",
    "frozen-lake": "spanrl/FrozenLake-v0",
    "garnet": "spanrl/Garnet-v0",
    "garnet-chain": "spanrl/GarnetChain-v0",
    "inventory": "spanrl/Inventory-v0",
    "jaksch-lower-bound": "spanrl/JakschLowerBound-v0",
    "knight-quest": "spanrl/KnightQuest-v0",
    "machine-replacement": "spanrl/MachineReplacement-v0",
    "nasty-7": "spanrl/Nasty7-v0",
    "queue-admission": "spanrl/QueueAdmission-v0",
    "riverswim": "spanrl/RiverSwim-v0",
    "six-arms": "spanrl/SixArms-v0",
    "taxi": "spanrl/Taxi-v0",
    "three-state": "spanrl/ThreeState-v0",
    "two-queues": "spanrl/TwoQueues-v0",
    "two-state": "spanrl/TwoState-v0",
}


def ragged() -> Env:
    """Two states, actions 1 and 2 in state 0, action 0 in state 1; each pair pays a reward of its own."""
    return Env.from_outcomes(
        {(0, 1): [(1.0, 1, 0.25)], (0, 2): [(1.0, 0, 0.5)], (1, 0): [(1.0, 0, 1.0)]}, action_names=("x", "y", "z")
    )


def walk(env, steps=60):
    """Play 0, 1, …, A−1, 0, … and return all states and rewards."""
    out = []
    for t in range(steps):
        state, reward, terminated, truncated, _ = env.step(t % env.action_space.n)
        assert terminated is False
        assert truncated is False
        out.append((state, reward))
    return out


def run(code):
    """Run ``code`` in a fresh interpreter, warnings as errors, and return what it prints."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestIds:
    def test_every_built_in_environment_has_one(self):
        assert {entry.name: gym_id(entry.name) for entry in list_envs()} == IDS
        assert {name for name in gymnasium.registry if name.startswith("spanrl/")} == set(IDS.values())

    @pytest.mark.parametrize("name", IDS)
    def test_gymnasiums_checker_has_nothing_to_say(self, name):
        env = gymnasium.make(IDS[name]).unwrapped
        check_env(env)  # its warnings are errors here
        assert env.inner == make(name)
        assert (env.observation_space.n, env.action_space.n) == (env.mdp.n_states, env.mdp.n_actions)
        assert env.metadata == {"render_modes": ["ansi"], "render_fps": 4}
        assert env.spec.max_episode_steps is None

    def test_gymnasium_finds_us_without_an_import(self):
        code = (
            "import sys, gymnasium; assert 'spanrl' not in sys.modules;"
            "env = gymnasium.make('spanrl.envs.gym:spanrl/KnightQuest-v0', rewards='mean');"
            "print(env.unwrapped.inner.info.id, env.reset(seed=0)[0] in env.observation_space)"
        )
        assert run(code) == "knight-quest[rewards=mean] True\n"

    def test_parameters_are_keywords(self):
        env = gymnasium.make("spanrl/ThreeState-v0", delta=0.01)
        assert env.unwrapped.inner == make("three-state", delta=0.01)
        assert env.unwrapped.inner != make("three-state")
        assert gymnasium.make("spanrl/RiverSwim-v0", n_states=9, variant="osband").observation_space.n == 9

    def test_wrong_parameters(self):
        with pytest.raises(UnknownNameError, match=r"three-state: unknown parameter 'delt'\. Did you mean 'delta'\?"):
            gymnasium.make("spanrl/ThreeState-v0", delt=0.01)
        with pytest.raises(OptionError, match=r"three-state: delta must be a number; got 'small'"):
            gymnasium.make("spanrl/ThreeState-v0", delta="small")
        with pytest.raises(OptionError, match=r"delta must lie in \[0, 1\); got 2\.0"):
            gymnasium.make("spanrl/ThreeState-v0", delta=2)

    def test_registering_again_changes_nothing(self):
        before = dict(gymnasium.registry)
        register()
        assert gymnasium.registry == before
        assert all(gymnasium.registry[name] is before[name] for name in IDS.values())

    def test_a_missing_id_comes_back_and_ones_own_names_stay_ours(self, monkeypatch):
        monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
        register_env("ring", ragged, summary="Mine.")
        monkeypatch.delitem(gymnasium.registry, IDS["two-state"])
        register()
        assert IDS["two-state"] in gymnasium.registry
        assert gym_id("ring") not in gymnasium.registry
        assert SpanrlEnv("ring").inner == ragged()

    def test_a_spec_survives_json(self):
        spec = gymnasium.make("spanrl/ThreeState-v0", delta=0.25).spec
        assert json.loads(spec.to_json())["kwargs"] == {"env": "three-state", "delta": 0.25}
        again = gymnasium.make(type(spec).from_json(spec.to_json()))
        assert again.unwrapped.inner == make("three-state", delta=0.25)

    def test_vectors(self):
        envs = gymnasium.make_vec("spanrl/ThreeState-v0", num_envs=2, vectorization_mode="sync")
        states, info = envs.reset(seed=3)
        assert states.tolist() == [0, 0]
        assert info["action_mask"].tolist() == [[1, 0], [1, 0]]
        mine = [gymnasium.make("spanrl/ThreeState-v0") for _ in range(2)]
        for i, env in enumerate(mine):
            env.reset(seed=3 + i)
        for _ in range(20):
            states, rewards, *_ = envs.step(np.array([0, 1]))
            assert list(zip(states, rewards, strict=True)) == [env.step(a)[:2] for a, env in enumerate(mine)]

    def test_without_gymnasium(self):
        code = (
            "import sys; sys.modules['gymnasium'] = None\n"
            "import spanrl.envs.rendering\n"
            "from spanrl.errors import MissingExtraError\n"
            "try:\n    import spanrl.envs.gym\n"
            "except MissingExtraError as error:\n    print(error)"
        )
        assert run(code) == (
            "envs.gym: gymnasium is not installed. Run: pip install gymnasium (or, in spanrl's sources, pip install '.[gym]').\n"
        )


class TestConstructor:
    def test_takes_an_env_or_a_text(self):
        env = ragged()
        assert SpanrlEnv(env).inner is env
        assert SpanrlEnv("three-state[delta=0.1]").inner == SpanrlEnv("three-state", delta=0.1).inner

    def test_wrong_arguments(self):
        with pytest.raises(OptionError, match=r"make: takes a text such as name\[key=value\]; got <MDP"):
            SpanrlEnv(ragged().mdp)
        with pytest.raises(OptionError, match=r"make: takes a text such as name.*; got <Env"):
            SpanrlEnv(ragged(), delta=0.1)
        with pytest.raises(OptionError, match=r"SpanrlEnv: render_mode must be None or 'ansi'; got 'human'\."):
            SpanrlEnv("two-state", render_mode="human")

    def test_reset_comes_first(self):
        env = SpanrlEnv("two-state", render_mode="ansi")
        for call in (lambda: env.step(0), env.render):
            with pytest.raises(gymnasium.error.ResetNeeded, match=r"Call reset\(\) first"):
                call()


class TestRandomNumbers:
    @pytest.mark.parametrize("name", ["knight-quest", "three-state[delta=0.4]"])
    def test_are_those_of_the_environments_stream(self, name):
        env, rng = SpanrlEnv(name), streams(7)[0]
        mine = make(name)
        state = mine.reset(rng)
        assert env.reset(seed=7)[0] == state
        assert env.np_random_seed == 7
        seen = []
        for t in range(200):
            action = t % mine.mdp.n_actions
            first = int(mine.mdp.action[mine.mdp.pair_ptr[state]])
            pairs = mine.mdp.action[mine.mdp.pair_ptr[state] : mine.mdp.pair_ptr[state + 1]]
            reward, state = mine.step(state, action if action in pairs else first, rng)
            assert env.step(action)[:2] == (state, reward)
            seen.append((state, reward))
        assert len(set(seen)) > 3, "something must have happened"
        assert env.reset()[0] == mine.reset(rng), "a reset without a seed goes on in the stream"

    def test_a_seed_begins_anew_and_another_one_differs(self):
        env = SpanrlEnv("knight-quest")
        runs = []
        for seed in (1, 1, 2):
            start, _ = env.reset(seed=seed)
            runs.append([start, *walk(env)])
        assert runs[0] == runs[1] != runs[2]

    def test_without_a_seed_one_is_drawn_and_told(self):
        one, other = SpanrlEnv("knight-quest"), SpanrlEnv("knight-quest")
        first = [one.reset()[0], *walk(one)]
        assert first != [other.reset()[0], *walk(other)]
        assert first == [other.reset(seed=one.np_random_seed)[0], *walk(other)]

    def test_a_generator_that_was_set_is_used(self):
        env = SpanrlEnv("knight-quest")
        env.np_random, rng = np.random.default_rng(5), np.random.default_rng(5)
        assert env.np_random_seed == -1
        state = env.inner.reset(rng)
        assert env.reset()[0] == state
        for _ in range(50):
            reward, state = env.inner.step(state, 1, rng)
            assert env.step(1)[:2] == (state, reward)

    def test_a_copy_goes_its_own_way(self):
        env = SpanrlEnv("knight-quest")
        env.reset(seed=0)
        twin = copy.deepcopy(env)
        assert walk(env) == walk(twin)

    def test_types(self):
        env = SpanrlEnv("three-state")
        state, info = env.reset(seed=0)
        after, reward, *_ = env.step(np.int64(0))
        assert [type(x) for x in (state, after, reward)] == [int, int, float]
        assert info["action_mask"].dtype == np.int8


class TestActions:
    def test_mask_of_every_state(self):
        env = SpanrlEnv(ragged())
        _, info = env.reset(seed=0)
        assert info["action_mask"].tolist() == [0, 1, 1]
        assert env.step(1)[4]["action_mask"].tolist() == [1, 0, 0]
        assert env.action_space.sample(mask=env.step(0)[4]["action_mask"]) in (1, 2)

    @pytest.mark.parametrize("name", ["knight-quest", "riverswim"])
    def test_mask_where_everything_is_available(self, name):
        env = SpanrlEnv(name)
        assert env.reset(seed=0)[1]["action_mask"].tolist() == [1] * env.mdp.n_actions

    def test_an_unavailable_action_acts_as_the_lowest_available_one(self):
        env = SpanrlEnv(ragged(), render_mode="ansi")
        env.reset(seed=0)
        assert env.step(0)[:2] == (1, 0.25), "0 is not available in state 0, 1 is"
        assert env.render().endswith("last action: y, reward 0.25")
        assert env.step(2)[:2] == (0, 1.0), "only 0 is available in state 1"
        assert env.step(2)[:2] == (0, 0.5), "2 is available in state 0"

    @pytest.mark.parametrize(
        "action", [-1, 2, 10**30, 0.0, 1.5, "a0", None, np.float64(1), np.array([0]), np.True_, [0]]
    )
    def test_wrong_actions(self, action):
        env = SpanrlEnv("two-state")
        env.reset(seed=0)
        with pytest.raises(OptionError, match=r"^SpanrlEnv: an action must be a whole number in 0\.\.1; got .*\."):
            env.step(action)
        assert env.state == 0
        assert env.step(0)[:2] == (1, 0.0), "the error left everything as it was"

    @pytest.mark.parametrize("action", [1, np.int8(1), np.int64(1), np.uint64(1), np.array(1)])
    def test_whole_numbers_of_any_type(self, action):
        env = SpanrlEnv("two-state")
        env.reset(seed=0)
        assert env.step(action)[:2] == (0, 0.5)


class TestBackToAnMDP:
    @pytest.mark.parametrize("name", [*IDS, "three-state[delta=0]", "counterexample-fixed-point[extra_action=true]"])
    def test_round_trip(self, name):
        env = SpanrlEnv(name)
        r_min, r_max = env.reward_range
        mine, back = make(name).mdp, MDP.from_gymnasium(env, r_min=r_min, r_max=r_max)
        for field in ("pair_ptr", "action", "succ_ptr", "succ", "start", "n_actions", "r_min", "r_max"):
            np.testing.assert_array_equal(getattr(back, field), getattr(mine, field), err_msg=field)
        # the probabilities and means of several outcomes are added up in another order
        np.testing.assert_allclose(back.prob, mine.prob, rtol=0, atol=2e-16)
        np.testing.assert_allclose(back.reward, mine.reward, rtol=4e-15, atol=2e-16)

    def test_through_the_wrappers_of_make(self):
        env = gymnasium.make("spanrl/TwoState-v0")
        assert MDP.from_gymnasium(env).reward.tolist() == [0.0, 0.5, 0.0, 1.0]

    def test_table(self):
        env = SpanrlEnv("three-state[delta=0.25]")
        assert env.P == {
            0: {0: [(0.25, 1, 0.0, False), (0.75, 2, 0.0, False)]},
            1: {0: [(1.0, 0, 1 / 3, False)]},
            2: {0: [(0.75, 0, 2 / 3, False), (0.25, 1, 2 / 3, False)], 1: [(1.0, 2, 2 / 3, False)]},
        }
        assert env.P is env.P
        assert env.initial_state_distrib.tolist() == [1, 0, 0]
        assert env.mdp is env.inner.mdp

    def test_range_of_the_rewards_is_the_models(self):
        mdp = MDP.from_dense([[[1.0]]], [[2.0]], r_min=-1, r_max=5)
        assert SpanrlEnv(Env.from_mdp(mdp)).reward_range == (-1.0, 5.0)


class TestText:
    def test_knight_quest(self):
        env = gymnasium.make("spanrl/KnightQuest-v0", render_mode="ansi")
        env.reset(seed=0)
        env.unwrapped.state = state_index(2, 1, gold=1, dragon=2, owned=3)
        assert env.render() == "\n".join(
            (
                "P  .  .  T",
                ".  D  .  .",
                ".  K  .  .",
                ".  G  .  .",
                "the knight owns: gold, key, armour",
                "last action: none",
            )
        )
        state, reward, *_ = env.step(5)
        assert reward == 0.25, "collecting outside the mine costs 10"
        assert env.render() == describe(env.unwrapped.inner, state, 5, 0.25)
        assert env.render().endswith("last action: collect gold, reward 0.25")

    @pytest.mark.parametrize(
        "state, rows, owned",
        [
            ((0, 3, 0, 0, 0), ["P  D  .  TK", ".  .  .  .", ".  .  .  .", ".  G  .  ."], "nothing"),
            ((3, 1, 1, 1, 0), ["P  .  .  T", "D  .  .  .", ".  .  .  .", ".  GK .  ."], "gold"),
            ((1, 1, 0, 2, 2), ["P  .  .  T", ".  DK .  .", ".  .  .  .", ".  G  .  ."], "armour"),
            ((2, 3, 0, 0, 1), ["P  D  .  T", ".  .  .  .", ".  .  .  K", ".  G  .  ."], "key"),
        ],
    )
    def test_what_shares_a_cell_is_shown(self, state, rows, owned):
        lines = describe(make("knight-quest"), state_index(*state), 3, 0.475).splitlines()
        assert lines == [*rows, f"the knight owns: {owned}", "last action: up, reward 0.475"]

    def test_the_game_is_known_by_what_it_is(self):
        game = make("knight-quest[rewards=mean]")
        assert describe(game, 0).startswith("P")
        named = Env.from_outcomes({(0, 0): [(1.0, 0, 0.0)]}, info=EnvInfo("knight-quest"))
        assert describe(named, 0, 0, 0.0) == "> 0\nlast action: 0, reward 0"
        other = Env.from_outcomes(
            {(s, a): [(1.0, s, 0.0)] for s in range(360) for a in range(8)}, action_names=game.mdp.action_names
        )
        assert describe(other, 0).startswith("> 0\n")
        assert "\n> s399\n" in describe(make("riverswim[n_states=400]"), 399), "there is no such state in the game"

    def test_two_state(self):
        env = gymnasium.make("spanrl/TwoState-v0", render_mode="ansi")
        env.reset(seed=0)
        assert env.render() == "> s0\n  s1\nlast action: none"
        env.step(1)
        assert env.render() == "> s0\n  s1\nlast action: a1, reward 0.5"
        env.step(0)
        assert env.render() == "  s0\n> s1\nlast action: a0, reward 0"
        env.reset()
        assert env.render() == "> s0\n  s1\nlast action: none"

    def test_no_mode_no_text(self):
        env = SpanrlEnv("two-state")
        env.reset(seed=0)
        assert env.render() is None

    def test_frames_are_collected(self):
        env = gymnasium.make("spanrl/TwoState-v0", render_mode="ansi_list")
        env.reset(seed=0)
        env.step(0)
        assert env.render() == ["> s0\n  s1\nlast action: none", "  s0\n> s1\nlast action: a0, reward 0"]

    def test_names_may_be_anything(self):
        env = Env.from_outcomes(
            {(s, 0): [Outcome(1.0, s, 0.0)] for s in range(5)},
            state_names=["a\nb", "\x1b[31mred", "", "{x} %s Ünïcødé 城", "> it's\ud800"],
            action_names=["go\r\tnow"],
        )
        text = describe(env, 3, 0, 1e-12)
        assert text.split("\n") == [
            "  a\\nb",
            "  \\x1b[31mred",
            "  ",
            "> {x} %s Ünïcødé 城",
            "  > it's\\ud800",
            "last action: go\\r\\tnow, reward 1e-12",
        ]
        assert text.encode("utf-8")

    @pytest.mark.parametrize("state, above, below", [(0, 0, 60), (19, 0, 60), (50, 30, 30), (95, 60, 0), (99, 60, 0)])
    def test_many_states_are_cut_around_the_current_one(self, state, above, below):
        lines = describe(make("riverswim[n_states=100]"), state).split("\n")[:-1]
        assert [line for line in lines if line.startswith(">")] == [f"> s{state}"]
        assert sum("…" not in line for line in lines) == MOST_LINES == 40
        assert (lines[0] == f"  … {above} more") == bool(above)
        assert (lines[-1] == f"  … {below} more") == bool(below)

    def test_as_many_states_as_fit_are_all_shown(self):
        assert describe(make(f"riverswim[n_states={MOST_LINES}]"), 5).count("\n") == MOST_LINES
