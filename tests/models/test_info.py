"""What an agent is told: pairs and sizes from a mask, and every wrong value refused."""

from __future__ import annotations

import numpy as np
import pytest

from spanrl import MDP, ProblemInfo, make
from spanrl.errors import ModelError, OptionError

RAGGED = [[False, True, False], [True, True, True], [True, False, True]]


class TestPairs:
    def test_all_actions_by_default(self):
        info = ProblemInfo(2, 3)
        assert info.pair_state.tolist() == [0, 0, 0, 1, 1, 1]
        assert info.action.tolist() == [0, 1, 2, 0, 1, 2]
        assert info.pair_ptr.tolist() == [0, 3, 6]
        assert (info.n_pairs, info.max_actions) == (6, 3)
        assert (info.r_min, info.r_max, info.size, info.horizon) == (0.0, 1.0, 1.0, None)

    def test_ragged_action_sets(self):
        info = ProblemInfo(3, 3, available=RAGGED, r_min=-2, r_max=3, horizon=10)
        assert info.pair_state.tolist() == [0, 1, 1, 1, 2, 2]
        assert info.action.tolist() == [1, 0, 1, 2, 0, 2]
        assert info.pair_ptr.tolist() == [0, 1, 4, 6]
        assert (info.n_pairs, info.max_actions, info.size, info.horizon) == (6, 3, 5.0, 10)

    def test_a_is_the_largest_number_of_actions_of_a_state_not_of_names(self):
        assert ProblemInfo(2, 5, available=[[False] * 4 + [True], [True] + [False] * 4]).max_actions == 1

    def test_pairs_are_read_only(self):
        info = ProblemInfo(3, 3, available=RAGGED)
        for array in (info.pair_state, info.action, info.pair_ptr):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1

    def test_a_mask_that_changes_later_changes_nothing(self):
        mask = np.array(RAGGED)
        info = ProblemInfo(3, 3, available=mask)
        mask[:] = True
        assert info.n_pairs == 6

    @pytest.mark.parametrize("name", ["three-state", "knight-quest", "riverswim"])
    def test_of_an_mdp(self, name):
        mdp = make(name).mdp
        info = ProblemInfo.from_mdp(mdp, 77)
        np.testing.assert_array_equal(info.pair_state, mdp.pair_state)
        np.testing.assert_array_equal(info.action, mdp.action)
        np.testing.assert_array_equal(info.pair_ptr, mdp.pair_ptr)
        assert (info.n_states, info.n_actions, info.r_min, info.r_max) == (
            mdp.n_states,
            mdp.n_actions,
            mdp.r_min,
            mdp.r_max,
        )
        assert info.horizon == 77

    def test_it_tells_nothing_of_the_model(self):
        """Two problems with other rewards and transitions look alike."""
        one, other = (
            ProblemInfo.from_mdp(MDP.from_dense(P, r)) for P, r in (([[[1.0]]], [[0.0]]), ([[[1.0]]], [[1.0]]))
        )
        assert {name: str(value) for name, value in vars(one).items()} == {
            name: str(value) for name, value in vars(other).items()
        }


class TestWrongValues:
    @pytest.mark.parametrize("value", [0, -1, 1.5, "3", True, None])
    @pytest.mark.parametrize("name", ["n_states", "n_actions"])
    def test_sizes(self, name, value):
        with pytest.raises(OptionError, match=f"ProblemInfo: {name} must be a whole number ≥ 1; got {value!r}"):
            ProblemInfo(**{"n_states": 2, "n_actions": 2} | {name: value})

    @pytest.mark.parametrize("value", [0, -5, 2.5, "9"])
    def test_horizon(self, value):
        with pytest.raises(
            OptionError, match=f"ProblemInfo: horizon must be a whole number ≥ 1, or None; got {value!r}"
        ):
            ProblemInfo(2, 2, horizon=value)

    @pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0), (-1e308, 1e308)])
    def test_range(self, low, high):
        with pytest.raises(ModelError, match="ProblemInfo: r_min must be below r_max, both finite"):
            ProblemInfo(2, 2, r_min=low, r_max=high)

    def test_range_of_words(self):
        with pytest.raises(ModelError, match="ProblemInfo: r_min and r_max must be numbers; got 'a' and 1"):
            ProblemInfo(2, 2, r_min="a", r_max=1)

    @pytest.mark.parametrize("mask", [[[True, True]], [[1, 1], [1, 1]], [[True], [True, False]], "all"])
    def test_mask(self, mask):
        with pytest.raises(ModelError, match=r"ProblemInfo: available must be a boolean array of shape \(2, 2\)"):
            ProblemInfo(2, 2, available=mask)

    def test_a_state_without_an_action(self):
        with pytest.raises(ModelError, match="ProblemInfo: state 1 has no action; every state must have at least one"):
            ProblemInfo(2, 2, available=[[True, True], [False, False]])

    def test_the_range_is_given_by_name(self):
        with pytest.raises(TypeError, match="positional"):
            ProblemInfo(2, 2, 0.0, 1.0)

    def test_it_is_frozen(self):
        with pytest.raises(AttributeError, match="cannot assign"):
            ProblemInfo(2, 2).n_states = 3
