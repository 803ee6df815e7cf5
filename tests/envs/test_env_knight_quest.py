"""Knight Quest against spec section 4: named outcomes one by one, then the numbers of the paper by plain oracles."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from env_oracles import gain_by_lp, hitting_times, optimum

from spanrl import make
from spanrl.envs.knight_quest import ACTIONS, state_index, state_tuple
from spanrl.errors import OptionError

TOWN, MINE = (0, 3), (3, 1)
NOTHING, KEY, ARMOUR, BOTH = 0, 1, 2, 3
CHAIN = {0: {0: 0.4, 2: 0.6}, 1: {1: 0.4, 2: 0.6}, 2: {0: 0.4, 1: 0.2, 2: 0.4}}
RESET = [(*TOWN, 0, d, NOTHING) for d in range(3)]


@pytest.fixture(scope="module")
def env():
    return make("knight-quest")


@pytest.fixture(scope="module")
def solved(env):
    return optimum(env.mdp)


def happens(env, state, action):
    """Return {(next state, reward before scaling): probability} of an action by its name."""
    table = env.outcomes(state_index(*state), ACTIONS.index(action))
    return {(tuple(state_tuple(o.succ)), round(40 * o.reward - 20, 9)): o.prob for o in table}


def expected(*entries):
    """Return the same from (probability, next state, reward); "reset" stands for the three starts."""
    out = defaultdict(float)
    for p, state, r in entries:
        for after in RESET if state == "reset" else [state]:
            out[after, r] += p / 3 if state == "reset" else p
    return pytest.approx(dict(out), abs=1e-12)


def with_dragon(dragon, row, col, gold, owned, reward=-1, p=1.0):
    """Return the entries of an uneventful step: the knight ends in (row, col), the dragon moves by its chain."""
    return [(p * q, (row, col, gold, d, owned), reward) for d, q in CHAIN[dragon].items()]


class TestMoves:
    @pytest.mark.parametrize(
        "action, to",
        [
            ("right", (2, 3)),
            ("down", (3, 2)),
            ("left", (2, 1)),
            ("up", (1, 2)),
            ("stay", (2, 2)),
        ],
    )
    def test_a_move_succeeds_without_armour_and_costs_one(self, env, action, to):
        assert happens(env, (2, 2, 0, 2, NOTHING), action) == expected(*with_dragon(2, *to, 0, NOTHING))

    @pytest.mark.parametrize("dragon", [0, 1, 2])
    def test_the_dragon_follows_its_chain(self, env, dragon):
        assert happens(env, (3, 3, 0, dragon, KEY), "stay") == expected(*with_dragon(dragon, 3, 3, 0, KEY))

    @pytest.mark.parametrize("cell, action", [((0, 3), "right"), ((3, 0), "down"), ((2, 0), "left"), ((0, 2), "up")])
    def test_a_wall_leaves_the_knight_where_he_is_for_minus_one(self, env, cell, action):
        assert happens(env, (*cell, 0, 1, NOTHING), action) == expected(*with_dragon(1, *cell, 0, NOTHING))

    @pytest.mark.parametrize("owned", [ARMOUR, BOTH])
    def test_an_armoured_move_succeeds_half_of_the_time(self, env, owned):
        assert happens(env, (2, 2, 1, 0, owned), "left") == expected(
            *with_dragon(0, 2, 1, 1, owned, p=0.5), *with_dragon(0, 2, 2, 1, owned, p=0.5)
        )

    def test_an_armoured_stay_or_wall_stays_for_certain(self, env):
        for action in ("stay", "right"):
            assert happens(env, (2, 3, 0, 2, ARMOUR), action) == expected(*with_dragon(2, 2, 3, 0, ARMOUR))

    def test_the_key_alone_does_not_hamper(self, env):
        assert happens(env, (2, 2, 0, 1, KEY), "down") == expected(*with_dragon(1, 3, 2, 0, KEY))


class TestGold:
    def test_collecting_at_the_mine_gives_gold(self, env):
        assert happens(env, (*MINE, 0, 2, KEY), "collect gold") == expected(*with_dragon(2, *MINE, 1, KEY))

    def test_collecting_with_gold_in_hand_changes_nothing_and_costs_one(self, env):
        for owned in (NOTHING, ARMOUR):
            assert happens(env, (*MINE, 1, 2, owned), "collect gold") == expected(*with_dragon(2, *MINE, 1, owned))

    @pytest.mark.parametrize("owned", [ARMOUR, BOTH])
    def test_collecting_in_armour_succeeds_once_in_a_hundred(self, env, owned):
        assert happens(env, (*MINE, 0, 1, owned), "collect gold") == expected(
            *with_dragon(1, *MINE, 1, owned, p=0.01), *with_dragon(1, *MINE, 0, owned, p=0.99)
        )

    @pytest.mark.parametrize("cell", [TOWN, (3, 0), (1, 3), (3, 2)])
    def test_collecting_outside_the_mine_costs_ten(self, env, cell):
        assert happens(env, (*cell, 0, 0, ARMOUR), "collect gold") == expected(*with_dragon(0, *cell, 0, ARMOUR, -10))


class TestTrade:
    @pytest.mark.parametrize(
        "action, owned, after",
        [
            ("buy key", NOTHING, KEY),
            ("buy key", ARMOUR, BOTH),
            ("buy armour", NOTHING, ARMOUR),
            ("buy armour", KEY, BOTH),
        ],
    )
    def test_buying_uses_up_the_gold_also_in_armour(self, env, action, owned, after):
        assert happens(env, (*TOWN, 1, 2, owned), action) == expected(*with_dragon(2, *TOWN, 0, after))

    @pytest.mark.parametrize(
        "action, owned",
        [
            ("buy key", KEY),
            ("buy key", BOTH),
            ("buy armour", ARMOUR),
            ("buy armour", BOTH),
        ],
    )
    def test_a_second_one_keeps_what_is_owned_and_uses_up_the_gold(self, env, action, owned):
        assert happens(env, (*TOWN, 1, 0, owned), action) == expected(*with_dragon(0, *TOWN, 0, owned))

    @pytest.mark.parametrize("action", ["buy key", "buy armour"])
    def test_buying_in_town_without_gold_changes_nothing_and_costs_one(self, env, action):
        assert happens(env, (*TOWN, 0, 0, NOTHING), action) == expected(*with_dragon(0, *TOWN, 0, NOTHING))

    @pytest.mark.parametrize("action", ["buy key", "buy armour"])
    @pytest.mark.parametrize("gold", [0, 1])
    def test_buying_outside_the_town_costs_ten_and_keeps_the_gold(self, env, action, gold):
        assert happens(env, (2, 3, gold, 1, NOTHING), action) == expected(*with_dragon(1, 2, 3, gold, NOTHING, -10))


class TestDragon:
    def test_meeting_on_arrival_kills_and_the_reset_replaces_gold_key_and_the_dragons_move(self, env):
        # dragon 2 stays on (1,1) w.p. .4; it goes to (0,1) and (1,0) otherwise
        assert happens(env, (1, 2, 1, 2, KEY), "left") == expected(
            (0.4, "reset", -20), (0.4, (1, 1, 1, 0, KEY), -1), (0.2, (1, 1, 1, 1, KEY), -1)
        )

    def test_a_dragon_that_comes_kills_the_knight_who_stays(self, env):
        assert happens(env, (1, 1, 0, 0, NOTHING), "stay") == expected(
            (0.4, (1, 1, 0, 0, NOTHING), -1), (0.6, "reset", -20)
        )

    def test_a_swap_of_cells_is_no_meeting(self, env):
        # knight (1,1) → (0,1), dragon (0,1) → (1,1) w.p. .6: they pass; only a dragon that stays kills
        assert happens(env, (1, 1, 0, 0, KEY), "up") == expected((0.4, "reset", -20), (0.6, (0, 1, 0, 2, KEY), -1))

    def test_a_cell_the_dragon_cannot_reach_is_safe(self, env):
        assert happens(env, (2, 0, 0, 0, KEY), "up") == expected(*with_dragon(0, 1, 0, 0, KEY))

    def test_death_replaces_the_minus_ten(self, env):
        for action in ("collect gold", "buy key", "buy armour"):
            assert happens(env, (1, 0, 1, 2, NOTHING), action) == expected(
                (0.4, (1, 0, 1, 0, NOTHING), -10), (0.2, "reset", -20), (0.4, (1, 0, 1, 2, NOTHING), -10)
            )

    @pytest.mark.parametrize("owned", [ARMOUR, BOTH])
    def test_armour_protects_on_the_dragons_cell(self, env, owned):
        assert happens(env, (1, 1, 0, 2, owned), "stay") == expected(*with_dragon(2, 1, 1, 0, owned))

    def test_death_is_possible_just_where_knight_without_armour_and_dragon_can_arrive_together(self, env):
        cells = ((0, 1), (1, 0), (1, 1))
        for s in range(env.mdp.n_states):
            row, col, _, dragon, owned = state_tuple(s)
            near = min(abs(row - cells[d][0]) + abs(col - cells[d][1]) for d in CHAIN[dragon])
            deaths = [o for a in range(8) for o in env.outcomes(s, a) if o.reward == 0]
            assert bool(deaths) == (near <= 1 and owned in (NOTHING, KEY))


class TestPrincess:
    def test_rescue_pays_twenty_and_resets_uniformly_over_dragons(self, env):
        for cell, dragon, move in (((0, 1), 1, "left"), ((1, 0), 2, "up")):
            assert happens(env, (*cell, 1, dragon, KEY), move) == expected((1.0, "reset", 20))

    def test_rescue_in_armour_succeeds_half_of_the_time(self, env):
        assert happens(env, (0, 1, 0, 2, BOTH), "left") == expected(
            (0.5, "reset", 20), *with_dragon(2, 0, 1, 0, BOTH, p=0.5)
        )

    def test_without_key_the_princess_is_an_ordinary_cell(self, env):
        assert happens(env, (1, 0, 1, 0, NOTHING), "up") == expected(*with_dragon(0, 0, 0, 1, NOTHING))
        assert happens(env, (0, 0, 1, 0, NOTHING), "stay") == expected(*with_dragon(0, 0, 0, 1, NOTHING))
        assert happens(env, (0, 1, 0, 0, ARMOUR), "left") == expected(
            *with_dragon(0, 0, 0, 0, ARMOUR, p=0.5), *with_dragon(0, 0, 1, 0, ARMOUR, p=0.5)
        )


class TestStates:
    def test_indices_and_tuples_agree_and_24_states_do_not_exist(self):
        everything = np.ndindex(4, 4, 2, 3, 4)
        cells = [(0, 1), (1, 0), (1, 1)]
        missing = [t for t in everything if (t[:2] == cells[t[3]] and t[4] < 2) or (t[:2] == (0, 0) and t[4] % 2 == 1)]
        assert len(missing) == 24
        for t in missing:
            with pytest.raises(OptionError, match="is no state"):
                state_index(*t)
        assert [state_index(*state_tuple(s)) for s in range(360)] == list(range(360))
        assert not {tuple(state_tuple(s)) for s in range(360)} & set(missing)

    @pytest.mark.parametrize("index", [-1, 360])
    def test_an_index_outside_is_refused(self, index):
        with pytest.raises(OptionError, match=r"0\.\.359"):
            state_tuple(index)

    def test_names_are_readable(self, env):
        names = env.mdp.state_names
        assert names[state_index(2, 3, 1, 2, BOTH)] == "(2,3) gold dragon=(1,1) key+armour"
        assert names[state_index(0, 3, 0, 0, NOTHING)] == "(0,3) dragon=(0,1)"
        assert env.mdp.action_names == ("right", "down", "left", "up", "stay", "collect gold", "buy key", "buy armour")

    def test_the_start_is_the_town_with_the_dragon_anywhere(self, env):
        starts = np.flatnonzero(env.mdp.start)
        assert [tuple(state_tuple(s)) for s in starts] == RESET
        assert env.mdp.start[starts] == pytest.approx(1 / 3)

    def test_mean_rewards_pay_the_mean_of_the_same_mdp(self, env):
        mean = make("knight-quest[rewards=mean]")
        assert mean.mdp == env.mdp
        assert mean != env
        assert (mean.out_law == 0).all()
        np.testing.assert_array_equal(mean.out_reward, np.repeat(env.mdp.reward, np.diff(mean.out_ptr)))


class TestNumbers:
    def test_sizes_of_the_paper(self, env):
        assert (env.mdp.n_states, env.mdp.n_actions, env.mdp.n_pairs, env.mdp.max_support) == (360, 8, 2880, 6)
        assert set(np.round(40 * env.out_reward - 20, 9)) == {-20, -10, -1, 20}

    def test_gain_and_span(self, env, solved):
        g, h, _ = solved
        assert g == pytest.approx(0.5010709855, abs=1e-9)
        assert gain_by_lp(env.mdp) == pytest.approx(g, abs=1e-9)
        assert np.ptp(h) == pytest.approx(3.2849441740, abs=1e-8)

    def test_diameter_and_where_it_is_attained(self, env):
        times = hitting_times(env.mdp, range(360))
        assert times.max() == pytest.approx(248.5, abs=1e-9)
        pairs = [(tuple(state_tuple(s)), tuple(state_tuple(t))) for s, t in np.argwhere(times > times.max() - 1e-6)]
        assert {t for _, t in pairs} == {(*TOWN, 1, 1, BOTH)}
        assert [s for s, _ in pairs] == [(*TOWN, 0, d, ARMOUR) for d in range(3)]

    def test_a_way_past_the_dragon_is_free_of_risk(self, env):
        """Without armour, with the key, some policy reaches the princess surely and never meets the dragon."""
        outcomes = {(s, a): env.outcomes(s, a) for s in range(360) for a in range(8)}
        safe = {pair: table for pair, table in outcomes.items() if all(o.reward > 0 for o in table)}
        good = {s for s in range(360) if state_tuple(s).owned == KEY}
        while True:  # the largest set in which safe steps can stay for ever and still reach the rescue
            stay = {p: t for p, t in safe.items() if p[0] in good and all(o.succ in good or o.reward == 1 for o in t)}
            reach = set()
            while more := {s for (s, _), t in stay.items() if any(o.reward == 1 or o.succ in reach for o in t)} - reach:
                reach |= more
            if reach == good:
                break
            good = reach
        assert {state_index(*TOWN, 0, d, KEY) for d in range(3)} <= good

    def test_the_optimum_never_buys_armour_nor_risks_the_dragon(self, env, solved):
        """Follow every optimal action from the start."""
        _, _, q = solved
        optimal = q >= q.max(axis=1, keepdims=True) - 1e-9
        seen, todo = set(), list(np.flatnonzero(env.mdp.start))
        while todo:
            s = int(todo.pop())
            if s in seen:
                continue
            seen.add(s)
            assert not optimal[s, ACTIONS.index("buy armour")]
            table = [o for a in np.flatnonzero(optimal[s]) for o in env.outcomes(s, int(a))]
            assert all(o.reward > 0 for o in table)
            todo += [o.succ for o in table]
        assert {state_tuple(s).owned for s in seen} == {NOTHING, KEY}
