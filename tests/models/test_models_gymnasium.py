"""MDP.from_gymnasium: terminated outcomes continue at the start distribution; rewards are means."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spanrl import MDP
from spanrl.errors import ModelError


def by_hand(table: dict[int, Any], start: Any) -> tuple[Any, Any]:
    """Build P and r densely from the table, term by term."""
    S, A = len(table), len(table[0])
    P, r = np.zeros((S, A, S)), np.zeros((S, A))
    for s in range(S):
        for a in range(A):
            for p, target, reward, terminated in table[s][a]:
                r[s, a] += p * reward
                if terminated:
                    P[s, a] += p * start
                else:
                    P[s, a, target] += p
    return P, r


def table_env(P: Any, start: Any = None) -> Any:
    inner = SimpleNamespace(P=P)
    if start is not None:
        inner.initial_state_distrib = np.array(start)
    return SimpleNamespace(unwrapped=inner)


@pytest.mark.parametrize(
    ("name", "options", "size", "rewards"),
    [
        ("FrozenLake", {}, (16, 4), (0.0, 1.0)),
        ("FrozenLake", {"map_name": "8x8", "is_slippery": False}, (64, 4), (0.0, 1.0)),
        ("Taxi", {}, (500, 6), (-10.0, 20.0)),
        ("CliffWalking", {}, (48, 4), (-100.0, -1.0)),
        ("CliffWalking", {"is_slippery": True}, (48, 4), (-100.0, -1.0)),
    ],
)
def test_toy_text(name: str, options: dict[str, Any], size: tuple[int, int], rewards: tuple[float, float]) -> None:
    gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed (pip install 'spanrl[gym]')")
    versions = [spec.version for spec in gymnasium.registry.values() if spec.name == name and spec.version is not None]
    if not versions:
        pytest.skip(f"this gymnasium has no {name}")
    env = gymnasium.make(f"{name}-v{max(versions)}", **options)
    mdp = MDP.from_gymnasium(env)
    start = np.asarray(env.unwrapped.initial_state_distrib)
    P, r = by_hand(env.unwrapped.P, start)
    assert (mdp.n_states, mdp.n_actions, mdp.n_pairs) == (*size, size[0] * size[1])
    mine, means, available = mdp.to_dense()
    assert available.all()
    np.testing.assert_allclose(mine, P, rtol=0, atol=1e-15)
    np.testing.assert_allclose(means, r, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(mdp.start, start)
    assert (mdp.r_min, mdp.r_max) == rewards
    # the wrapped and the inner environment are the same to us
    assert MDP.from_gymnasium(env.unwrapped) == mdp
    env.close()


def test_frozen_lake_never_enters_a_terminal_state() -> None:
    gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed (pip install 'spanrl[gym]')")
    env = gymnasium.make("FrozenLake-v1")
    mdp = MDP.from_gymnasium(env)
    terminal = np.flatnonzero([cell in b"GH" for cell in env.unwrapped.desc.ravel()])
    assert terminal.size == 5
    assert not np.isin(mdp.succ, terminal).any()
    for s in terminal:
        assert list(mdp.successors(int(s), 0)) == [(0, 1.0)], "a terminal state keeps its number and starts again"
    env.close()


def test_wrapped_without_table_is_refused() -> None:
    gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed (pip install 'spanrl[gym]')")
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(ModelError, match=r"CartPoleEnv has no transition table P.*toy-text"):
        MDP.from_gymnasium(env)
    env.close()


def test_terminated_goes_to_a_spread_start() -> None:
    table = {
        0: {0: [(0.5, 1, 2.0, False), (0.5, 2, -2.0, True)]},
        1: {0: [(1.0, 0, 4.0, True)]},
        2: {0: [(1.0, 2, 0.0, True)]},
    }
    mdp = MDP.from_gymnasium(table_env(table, [0.25, 0.75, 0.0]))
    P, r, _ = mdp.to_dense()
    np.testing.assert_allclose(P[:, 0], [[0.125, 0.875, 0], [0.25, 0.75, 0], [0.25, 0.75, 0]])
    assert r[:, 0].tolist() == [0.0, 4.0, 0.0]
    assert (mdp.r_min, mdp.r_max) == (-2.0, 4.0), "the range is that of single rewards, not of means"
    assert mdp.start.tolist() == [0.25, 0.75, 0.0]


def test_options_override_the_table() -> None:
    table = {0: {0: [(1.0, 1, 1.0, True)]}, 1: {0: [(1.0, 0, 0.0, False)]}}
    mdp = MDP.from_gymnasium(table_env(table, [1.0, 0.0]), r_min=-5, r_max=5, start=1)
    assert (mdp.r_min, mdp.r_max, mdp.start.tolist()) == (-5.0, 5.0, [0.0, 1.0])
    assert list(mdp.successors(0, 0)) == [(1, 1.0)]


def test_equal_rewards_still_have_a_range() -> None:
    mdp = MDP.from_gymnasium(table_env({0: {0: [(1.0, 0, 3.0, False)]}}, [1.0]))
    assert mdp.reward.tolist() == [3.0]
    assert mdp.r_min < mdp.r_max
    assert mdp.r_min <= 3.0 <= mdp.r_max


def test_ragged_tables_and_unsorted_actions() -> None:
    table = {1: {0: [(1.0, 0, 0.0, False)]}, 0: {2: [(1.0, 1, 1.0, False)], 1: [(1.0, 0, 0.0, False)]}}
    mdp = MDP.from_gymnasium(table_env(table, [1.0, 0.0]))
    assert mdp.action.tolist() == [1, 2, 0]
    assert mdp.n_actions == 3


def test_rows_slightly_off_do_not_push_the_mean_out_of_the_range() -> None:
    """A row off by 1e-9 is accepted and rescaled, so its mean reward must be too."""
    table = {0: {0: [(1 + 1e-9, 0, 1.0, False)], 1: [(1.0, 0, 0.0, False)]}}
    mdp = MDP.from_gymnasium(table_env(table, [1.0]))
    np.testing.assert_allclose(mdp.reward, [1.0, 0.0], atol=1e-8)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (object(), "object has no transition table P"),
        (table_env({}), "no transition table P"),
        (table_env([[]]), "no transition table P"),
        (table_env({0: {0: [(1.0, 0, 0.0, False)]}}), r"tells no start distribution. Pass start="),
        (table_env({0: {0: [(1.0, 0, 0.0, False)]}}, [0.5]), "start must be a state or a distribution"),
        (table_env({0: {0: [(1.0, 3, 0.0, False)]}}, [1.0]), r"successor 3 of P\[s=0, a=0\] must be a state in 0..0"),
        (table_env({0: {0: [(0.5, 0, 0.0, False)]}}, [1.0]), r"P\[s=0, a=0\] sums to 0.5"),
        (table_env({0: {0: [(1.0, 0, 0.0, False)]}, 1: {}}, [1.0, 0.0]), "has no action|must be a state in 0..0|start"),
        (table_env({0: {0: [(1.0, 0, float("nan"), False)]}}, [1.0]), "finite"),
        (table_env({0: {0: [(1.0, 0, 0.0)]}}, [1.0]), "terminated"),
    ],
)
def test_bad_tables(env: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        MDP.from_gymnasium(env)
