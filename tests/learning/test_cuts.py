"""Environments that cut their episodes, played by compiled code: the same bits by hand, no transition for a cut, and the right averages.

Level of the statistical test: 1e-3, the seed is fixed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from learning_samples import Keeping
from scipy.stats import norm

from spanrl import UCRL, Env, Policy, check_env, evaluate, learn, make_agent, simulate
from spanrl.errors import InputError, OptionError, RunFileError
from spanrl.learning.session import Session
from spanrl.learning.snapshot import pack, unpack
from spanrl.learning.worlds import as_world

LIMIT = 7
AGENTS = ["ucrl[bounds=kt]", "scal[span_bound=0.5]", "qlearning"]


@pytest.fixture(scope="module")
def lake() -> Env:
    return Env.from_gymnasium(gymnasium.make("FrozenLake-v1", max_episode_steps=LIMIT))


def two_starts() -> Env:
    """Return a problem whose episodes begin in one of two states, with Bernoulli rewards."""
    outcomes = {
        (0, 0): [(0.5, 1, 0.3, 1), (0.5, 2, 0.0, 0)],
        (0, 1): [(1.0, 2, 0.1, 0)],
        (1, 0): [(0.75, 2, 0.5, 1), (0.25, 0, 1.0, 0, True)],
        (2, 0): [(1.0, 2, 0.6, 1)],
    }
    return Env.from_outcomes(outcomes, start=[0.25, 0.75, 0.0], step_limit=4)


@dataclass(frozen=True)
class ByHand:
    """An agent that offers nothing but act and observe."""

    agent: Any

    def start(self, info: Any, rng: Any) -> Any:
        learner = self.agent.start(info, rng)
        return type("Plain", (), {"act": staticmethod(learner.act), "observe": staticmethod(learner.observe)})()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("name", ["lake", "two_starts"])
def test_compiled_and_by_hand_are_the_same_bits(name: str, agent: str, lake: Env) -> None:
    env = lake if name == "lake" else two_starts()
    compiled = learn(env, agent, horizon=3000, seed=1)
    by_hand = learn(env, ByHand(make_agent(agent)), horizon=3000, seed=1)
    np.testing.assert_allclose(compiled.reward, by_hand.reward, rtol=1e-12)
    np.testing.assert_allclose(compiled.pseudo_regret, by_hand.pseudo_regret, rtol=1e-9, atol=1e-9)
    uncut = learn(Env.from_outcomes({(0, 0): [(1.0, 0, 0.5)]}), agent, horizon=10, seed=1)
    assert "step_limit" not in uncut.meta
    assert (compiled.meta["step_limit"], compiled.meta["regret_exact"]) == (env.step_limit, False)


def test_hooks_see_the_same_run(lake: Env) -> None:
    """With an audit Python is met at every episode; the steps are the same."""
    plain, audited = (learn(lake, UCRL(bounds="kt"), horizon=3000, seed=1, audit=audit) for audit in (False, True))
    assert plain.reward.tobytes() == audited.reward.tobytes()
    assert audited.episodes["contains"].all()


def test_a_cut_is_no_transition() -> None:
    """A chain that never goes back: only the limit does, and no count may show it."""
    chain = {(s, a): [(1.0, min(s + 1, 3), 0.0)] for s in range(4) for a in range(2)}
    env = Env.from_outcomes(chain, step_limit=3)
    keeping = Keeping(UCRL())
    learn(env, keeping, horizon=300, seed=0)
    counts = keeping.learners[0].counts
    for s in range(3):
        for pair in (2 * s, 2 * s + 1):
            assert set(counts.succ[counts.succ_ptr[pair] : counts.succ_ptr[pair + 1]].tolist()) <= {s + 1}
    assert counts.n[:2].sum() == pytest.approx(counts.n.sum() / 3, abs=1), "every third step is the first of an episode"
    assert counts.n[6:].sum() == 0, "three steps lead to the last state, and then the episode is cut"


@pytest.mark.parametrize("name", ["lake", "two_starts"])
def test_averages_are_those_of_the_model_with_the_time_in_the_state(name: str, lake: Env) -> None:
    """The oracle knows no clock: it is the chain on (state, steps so far), written down and solved by linear algebra."""
    env = lake if name == "lake" else two_starts()
    mdp, limit = env.mdp, env.step_limit
    assert limit is not None
    S, steps, level = mdp.n_states, 10**6, 1e-3
    uniform = np.zeros((S, mdp.n_actions))
    uniform[mdp.pair_state, mdp.action] = 1.0
    uniform /= uniform.sum(axis=1, keepdims=True)
    P, r = np.zeros((S * limit, S * limit)), np.zeros(S * limit)
    for s, a in zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True):
        for prob, succ, reward, _, ends in (tuple(row) for row in env.outcomes(s, a)):
            for k in range(limit):
                weight = uniform[s, a] * prob
                r[s * limit + k] += weight * reward
                if ends:
                    P[s * limit + k, succ * limit] += weight
                elif k + 1 == limit:
                    P[s * limit + k, ::limit] += weight * mdp.start
                else:
                    P[s * limit + k, succ * limit + k + 1] += weight
    mu = np.zeros(S * limit)
    mu[::limit] = mdp.start
    gain = np.mean([mu := mu @ P for _ in range(4000)], axis=0) @ r
    played = simulate(env, Policy(uniform), horizon=steps, seed=0)
    # rewards are in [0, 1] and episodes short: twice the deviation of independent steps is ample
    assert abs(played.mean - gain) < norm.isf(level / 2) * 2 * np.sqrt(gain * (1 - gain) / steps) + 1e-4
    assert abs(evaluate(mdp, Policy(uniform)).gain @ mdp.start - gain) > 1e-3, "without the cuts it is another number"
    assert played.visits.sum() == steps


def checkpoint_in_the_middle(env: Env, agent: str, looks: int) -> tuple[bytes, dict[str, Any]]:
    one = Session(as_world(env), make_agent(agent), agent, horizon=2000, seed=3, points=20)
    left = looks

    def tick(t: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        one.run(0.5, tick)
    state = one.state()
    return pack(state), state


@pytest.mark.parametrize("agent", AGENTS)
def test_a_resumed_run_has_the_same_bits(agent: str, lake: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanrl.learning.session.BUDGET", 45)
    whole = Session(as_world(lake), make_agent(agent), agent, horizon=2000, seed=3, points=20)
    whole.run(0.5, lambda t: None)
    elapsed = set()
    for looks in (3, 8, 20):
        blob, state = checkpoint_in_the_middle(lake, agent, looks)
        elapsed.add(state["elapsed"])
        again = Session(as_world(lake), make_agent(agent), agent, horizon=2000, seed=3, points=20)
        again.restore(unpack(blob))
        again.run(0.5, lambda t: None)
        assert again.result(False).reward.tobytes() == whole.result(False).reward.tobytes()
    assert elapsed - {0}, "a clock that has run on"


@pytest.mark.parametrize("elapsed", [-1, LIMIT, "2"])
def test_a_clock_that_cannot_be(elapsed: Any, lake: Env) -> None:
    _, state = checkpoint_in_the_middle(lake, "ucrl", 1)
    other = Session(as_world(lake), make_agent("ucrl"), "ucrl", horizon=2000, seed=3, points=20)
    with pytest.raises(RunFileError, match=r"checkpoint: 'elapsed' must be a whole number in 0\.\.6"):
        other.restore(state | {"elapsed": elapsed})


def test_a_limit_is_a_whole_number() -> None:
    with pytest.raises(OptionError, match="Env: step_limit must be a whole number ≥ 1; got 0"):
        Env.from_outcomes({(0, 0): [(1.0, 0, 0.5)]}, step_limit=0)


def test_environments_differ_by_their_cuts() -> None:
    one, other = ({(0, 0): [(1.0, 0, 0.5, 0, ends)]} for ends in (False, True))
    assert Env.from_outcomes(one) == Env.from_outcomes(other), "without a limit nothing ends"
    assert Env.from_outcomes(one, step_limit=3) != Env.from_outcomes(other, step_limit=3)
    assert Env.from_outcomes(one, step_limit=3) != Env.from_outcomes(one)
    assert [outcome.ends for outcome in Env.from_outcomes(other, step_limit=3).outcomes(0, 0)] == [True]


def test_they_keep_the_contract(lake: Env) -> None:
    for env in (lake, two_starts()):
        check_env(env)
    with pytest.raises(InputError, match="out_ends must be a read-only vector"):
        check_env(replace(lake, out_ends=None))
