"""IMED-RL against its pseudo-code in plain numpy, step by step; broken versions of that are noticed; and how often it explores."""

from __future__ import annotations

from functools import cache
from math import inf, log

import numpy as np
import pytest
from imed_pseudo_code import PseudoCode

from spanrl import IMEDRL, MDP, Env, ProblemInfo, analyse, check_agent, make, make_agent, streams
from spanrl.agents.imed_rl import known
from spanrl.agents.registry import agent_id
from spanrl.errors import OptionError
from spanrl.kernels.jit import interpreted
from ways import assert_all_ways_agree, assert_interpreted_agrees, compiled, ragged_env

SEED = 3
EXACT = IMEDRL(tol=1e-9)
INFO = ProblemInfo(3, 3)


def ergodic_env(seed: int, law: str = "bernoulli") -> Env:
    """Return a random problem of three states and three actions, in which all transitions are possible."""
    rng = np.random.default_rng(seed)
    mdp = MDP.from_dense(rng.dirichlet(np.full(3, 0.7), size=(3, 3)), np.round(rng.random((3, 3)), 2))
    return Env.from_mdp(mdp, law)


def remembered(learner):
    """Return the memory of a learner by names."""
    with interpreted():
        return known(learner.memory)[0]


def judge(version, phi, state, pair):
    """Return whether a version would have decided for another pair, and by how much its φ differs."""
    h = phi if version.n(pair) == 0 else version.bias()  # no solve was needed for a pair never played
    return pair not in version.allowed(state, h), float(np.abs(h - phi).max())


def play(env, steps):
    """Play, and return how many decisions the pseudo-code would not have made, and the largest error of φ."""
    env_rng, agent_rng = streams(SEED)
    info = ProblemInfo.from_mdp(env.mdp)
    learner, slow, state, found = EXACT.start(info, agent_rng), PseudoCode(info), env.reset(env_rng), []
    for _ in range(steps):
        action = learner.act(state)
        pair = int(np.flatnonzero((info.pair_state == state) & (info.action == action))[0])
        found.append(judge(slow, remembered(learner).phi, state, pair))
        reward, succ = env.step(state, action, env_rng)
        learner.observe(reward, succ)
        slow.observe(pair, reward, succ)
        state = succ
    return np.sum(found, axis=0)[0], np.max(found, axis=0)[1]


@pytest.fixture(scope="module")
def histories():
    return random_histories()


@cache
def random_histories():
    """Return 60 random histories, in which the first action of each state was played the most; the decision in every state; and φ."""
    rng, found = np.random.default_rng(5), []
    for _ in range(60):
        learner, history, p = EXACT.start(INFO, 0), [], rng.dirichlet(np.full(3, 0.4), size=9)
        for i in range(9):
            pays, often = rng.integers(3), 0.6 + 0.4 * rng.random() if i % 3 == 0 else rng.random()
            size = rng.choice([40, 400]) if i % 3 == 0 else rng.integers(2, 30)
            for succ in rng.choice(3, size=size, p=p[i]).tolist():
                history.append((i, float(succ == pays and rng.random() < often), succ))  # r depends on s'
        for seen in history:
            learner.rules.update(learner.memory, *seen)
        pairs = [int(learner.rules.decide(learner.memory, s)) for s in range(3)]
        found.append((history, pairs, remembered(learner).phi.copy()))
    return found


def judge_all(version, histories):
    """Return how many of the decisions a version would not have made, and the largest error of φ."""
    found = []
    for history, pairs, phi in histories:
        slow = version(INFO)
        for seen in history:
            slow.observe(*seen)
        found += [judge(slow, phi, s, pair) for s, pair in enumerate(pairs)]
    return np.sum(found, axis=0)[0], np.max(found, axis=0)[1]


PROBLEMS = {
    "bernoulli": ergodic_env(0),
    "fixed": ergodic_env(1, "mean"),
    "ragged": ragged_env(1),
    "riverswim": make("riverswim[variant=statisticalrl]"),
}


class TestPseudoCode:
    @pytest.mark.parametrize("name", PROBLEMS)
    def test_every_decision_and_every_bias(self, name):
        wrong, error = play(PROBLEMS[name], 200)
        assert wrong == 0
        assert error < 1e-6

    def test_any_history(self, histories):
        wrong, error = judge_all(PseudoCode, histories)
        assert wrong == 0
        assert error < 1e-6


@cache
def shares_of_the_index():
    """Return N·K + ln N and N·(K + ln M) + ln N over ln N(s, best) of all suboptimal pairs, K of the true law; means of eight runs."""
    mdp, shares, wrong = PROBLEMS["bernoulli"].mdp, [], []
    P, r, _ = mdp.to_dense()
    best = analyse(mdp)
    phi = best.bias - best.bias.max()
    runs = [remembered(compiled(PROBLEMS["bernoulli"], IMEDRL(), 10**5, seed)[1]).n for seed in range(8)]
    for s in range(3):
        chosen = int(best.policy.actions[s])
        for a in set(range(3)) - {chosen}:
            x = np.concatenate([phi, 1 + phi])
            p = np.concatenate([P[s, a] * (1 - r[s, a]), P[s, a] * r[s, a]])
            K = PseudoCode(INFO).k_inf(x, p, best.gain + phi[s], 1.0)
            counts = [(n[3 * s + a], n[3 * s + chosen]) for n in runs]
            shares.append(np.mean([(n * K + log(n)) / log(most) for n, most in counts]))
            wrong.append(np.mean([(n * (K + log(1 - phi.min())) + log(n)) / log(most) for n, most in counts]))
    return shares, wrong


def check_exploration(weight):
    """Assert that suboptimal pairs are played ln T/K times (Burnetas & Katehakis 1997), but for the noise of K̂: a factor 1 ± 0.5.

    ``weight`` 1 takes the index of the authors' program, ln(M − (X − μ)λ), in the place of IMED-RL's.
    """
    shares, wrong = shares_of_the_index()
    found = wrong if weight else shares
    assert 0.5 < min(found) <= max(found) < 1.5


class TestRuns:
    @pytest.mark.parametrize("name", ["ragged", "riverswim"])
    def test_all_ways_agree(self, name):
        _, learner = assert_all_ways_agree(PROBLEMS[name], IMEDRL(), 1500, SEED)
        assert learner.t == 1500 == remembered(learner).n.sum()

    def test_interpreted(self):
        assert_interpreted_agrees(PROBLEMS["ragged"], IMEDRL(max_outcomes=2), 150, SEED)

    def test_rewards_beyond_the_room_are_merged(self):
        """Rewards of 100 values: two places per successor are enough to keep them, and the mean reward of each."""
        env = PROBLEMS["ragged"]
        learner = IMEDRL(max_outcomes=5).start(ProblemInfo.from_mdp(env.mdp), 0)
        rng, state, paid = np.random.default_rng(0), 0, 0.0
        for _ in range(500):
            learner.act(state)
            reward, state = float(np.round(rng.uniform(-1, 2), 2)), int(rng.integers(5))
            learner.observe(reward, state)
            paid += reward
        seen = remembered(learner)
        assert seen.listed.max() == 10
        assert seen.times.sum() == 500 == seen.n.sum()
        assert seen.times @ seen.reward == pytest.approx(paid) == pytest.approx(seen.paid.sum())

    def test_the_tolerance_hardly_matters(self):
        """A hundred times less of it: the same decisions in nearly all steps."""
        found = [remembered(compiled(PROBLEMS["bernoulli"], IMEDRL(tol=tol), 2000, SEED)[1]).n for tol in (0.1, 0.001)]
        assert np.abs(found[0] - found[1]).sum() < 100

    def test_scaling_the_rewards_changes_nothing(self):
        """K_inf is the same for r ↦ a + br: powers of two, so that the bits agree."""
        P, r, _ = PROBLEMS["fixed"].mdp.to_dense()
        found = [
            remembered(
                compiled(Env.from_mdp(MDP.from_dense(P, b * r, r_min=0.0, r_max=b), "mean"), IMEDRL(), 1000, SEED)[1]
            )
            for b in (1.0, 4.0)
        ]
        assert found[0].n.tolist() == found[1].n.tolist()
        assert (4 * found[0].phi).tolist() == found[1].phi.tolist()


class TestOptions:
    @pytest.mark.parametrize("tol", [0, -1.0, inf, float("nan"), "0.1", True])
    def test_tol(self, tol):
        with pytest.raises(OptionError, match=r"IMEDRL: tol must be a finite number > 0; got .* Use 0\.1, say\."):
            IMEDRL(tol=tol)

    @pytest.mark.parametrize("most", [0, -3, 2.5, "32", True, 10**4 + 1])
    def test_max_outcomes(self, most):
        with pytest.raises(OptionError, match=r"IMEDRL: max_outcomes must be a whole number ≥ 1; got"):
            IMEDRL(max_outcomes=most)

    def test_too_many_states(self):
        with pytest.raises(OptionError, match=r"IMEDRL: S must be at most 1000; got 1001\. It solves .*; use UCRL\."):
            IMEDRL().start(ProblemInfo(1001, 1), 0)

    @pytest.mark.parametrize("text", ["imed-rl", "imed-rl[tol=0.5]", "imed-rl[tol=1,max_outcomes=5]"])
    def test_text_form(self, text):
        assert agent_id(text) == text == agent_id(make_agent(text))

    def test_contract(self):
        check_agent("imed-rl")
        check_agent(IMEDRL(tol=10.0, max_outcomes=1))

    def test_the_horizon_is_not_read(self):
        _, learner = compiled("three-state", IMEDRL(), 100, SEED)
        assert not learner.info.horizon_was_read


def test_steps_whose_sweeps_do_not_suffice_are_counted():
    """The usual tolerance is always reached; one below rounding is not, unless two sweeps agree to the last bit."""
    enough, _ = compiled(PROBLEMS["bernoulli"], IMEDRL(), 300, SEED)
    assert enough.meta["steps_unsolved"] == 0
    precise, _ = compiled(PROBLEMS["bernoulli"], IMEDRL(tol=1e-300), 300, SEED)
    assert 50 < precise.meta["steps_unsolved"] <= 300 - 9, "pairs never played are played without a solve"
