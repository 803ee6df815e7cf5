"""RVI Q-learning against its formula step by step, and where it converges to."""

from __future__ import annotations

import numpy as np
import pytest

from spanrl import MDP, Env, ProblemInfo, QLearning, analyse, check_agent, learn, make, make_agent, streams
from spanrl.agents.registry import agent_id
from spanrl.errors import InputError, OptionError, RunFileError
from ways import Kept, assert_all_ways_agree, assert_interpreted_agrees, by_hand, compiled, ragged_env

SEED = 3
PROBLEMS = {"riverswim": make("riverswim[variant=osband]"), "ragged": ragged_env(1)}
AGENTS = (QLearning(), QLearning(epsilon=0.5, step_scale=3.0), QLearning(epsilon=0.0, step_scale=1.0))


class Formula:
    """The algorithm in plain Python, with dictionaries; f(Q) is summed anew at every step, unless it is ``kept`` as a running mean."""

    def __init__(self, mdp, epsilon, b, kept, seed=SEED):
        self.actions = [mdp.action[i:j].tolist() for i, j in zip(mdp.pair_ptr, mdp.pair_ptr[1:], strict=False)]
        self.Q = {(s, a): 0.0 for s, here in enumerate(self.actions) for a in here}
        self.n = dict.fromkeys(self.Q, 0)
        self.epsilon, self.b, self.kept, self.mean = epsilon, b, kept, 0.0
        self.bits = streams(seed)[1].bit_generator

    def uniform(self):
        """Return the midpoint of one of 2⁵² parts of [0, 1], chosen by the first bits of a word of SFC64, numpy's."""
        return ((int(self.bits.random_raw()) >> 12) + 0.5) / 2**52

    def greedy(self, s):
        return max(self.actions[s], key=lambda a: (self.Q[s, a], -a))

    def act(self, s):
        if self.uniform() < self.epsilon:
            return self.actions[s][int(self.uniform() * len(self.actions[s]))]
        return self.greedy(s)

    def learn(self, s, a, r, succ):
        self.n[s, a] += 1
        f = self.mean if self.kept else sum(self.Q.values()) / len(self.Q)
        alpha = self.b / (self.b + self.n[s, a] - 1)
        change = alpha * (r + self.Q[succ, self.greedy(succ)] - f - self.Q[s, a])
        self.Q[s, a] += change
        self.mean += change / len(self.Q)


def replay(env, agent, steps, kept=True):
    """Return the formula after so many steps in the environment, and all (state, action, reward)."""
    formula, env_rng = Formula(env.mdp, agent.epsilon, agent.step_scale, kept), streams(SEED)[0]
    state, taken = env.reset(env_rng), []
    for _ in range(steps):
        action = formula.act(state)
        reward, succ = env.step(state, action, env_rng)
        formula.learn(state, action, reward, succ)
        taken.append((state, action, reward))
        state = succ
    return formula, taken


class TestFormula:
    @pytest.mark.parametrize("name", PROBLEMS)
    @pytest.mark.parametrize("agent", AGENTS)
    def test_the_same_bits_step_by_step(self, name, agent):
        env = PROBLEMS[name]
        formula, wanted = replay(env, agent, 2000)
        learner, taken = by_hand(env, agent, 2000, SEED)
        assert taken == wanted
        for found in (learner, compiled(env, agent, 2000, SEED)[1]):
            assert found.memory.values.tolist() == [*formula.Q.values(), formula.mean]
            assert found.memory.visits.tolist() == list(formula.n.values())
            assert found.memory.words.tolist() == formula.bits.state["state"]["state"].tolist()
            assert found.rng.bit_generator.state["state"]["state"].tolist() == found.memory.words.tolist()
        assert sum(formula.n.values()) == 2000

    @pytest.mark.parametrize("name", PROBLEMS)
    def test_the_mean_is_kept_without_drift(self, name):
        """Each step adds one rounding of the mean, 1e-16 of a few units: 1e-9 is far beyond."""
        _, learner = compiled(PROBLEMS[name], QLearning(), 10**6, SEED)
        assert learner.memory.values[-1] == pytest.approx(learner.memory.values[:-1].mean(), rel=0, abs=1e-9)
        formula, _ = replay(PROBLEMS[name], QLearning(), 2000, kept=False)
        _, learner = compiled(PROBLEMS[name], QLearning(), 2000, SEED)
        np.testing.assert_allclose(learner.memory.values[:-1], list(formula.Q.values()), rtol=0, atol=1e-9)

    def test_ties_go_to_the_lowest_action(self):
        mdp = MDP.from_dense(np.full((2, 3, 2), 0.5), np.zeros((2, 3)))
        _, steps = by_hand(Env.from_mdp(mdp), QLearning(epsilon=0.0), 50, 0)
        assert {action for _, action, _ in steps} == {0}

    def test_random_actions_are_uniform(self):
        """With ε = 1 each of the three actions has a binomial number of plays; 5 standard deviations, of three tests."""
        mdp = MDP.from_dense(np.ones((1, 3, 1)), [[0.0, 0.5, 1.0]])
        _, learner = compiled(Env.from_mdp(mdp), QLearning(epsilon=1.0), 90_000, SEED)
        assert learner.memory.visits.sum() == 90_000
        assert np.abs(learner.memory.visits - 30_000).max() < 5 * np.sqrt(90_000 * 2 / 9)


T = 3 * 10**6


@pytest.fixture(scope="module", params=[0.3, 1.0], ids=["ε = 0.3", "ε = 1"])
def converged(request):
    """Return a model, and {steps: the values in the end, of four seeds}."""
    rng = np.random.default_rng(0)
    mdp = MDP.from_dense(rng.dirichlet(np.ones(3), size=(3, 2)), np.round(rng.random((3, 2)), 2))
    env, agent = Env.from_mdp(mdp, "bernoulli"), QLearning(epsilon=request.param)
    return mdp, {n: [compiled(env, agent, n, seed)[1].memory.values for seed in range(4)] for n in (T // 100, T)}


class TestConvergence:
    """Three states, two actions, all transitions possible: every policy has one recurrent class.

    After T steps every pair has T/34 visits or more (ε/2 = 0.15 of the visits to a state go to its lesser action), and its last step is
    α = b/n ≤ 1.2e-3. The noise of a target r + max Q is about σ = ½ + sp/2 < 1, that of Q some σ√(α/2) = 0.024 at the most, and f(Q)
    averages six of them: 0.01.
    """

    def test_the_mean_approaches_the_optimal_gain(self, converged):
        mdp, runs = converged
        gain = analyse(mdp).gain
        late, early = (np.sqrt(np.mean([(values[-1] - gain) ** 2 for values in runs[n]])) for n in (T, T // 100))
        assert late < 0.01
        assert late < early / 3, "the noise falls like 1/√T: by 10"

    def test_q_approaches_the_optimal_one_and_its_greedy_policy_is_optimal(self, converged):
        """Q* = r + Ph* − g* up to a constant; its actions differ by 0.13, five times the noise, in every state."""
        mdp, runs = converged
        best = analyse(mdp)
        P, r, _ = mdp.to_dense()
        wanted = r + P @ best.bias - best.gain
        assert np.abs(np.diff(wanted, axis=1)).min() > 0.13
        for values in runs[T]:
            Q = values[:-1].reshape(3, 2)
            assert np.ptp(Q - wanted) < 3 * 0.024
            assert Q.argmax(axis=1).tolist() == best.policy.actions.tolist()


class TestRuns:
    @pytest.mark.parametrize("name", PROBLEMS)
    def test_all_ways_agree(self, name):
        _, learner = assert_all_ways_agree(PROBLEMS[name], QLearning(epsilon=0.2), 2000, SEED)
        assert learner.t == 2000

    def test_interpreted(self):
        assert_interpreted_agrees(PROBLEMS["ragged"], QLearning(), 500, SEED)

    def test_budgets_and_measurements_change_nothing(self):
        env, found = PROBLEMS["ragged"], []
        for points in (1, 100, 1000):
            kept = Kept(QLearning())
            run = learn(env, kept, horizon=5000, seed=SEED, points=points)
            found.append((run.reward[-1], kept.learners[0].memory.values.tobytes()))
        assert len(set(found)) == 1

    def test_there_are_no_episodes(self):
        run = learn(PROBLEMS["ragged"], "qlearning", horizon=1000, seed=0)
        assert np.isnan(run.span).all()
        assert (run.n_episodes == 0).all()
        assert {name: column.size for name, column in run.episodes.items()} == dict.fromkeys(
            ("start", "gain", "span", "sweeps", "deterministic"), 0
        )
        assert run.t[-1] == 1000

    def test_a_constant_exploration_costs_a_constant_per_step(self):
        """The regret is linear in T: the module says so."""
        runs = [learn(PROBLEMS["riverswim"], "qlearning", horizon=n, seed=0) for n in (10**5, 10**6)]
        rates = [run.pseudo_regret[-1] / run.t[-1] for run in runs]
        assert rates[1] == pytest.approx(rates[0], rel=0.5)
        assert rates[1] > 0.01

    def test_by_hand_any_generator_serves(self):
        env, found = PROBLEMS["ragged"], []
        for seed in (1, 1, 2):
            env_rng, info = streams(0)[0], ProblemInfo.from_mdp(env.mdp)
            learner = QLearning(epsilon=0.5).start(info, np.random.Generator(np.random.PCG64(seed)))
            state, actions = env.reset(env_rng), []
            for _ in range(300):
                actions.append(learner.act(state))
                reward, state = env.step(state, actions[-1], env_rng)
                learner.observe(reward, state)
            found.append(actions)
        assert found[0] == found[1] != found[2]

    def test_the_horizon_is_not_read(self):
        kept = Kept(QLearning())
        learn("three-state", kept, horizon=100, seed=0)
        assert not kept.learners[0].info.horizon_was_read


class TestRefusals:
    @pytest.fixture
    def learner(self):
        return QLearning().start(ProblemInfo.from_mdp(PROBLEMS["ragged"].mdp), 0)

    @pytest.mark.parametrize("epsilon", [-0.1, 1.1, float("nan"), "0.1", True, None])
    def test_epsilon(self, epsilon):
        with pytest.raises(OptionError, match=r"QLearning: epsilon must lie in \[0, 1\]; got .* Use 0\.1, say\."):
            QLearning(epsilon=epsilon)

    @pytest.mark.parametrize("b", [0.0, -1, float("inf"), float("nan"), "100", False])
    def test_step_scale(self, b):
        with pytest.raises(
            OptionError, match=r"QLearning: step_scale must be a finite number > 0; got .* Use 100, say\."
        ):
            QLearning(step_scale=b)

    def test_ends_are_allowed(self):
        assert (QLearning(epsilon=0).epsilon, QLearning(epsilon=1).epsilon, QLearning(step_scale=1e-9).step_scale) == (
            0,
            1,
            1e-9,
        )

    def test_audit(self):
        with pytest.raises(OptionError, match=r"learn: audit needs the true model and an agent with confidence sets"):
            learn("three-state", "qlearning", horizon=10, seed=0, audit=True)

    def test_the_wrong_order(self, learner):
        with pytest.raises(OptionError, match=r"observe: no action is waiting for its reward"):
            learner.observe(0.0, 0)
        learner.act(0)
        with pytest.raises(OptionError, match=r"act: step 1 has no reward yet"):
            learner.act(0)

    def test_what_cannot_be(self, learner):
        with pytest.raises(OptionError, match=r"act: the state must be in 0\.\.4; got 5 at step 1"):
            learner.act(5)
        learner.act(0)
        with pytest.raises(OptionError, match=r"observe: the next state must be in 0\.\.4; got -1 at step 1"):
            learner.observe(0.0, -1)
        with pytest.raises(InputError, match=r"observe: the reward must lie in \[-1, 2\]; got 3.0 at step 1"):
            learner.observe(3.0, 0)
        learner.observe(2.0, 0)
        assert learner.t == 1, "what was refused left no trace"

    @pytest.mark.parametrize(("name", "value"), [("values", np.zeros(3)), ("visits", np.full(9, 7)), ("t", -1)])
    def test_states_of_others(self, learner, name, value):
        state = learner.get_state() | {name: value}
        with pytest.raises(RunFileError):
            learner.set_state(state)


class TestNames:
    @pytest.mark.parametrize("text", ["qlearning", "qlearning[epsilon=0.3]", "qlearning[epsilon=1,step_scale=5]"])
    def test_round_trip(self, text):
        assert agent_id(text) == text == agent_id(make_agent(text))

    def test_numbers_of_any_kind(self):
        assert make_agent("qlearning[epsilon=1,step_scale=100]") == QLearning(epsilon=1.0)
        assert agent_id(QLearning(epsilon=1)) == "qlearning[epsilon=1]"

    def test_contract(self):
        check_agent("qlearning")
        check_agent(QLearning(epsilon=1.0, step_scale=1.0))
