"""``run.policy`` and ``run.model``: what the learner knew at the end, compared with a run by hand in which everything is written down."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import pytest
from learning_samples import Keeping, play_by_hand, ragged_env

from spanrl import MDP, SCAL, UCRL, Policy, ProblemInfo, QLearning, Run, evaluate, learn, make, make_agent, solve
from spanrl.agents.registry import agent_id
from spanrl.agents.stepwise import first_best
from spanrl.errors import InputError
from spanrl.learning.session import Session
from spanrl.learning.worlds import as_world

HORIZON, SEED = 3000, 3
MIXING = "scal[span_bound=0.5,p_scale=0.05,r_scale=0.05]"


@pytest.fixture(scope="module")
def env():
    """Return a problem with ragged actions and rewards in [−1, 2]."""
    return ragged_env()


@pytest.fixture(scope="module")
def by_hand(env):
    """Return the same run step by step."""
    return play_by_hand(env, make_agent(MIXING), HORIZON, SEED)


@pytest.mark.parametrize("audit", [False, True], ids=["compiled", "watched"])
def test_the_model_counts_every_step(env, by_hand, audit: bool) -> None:
    """Also those of the episode under way, which the learner itself has not taken in."""
    run = learn(env, MIXING, horizon=HORIZON, seed=SEED, audit=audit)
    model, mdp = run.model, env.mdp
    np.testing.assert_array_equal(model.n, np.bincount(by_hand.pair, minlength=mdp.n_pairs))
    for i in np.flatnonzero(model.n):
        assert model.r_hat[i] == pytest.approx(by_hand.reward[by_hand.pair == i].mean(), abs=1e-12)
    states = mdp.pair_state[by_hand.pair]
    seen = Counter(zip(by_hand.pair[:-1].tolist(), states[1:].tolist(), strict=True))
    rows = np.repeat(np.arange(mdp.n_pairs), np.diff(model.succ_ptr))
    counted = Counter(
        dict(zip(zip(rows.tolist(), model.succ.tolist(), strict=True), model.times.tolist(), strict=True))
    )
    assert (counted - seen).total() == 1, "the last step, whose next state is not written down by hand"
    assert not seen - counted
    np.testing.assert_allclose(model.p_hat.sum(axis=1)[model.n > 0], 1.0)
    assert model.state.tolist() == mdp.pair_state.tolist()
    assert model.action.tolist() == mdp.action.tolist()


def test_the_policy_is_that_of_the_last_episode(env, by_hand) -> None:
    run = learn(env, MIXING, horizon=HORIZON, seed=SEED)
    np.testing.assert_array_equal(run.policy.probs, by_hand.learner.policy.probs)
    assert not run.policy.is_deterministic, "or the weights are not seen"


def test_names_come_from_the_model() -> None:
    run = learn("riverswim", "ucrl", horizon=100, seed=0)
    mdp = make("riverswim").mdp
    assert (run.policy.state_names, run.policy.action_names) == (mdp.state_names, mdp.action_names)
    assert "s0     left    100  0.0005  s0: 1" in str(run.model)
    assert repr(run.model).startswith("<LearnedModel: 100 steps, 1 of 12 pairs played>")


def test_a_run_lets_its_learner_go() -> None:
    """It holds arrays, not the session with its environment."""
    learned = learn("two-state", "ucrl", horizon=100, seed=0)._learned
    assert {type(part).__name__ for part in vars(learned.model).values()} <= {
        "int", "float", "ndarray", "NoneType", "tuple", "StateNames", "bool",
    }  # fmt: skip
    assert learned.policy.probs.base is None or learned.policy.probs.base.nbytes <= learned.policy.probs.nbytes


def test_a_resumed_session_has_learned_the_same(env) -> None:
    """The tally of the episode under way is part of a checkpoint."""

    def new() -> Session:
        agent = make_agent(MIXING)
        return Session(as_world(env), agent, agent_id(agent), horizon=HORIZON, seed=SEED, points=20)

    whole, first = new(), new()
    whole.run(0.0, lambda t: None)
    states = []
    first.run(0.0, lambda t: states.append(first.state()))
    again = new()
    again.restore(states[len(states) // 2])
    again.run(0.0, lambda t: None)
    for one in (first, again):
        np.testing.assert_array_equal(one.learned().policy.probs, whole.learned().policy.probs)
        np.testing.assert_array_equal(one.learned().model.times, whole.learned().model.times)


@pytest.mark.parametrize("played", ["table", "steps"])
def test_gymnasium(played: str) -> None:
    """From its table, where resets after a cut are no transitions, and step by step, where a wrapper hides the table."""
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=7)
    if played == "steps":
        env = gymnasium.wrappers.TransformReward(env, float)
    run = learn(env, SCAL(2.0), horizon=500, seed=0)
    assert run.model.n.sum() == 500
    assert run.model.times.sum() == 500
    assert run.policy.probs.shape == (16, 4)
    mdp = MDP.from_gymnasium(gymnasium.make("FrozenLake-v1"))
    for i in np.flatnonzero(run.model.n):
        row = run.model.succ[run.model.succ_ptr[i] : run.model.succ_ptr[i + 1]]
        assert set(row.tolist()) <= {s for s, _ in mdp.successors(run.model.state[i], run.model.action[i])}


@dataclass(frozen=True)
class Interrupted:
    """An agent that is stopped after some steps."""

    steps: int

    def start(self, info: ProblemInfo, rng: Any) -> Any:
        learner, left = UCRL().start(info, rng), [self.steps]
        act = learner.act

        def counted(state: int) -> int:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return act(state)

        learner.act = counted
        return _ByHand(learner)


class _ByHand:
    def __init__(self, learner: Any) -> None:
        self.learner, self.act, self.observe = learner, learner.act, learner.observe

    @property
    def policy(self) -> Policy:
        return self.learner.policy


def test_interrupted_runs_have_a_policy() -> None:
    run = learn("two-state", Interrupted(70), horizon=1000, seed=0)
    assert run.interrupted
    assert run.policy.n_states == 2
    run = learn("two-state", Interrupted(0), horizon=1000, seed=0)
    with pytest.raises(InputError, match=r"run\.policy: there is no episode yet"):
        _ = run.policy
    with pytest.raises(InputError, match=r"run\.model: .* has no table of counts\. Use an agent that plans\."):
        _ = run.model


def test_nothing_is_counted_twice_where_a_plan_is_interrupted() -> None:
    """Step by step: the counts have taken in the last episode, and the next one has not begun."""
    keeping = Keeping(UCRL())

    def interrupt(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    def step(reward: float) -> float:
        planner = keeping.learners[0]._planner
        if keeping.learners[0].n_episodes == 3:
            planner.plan = interrupt
        return float(reward)

    env = gymnasium.wrappers.TransformReward(gymnasium.make("FrozenLake-v1"), step)
    run = learn(env, keeping, horizon=10**4, seed=0)
    assert run.interrupted
    learner = keeping.learners[0]
    assert learner.episode.start <= learner.t, "or there is nothing to count twice"
    assert run.model.n.sum() == learner.t


def test_agents_that_decide_at_every_step(env) -> None:
    """Q-learning plays the largest Q, but for its random steps."""
    keeping = Keeping(QLearning())
    run = learn(env, keeping, horizon=500, seed=SEED)
    q, ptr = keeping.learners[0].memory.values, env.mdp.pair_ptr
    best = [int(env.mdp.action[ptr[s] + np.argmax(q[ptr[s] : ptr[s + 1]])]) for s in range(env.mdp.n_states)]
    assert run.policy.actions.tolist() == best
    with pytest.raises(InputError, match=r"run\.model: .* has no table of counts"):
        _ = run.model


def test_imed_rl_has_the_best_pair_of_its_skeleton() -> None:
    """After many steps in an ergodic model it is the optimal policy."""
    env = make("ergodic-riverswim")
    run = learn(env, "imed-rl", horizon=5000, seed=0)
    assert run.policy == solve(env.mdp).policy


def test_first_best_takes_the_first_of_equals() -> None:
    assert first_best(np.array([0, 3, 4]), np.array([1.0, 2.0, 2.0, -5.0])).tolist() == [1, 3]


class Silent:
    """A learner with a policy of another shape."""

    policy = Policy([[1.0]])

    def act(self, state: int) -> int:
        return 0

    def observe(self, reward: float, next_state: int) -> None:
        pass


@dataclass(frozen=True)
class SilentAgent:
    """Its agent."""

    def start(self, info: ProblemInfo, rng: Any) -> Silent:
        return Silent()


def test_learners_of_others() -> None:
    run = learn("two-state", SilentAgent(), horizon=10, seed=0)
    with pytest.raises(
        InputError, match=r"run\.policy: the learner of this agent has none\. Give its class a property"
    ):
        _ = run.policy


def test_a_loaded_run_has_neither(tmp_path) -> None:
    learn("two-state", "ucrl", horizon=10, seed=0).save(tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "curve.parquet",
        "episodes.parquet",
        "meta.json",
    ]
    loaded = Run.load(tmp_path / "run")
    for name in ("policy", "model"):
        with pytest.raises(InputError, match=rf"run\.{name}: files of a run hold its curve and its episodes alone"):
            getattr(loaded, name)


def test_the_mdp_of_the_pairs_that_were_played(env) -> None:
    """It tends to the true one; states keep their numbers."""
    run = learn(env, "ucrl[p_scale=0.01,r_scale=0.01]", horizon=20_000, seed=1)
    found = run.model.to_mdp()
    assert isinstance(found, MDP)
    assert found.n_states == env.mdp.n_states
    np.testing.assert_array_equal(found.start, env.mdp.start)
    assert (found.r_min, found.r_max) == (-1.0, 2.0)
    assert found.n_pairs == np.count_nonzero(run.model.n)
    assert solve(found).gain == pytest.approx(solve(env.mdp).gain, abs=0.1)


def test_states_in_which_nothing_was_played_lead_to_the_busiest() -> None:
    run = learn("riverswim", "ucrl", horizon=200, seed=0)
    found, visits = run.model.to_mdp(), np.bincount(run.model.state, run.model.n, 6)
    assert visits[5] == 0, "or nothing is tested"
    for action in (0, 1):
        assert dict(found.successors(5, action)) == {int(np.argmax(visits)): 1.0}
        assert found.reward[found.pair(5, action)] == 0.0
    assert evaluate(found, solve(found).policy).gain.min() >= 0.0


def test_the_frame_has_a_row_per_transition(env) -> None:
    run = learn(env, MIXING, horizon=500, seed=SEED)
    frame = run.model.to_frame()
    assert frame.columns == ["state", "action", "n", "r_hat", "next_state", "times", "p_hat"]
    assert frame.height == run.model.succ.size
    assert frame["times"].sum() == 500
    np.testing.assert_allclose(frame["p_hat"] * frame["n"], frame["times"])


def test_costs_are_printed_and_rewards_kept() -> None:
    """The same problem given as costs: the same bits inside, costs outside, and the MDP has costs again."""
    P, r, _ = make("two-state").mdp.to_dense()
    runs = [learn(MDP.from_dense(P, x, r_min=low, r_max=high, costs=costs), "ucrl", horizon=2000, seed=0)
            for x, low, high, costs in ((r - 1.0, -1.0, 0.0, False), (1.0 - r, 0.0, 1.0, True))]  # fmt: skip
    rewards, costs = (run.model for run in runs)
    np.testing.assert_array_equal(costs.r_hat, rewards.r_hat)
    np.testing.assert_array_equal(costs.to_frame()["cost_hat"], -rewards.to_frame()["r_hat"])
    assert "mean cost" in str(costs)
    found, same = costs.to_mdp(), rewards.to_mdp()
    assert found.costs
    np.testing.assert_array_equal(found.reward, same.reward)
    assert solve(found).gain == pytest.approx(-solve(same).gain, abs=1e-9)
