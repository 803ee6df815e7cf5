"""Worlds on a grid: rooms, FrozenLake, Taxi, DeepSea."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from env_oracles import step
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from spanrl import analyse, make
from spanrl.envs.deep_sea import deep_sea
from spanrl.envs.rendering import describe
from spanrl.errors import OptionError


class TestRooms:
    def test_moves(self):
        env = make("4-rooms")
        assert step(env, "(1, 1)", "right") == ({"(1, 2)": 0.7, "(1, 1)": 0.2, "(2, 1)": 0.1}, 0)
        assert step(env, "(1, 3)", "up") == ({"(1, 3)": 0.8, "(1, 2)": 0.1, "(1, 4)": 0.1}, 0), "a door in a wall"
        assert step(env, "(2, 2)", "right") == ({"(2, 2)": 0.8 + 0.1, "(1, 2)": 0.1}, 0), "walls on two sides"
        assert step(env, "(5, 5)", "left") == ({"(1, 1)": 1}, 1), "the goal"

    def test_the_door_of_two_rooms(self):
        env = make("2-rooms")
        assert step(env, "(4, 5)", "down") == ({"(5, 5)": 0.7, "(4, 5)": 0.3}, 0)
        assert step(env, "(3, 4)", "down") == ({"(3, 4)": 0.8, "(3, 3)": 0.1, "(3, 5)": 0.1}, 0)
        assert env.mdp.n_states == 55

    def test_without_mishaps(self):
        assert step(make("4-rooms[slip=0]"), "(1, 1)", "down") == ({"(2, 1)": 1}, 0)
        assert analyse(make("4-rooms[slip=0]").mdp).gain == pytest.approx(1 / 9)  # eight steps and one to begin anew

    @pytest.mark.parametrize("name", ["4-rooms", "2-rooms"])
    def test_wrong_slip(self, name):
        with pytest.raises(OptionError, match=rf"{name}: slip must lie in \[0, 1/3\]; got 0\.4\. The literature uses"):
            make(name, slip=0.4)


class TestFrozenLake:
    def test_moves(self):
        env = make("frozen-lake")
        assert step(env, "(0, 0)", "left") == ({"(0, 0)": 2 / 3, "(1, 0)": 1 / 3}, 0)
        assert step(env, "(2, 1)", "up") == ({"(1, 1)": 1 / 3, "(2, 0)": 1 / 3, "(2, 2)": 1 / 3}, 0)
        assert step(env, "(1, 1)", "up") == ({"(0, 0)": 1}, 0), "a hole"
        assert step(env, "(3, 3)", "up") == ({"(0, 0)": 1}, 1), "the goal"
        assert step(make("frozen-lake[slippery=false]"), "(2, 1)", "up") == ({"(1, 1)": 1}, 0)

    def test_other_maps(self):
        env = make("frozen-lake[lake=FG-SH,slippery=false]")
        assert np.flatnonzero(env.mdp.start).tolist() == [2]
        assert step(env, "(0, 0)", "right") == ({"(0, 1)": 1}, 0)
        assert step(env, "(0, 1)", "left") == ({"(1, 0)": 1}, 1)
        assert analyse(env.mdp).gain == pytest.approx(1 / 3)
        assert make("frozen-lake[lake=8x8]").mdp.n_states == 64

    @pytest.mark.parametrize("lake", ["5x5", "SF-G", "SS-FG", "SF-FF", "SX-FG"])
    def test_wrong_maps(self, lake):
        with pytest.raises(
            OptionError, match=rf"frozen-lake: lake must be 4x4, 8x8 or rows .*; got '{lake}'\. SF-HG is"
        ):
            make("frozen-lake", lake=lake)

    def test_gymnasiums_map_and_moves(self):
        gymnasium = pytest.importorskip("gymnasium")
        for lake in ("4x4", "8x8"):
            table = gymnasium.make("FrozenLake-v1", map_name=lake).unwrapped.P
            mdp = make("frozen-lake", lake=lake).mdp
            for s, a in zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True):
                if not table[s][a][0][3] or len(table[s][a]) > 1:  # no hole and no goal
                    theirs = np.zeros(mdp.n_states)
                    for p, t, _, _ in table[s][a]:
                        theirs[t] += p
                    assert dict(mdp.successors(s, a)) == pytest.approx({t: p for t, p in enumerate(theirs) if p})


class TestTaxi:
    """Deterministic between deliveries: everything follows from numbers of steps, counted by breadth-first search."""

    def test_constants(self):
        mdp = make("taxi").mdp
        names = mdp.state_names
        to_go = np.array([name.split()[-1] for name in names])  # hotels
        steps = self.distances(mdp)
        ends = [s for s in range(400) if len(list(mdp.successors(s, 5))) > 1]
        assert len(ends) == 4
        left = 1 + steps[:, ends].min(axis=1)  # until the delivery is done
        length = mdp.start @ left
        gain = (21 - length) / length
        h = 21 - (1 + gain) * left
        worst = 0.0
        for hotel in "RGYB":
            here = to_go == hotel
            share = mdp.start * here / 0.25
            for target in np.flatnonzero(here):
                again = share @ np.where(here, steps[:, target], 0) + mdp.start @ np.where(here, 0, left) / 0.25
                worst = max(worst, steps[here, target].max(), left[~here].max() + again)
        result = analyse(mdp)
        assert (result.gain, result.span, result.diameter) == pytest.approx((gain, np.ptp(h), worst))
        assert f"{gain:.6f} {np.ptp(h):.4f} {worst:.4f}" == "0.606733 27.3145 74.1067"

    def distances(self, mdp):
        """Return [S, S] the steps between states without a delivery."""
        edges = [(s, t) for s in range(400) for a in range(6) for t, p in mdp.successors(s, a) if p == 1]
        return shortest_path(
            coo_array((np.ones(len(edges)), np.array(edges).T), shape=(400, 400)).tocsr(), unweighted=True
        )

    def test_moves(self):
        env = make("taxi")
        assert step(env, "(0, 1) R to G", "right") == ({"(0, 1) R to G": 1}, -1), "a wall"
        assert step(env, "(2, 1) R to G", "right") == ({"(2, 2) R to G": 1}, -1)
        assert step(env, "(0, 0) R to G", "pick up") == ({"(0, 0) taxi to G": 1}, -1)
        assert step(env, "(0, 1) R to G", "pick up") == ({"(0, 1) R to G": 1}, -10)
        assert step(env, "(4, 3) taxi to G", "drop off") == ({"(4, 3) B to G": 1}, -1), "not his hotel"
        there, reward = step(env, "(0, 4) taxi to G", "drop off")
        assert reward == 20
        assert len(there) == 300
        assert (env.mdp.r_min, env.mdp.r_max) == (-10, 20)

    def test_is_gymnasiums(self):
        gymnasium = pytest.importorskip("gymnasium")
        table = gymnasium.make("Taxi-v4").unwrapped.P
        mdp = make("taxi").mdp
        kept = [s for s in range(500) if s // 4 % 5 != s % 4]
        index = {s: i for i, s in enumerate(kept)}
        for s, i in index.items():
            for a in range(6):
                ((p, t, reward, done),) = table[s][a]
                assert p == 1
                assert mdp.reward[mdp.pair(i, a)] == reward
                there = list(mdp.successors(i, a))
                assert len(there) == 300 if done else there == [(index[t], 1.0)]


class TestDeepSea:
    def test_moves(self):
        env = make("deep-sea")
        assert step(env, "(0, 0)", "left") == ({"(1, 0)": 1}, 0.01)
        assert step(env, "(3, 3)", "right") == ({"(4, 4)": 1}, 0)
        assert step(env, "(7, 7)", "right") == ({"(0, 0)": 1}, 1), "the treasure"
        assert step(env, "(7, 7)", "left") == ({"(0, 0)": 1}, 0.01)
        assert step(env, "(7, 6)", "right") == ({"(0, 0)": 1}, 0)

    @pytest.mark.parametrize("n, cost", [(2, 0.1), (5, 0.0), (12, 0.05)])
    def test_closed_form(self, n, cost):
        result = analyse(deep_sea(n, cost).mdp)
        assert (result.gain, result.span) == pytest.approx((1 / n, (n - 1) * (2 / n - cost)))
        assert result.diameter == inf

    def test_wrong_parameters(self):
        with pytest.raises(OptionError, match=r"deep-sea: n must lie in 2\.\.300; got 1\."):
            make("deep-sea[n=1]")
        with pytest.raises(OptionError, match=r"deep-sea: move_cost must lie in \[0, 1/n\); got 0\.2\. Above that"):
            make("deep-sea[move_cost=0.2]")


class TestPictures:
    def test_cells_and_walls(self):
        lines = describe(make("4-rooms"), 3, 2, 0.0).splitlines()
        assert lines == [
            "#######",
            "#...@.#",
            "#..#..#",
            "#.##.##",
            "#.....#",
            "#..#..#",
            "#######",
            "last action: right, reward 0",
        ]
        assert describe(make("frozen-lake"), 15).startswith("######\n#....#\n#....#\n#....#\n#...@#\n######\n")

    def test_anything_else_is_listed(self):
        assert describe(make("taxi"), 0).startswith("> (0, 0) R to G\n")
        assert describe(make("deep-sea[n=40]"), 0).startswith("##########")
        assert describe(make("deep-sea[n=41]"), 0).startswith("> (0, 0)\n"), "too large"
