"""Gymnasium's environments from their tables: which tables are believed, cuts, and the time in the state, against plain enumeration."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, RecordEpisodeStatistics, TimeLimit, TransformReward

from spanrl import Env, analyse, learn, make
from spanrl.envs.from_gymnasium import from_gymnasium
from spanrl.errors import ModelError


class Table(gymnasium.Env):
    """Plays its table P, which begins anew in one of the states of ``start``."""

    def __init__(self, table: Any, start: Any, n_actions: int = 2) -> None:
        self.P, self.initial_state_distrib = table, np.array(start)
        self.observation_space, self.action_space = spaces.Discrete(len(start)), spaces.Discrete(n_actions)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s = int(self.np_random.choice(len(self.initial_state_distrib), p=self.initial_state_distrib))
        return self.s, {}

    def step(self, action: int) -> Any:
        rows = self.P[self.s][action]
        _, self.s, reward, ends = rows[self.np_random.choice(len(rows), p=[row[0] for row in rows])]
        return self.s, reward, ends, False, {}


WALK = {
    0: {0: [(0.5, 1, 0.0, False), (0.5, 0, 0.25, False)], 1: [(1.0, 2, 0.0, False)]},
    1: {0: [(1.0, 2, 0.5, False)], 1: [(0.25, 0, 1.0, True), (0.75, 2, 0.0, False), (0.0, 0, 0.0, False)]},
    2: {0: [(1.0, 2, 0.1, False)], 1: [(1.0, 0, 0.0, True)]},
}
START = [0.25, 0.75, 0.0]


class Shaped(FrozenLakeEnv):
    """Pays more than its table says."""

    def step(self, action: Any) -> Any:
        seen, reward, *rest = super().step(action)
        return seen, reward + 0.01, *rest


class Counting(gymnasium.Env):
    """Third-party style: Discrete spaces, no table, episodes of five steps that end by themselves."""

    observation_space, action_space = spaces.Discrete(5), spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s = 0
        return 0, {}

    def step(self, action: int) -> Any:
        self.s, ends = (self.s + 1) % 5, self.s == 4
        return self.s, float(action), ends, False, {}


class Impostor(gymnasium.Wrapper):
    """Has the name of a wrapper of Gymnasium, and pays another reward."""

    def step(self, action: Any) -> Any:
        seen, reward, *rest = self.env.step(action)
        return seen, 1.0 - reward, *rest


Impostor.__name__ = "TimeLimit"


def standard(env: Any, limit: int | None = None) -> Any:
    inner = OrderEnforcing(PassiveEnvChecker(env))
    return inner if limit is None else TimeLimit(inner, limit)


class TestWhichTables:
    def test_through_the_standard_wrappers(self) -> None:
        env = Env.from_gymnasium(standard(Table(WALK, START), 9))
        assert (env.step_limit, env.info.id, env.info.played) == (9, "Table", "from its table")
        assert [tuple(row) for row in env.outcomes(0, 0)] == [(0.5, 0, 0.25, 0, False), (0.5, 1, 0.0, 0, False)]
        ends = [tuple(row) for row in env.outcomes(1, 1)]
        assert ends == [(0.0625, 0, 1.0, 0, True), (0.1875, 1, 1.0, 0, True), (0.75, 2, 0.0, 0, False)]
        assert Env.from_gymnasium(standard(Table(WALK, START))).step_limit is None

    @pytest.mark.parametrize(
        ("wrap", "name"),
        [
            (RecordEpisodeStatistics, "RecordEpisodeStatistics"),
            (lambda env: TransformReward(env, lambda reward: reward), "TransformReward"),
            (lambda env: TimeLimit(TransformReward(env, lambda reward: reward), 5), "TransformReward"),
            (Impostor, "TimeLimit"),
        ],
        ids=["RecordEpisodeStatistics", "TransformReward", "below a TimeLimit", "of the same name"],
    )
    def test_no_other_wrapper(self, wrap: Any, name: str) -> None:
        env = wrap(gymnasium.make("FrozenLake-v1"))
        with pytest.raises(
            ModelError, match=f"FrozenLake-v1 has the wrapper {name}, of which its table P may know nothing"
        ):
            Env.from_gymnasium(env)
        assert learn(env, "ucrl", horizon=50, seed=0).meta["played"] == "step by step"

    def test_a_table_that_the_environment_contradicts(self) -> None:
        """An inherited table: the class pays more. It is neither played nor believed."""
        with pytest.raises(ModelError, match="Shaped does what its table P does not know"):
            Env.from_gymnasium(Shaped())
        env = Shaped()
        env.reward_range = (0.0, 1.01)
        run = learn(env, "ucrl", horizon=50, seed=0)
        assert (run.meta["played"], run.meta["gain"]) == ("step by step", None)
        assert run.reward[-1] == pytest.approx(0.5 + round(run.reward[-1] - 0.5))

    def test_passengers_who_change_their_mind(self) -> None:
        with pytest.raises(ModelError, match="Taxi-v4 does not know that passengers change their mind"):
            Env.from_gymnasium(gymnasium.make("Taxi-v4", fickle_passenger=True))

    def test_a_table_of_another_size(self) -> None:
        env = Table(WALK, START)
        env.action_space = spaces.Discrete(3)
        with pytest.raises(ModelError, match="the table P of Table has other states or actions than its spaces"):
            Env.from_gymnasium(env)

    def test_without_a_table_it_is_played_step_by_step(self) -> None:
        with pytest.raises(ModelError, match=r"Env.from_gymnasium: Counting has no transition table P"):
            Env.from_gymnasium(Counting())
        run = learn(Counting(), "ucrl[bounds=kt]", horizon=3000, seed=0, gain=1.0)
        assert "played    step by step" in str(run)
        assert run.regret[-1] < 300, "it has learned to play 1"

    def test_ours_without_the_detour(self) -> None:
        env = Env.from_gymnasium(gymnasium.make("spanrl/ThreeState-v0", delta=0.01))
        assert env == make("three-state[delta=0.01]")
        first, second = (learn(one, "ucrl", horizon=500, seed=0) for one in (env, "three-state[delta=0.01]"))
        assert first.reward.tobytes() == second.reward.tobytes()


def enumerated(limit: int) -> dict[Any, dict[Any, float]]:
    """Return {(state, steps, action): {(next state, steps, reward): probability}} of WALK, by a plain search."""
    out: dict[Any, dict[Any, float]] = {}
    todo = [(s, 0) for s in range(3) if START[s] > 0]
    while todo:
        s, k = todo.pop()
        for a, rows in WALK[s].items():
            if (s, k, a) in out:
                continue
            law: dict[Any, float] = defaultdict(float)
            for p, succ, reward, ends in rows:
                if ends or k + 1 == limit:
                    for first, q in enumerate(START):
                        law[first, 0, reward] += p * q
                else:
                    law[succ, k + 1, reward] += p
            out[s, k, a] = {key: p for key, p in law.items() if p > 0}
            todo += [key[:2] for key in out[s, k, a]]
    return out


class TestTimeInTheState:
    @pytest.mark.parametrize("limit", [1, 2, 5])
    def test_every_outcome(self, limit: int) -> None:
        env = from_gymnasium(standard(Table(WALK, START), limit), time_in_state=True)
        mdp, expected = env.mdp, enumerated(limit)
        names = list(mdp.state_names)
        assert len(set(names)) == len(names) == len({key[:2] for key in expected})
        found = {
            (*names[s], a): {(*names[o.succ], o.reward): o.prob for o in env.outcomes(s, a)}
            for s, a in zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True)
        }
        assert found.keys() == expected.keys()
        for pair, law in expected.items():
            assert found[pair] == pytest.approx(law)
        assert {name: p for name, p in zip(names, mdp.start.tolist(), strict=True) if p} == {(0, 0): 0.25, (1, 0): 0.75}
        assert env.step_limit is None
        assert analyse(mdp).classification != "multichain"

    def test_episodes_that_are_over_before_the_limit(self) -> None:
        """Every episode has one step: the limit of 50 never comes."""
        once = {0: {0: [(1.0, 0, 1.0, True)]}}
        env = from_gymnasium(standard(Table(once, [1.0], n_actions=1), 50), time_in_state=True)
        assert list(env.mdp.state_names) == [(0, 0)]
        assert analyse(env.mdp).gain == 1.0

    def test_the_gain_knows_the_limit(self) -> None:
        """A lake without wind, six steps to the goal: with a limit of five nobody arrives, with six everybody."""
        gains = [
            analyse(make(f"gym:FrozenLake-v1[is_slippery=false,max_episode_steps={limit},time_in_state=true]").mdp).gain
            for limit in (5, 6, 20)
        ]
        assert gains == pytest.approx([0.0, 1 / 6, 1 / 6])

    def test_regrets_are_exact(self) -> None:
        run = learn(
            "gym:FrozenLake-v1[is_slippery=false,max_episode_steps=6,time_in_state=true]", "ucrl", horizon=50, seed=0
        )
        assert run.regret_note is None
        assert "step_limit" not in run.meta
        assert run.meta["played"] == "from its table"

    def test_refused(self) -> None:
        with pytest.raises(ModelError, match="CliffWalking-v1 has no time limit, so its state needs no time"):
            from_gymnasium(gymnasium.make("CliffWalking-v1"), time_in_state=True)
        words = "with the time in the state, FrozenLake-v1 has up to 16 × 100,000 states, more than 1,000,000"
        with pytest.raises(ModelError, match=words):
            from_gymnasium(gymnasium.make("FrozenLake-v1", max_episode_steps=100_000), time_in_state=True)
        with pytest.raises(ModelError, match="has no transition table P"):
            from_gymnasium(standard(Counting(), 5), time_in_state=True)
