"""The learner by hand: episodes, counts, refusals."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from spanrl import MDP, SCAL, UCRL, UCRL2, Env, Policy, ProblemInfo, make, span_bellman, streams
from spanrl.agents.learner import Learner
from spanrl.errors import InputError, OptionError

ENV = make("three-state[delta=0.01]")
INFO = ProblemInfo.from_mdp(ENV.mdp)


def play(learner, env, rng, steps, state=None):
    """Play by hand; yield (t, state, action, reward, next state, number of episodes)."""
    state = env.reset(rng) if state is None else state
    for _ in range(steps):
        action = learner.act(state)
        reward, succ = env.step(state, action, rng)
        learner.observe(reward, succ)
        yield learner.t, state, action, reward, succ, learner.n_episodes
        state = succ


class TestEpisodes:
    @pytest.mark.parametrize("agent", [SCAL(2.0), SCAL(0.5, p_scale=0.05, r_scale=0.05), UCRL(), UCRL2()])
    def test_a_new_one_starts_when_a_pair_was_played_as_often_as_before(self, agent):
        """In every finished episode ν ≤ max{1, N}, with equality for the pair that would have been played next."""
        learner = agent.start(INFO, streams(0)[1])
        visits, nu, last_episode, before = np.zeros(4, dtype=int), np.zeros(4, dtype=int), 0, None
        for _, s, a, _, _, episode in play(learner, ENV, streams(0)[0], 3000):
            i = ENV.mdp.pair(s, a)
            if episode > last_episode:
                if last_episode:
                    assert (nu <= np.maximum(visits, 1)).all()
                    assert (nu == np.maximum(visits, 1)).any()
                    visits += nu
                np.testing.assert_array_equal(learner.counts.n, visits)
                assert learner.episode.start == learner.t
                nu[:], last_episode, before = 0, episode, learner.policy
            nu[i] += 1
            assert nu[i] <= max(visits[i], 1)
            assert learner.policy == before, "one policy an episode"
            assert before.probs[s, a] > 0
        assert last_episode == learner.n_episodes > 10
        assert learner.t == visits.sum() + nu.sum() == 3000

    def test_the_first_episode(self):
        learner = SCAL(2.0).start(INFO, 0)
        assert (learner.t, learner.n_episodes, learner.episode, learner.plan) == (0, 0, None, None)
        assert learner.act(2) == 0, "nothing is known: the lowest action"
        assert (learner.t, learner.n_episodes) == (0, 1)
        assert learner.episode.start == 1
        assert learner.episode.gain == pytest.approx(1.0, abs=1e-12)
        assert learner.episode.deterministic
        learner.observe(1.0, 0)
        assert learner.t == 1
        assert learner.counts.n.tolist() == [0, 0, 0, 0], "taken in when the episode ends"

    def test_the_record_of_an_episode(self):
        learner = SCAL(0.5).start(INFO, streams(1)[1])
        for _ in play(learner, ENV, streams(1)[0], 5000):
            episode = learner.episode
            assert episode.gain_low <= episode.gain <= episode.gain_high
            assert episode.gain_high - episode.gain_low <= 1 / sqrt(episode.start)
            assert episode.span == np.ptp(learner.bias) <= 0.5 + 1e-12
            assert episode.sweeps >= 1
            assert episode.deterministic == learner.policy.is_deterministic
        assert not learner.episode.deterministic

    def test_the_bracket_belongs_to_bias_and_set(self):
        learner = SCAL(0.5).start(INFO, streams(1)[1])
        for _ in play(learner, ENV, streams(1)[0], 5000):
            pass
        step = span_bellman(learner.confidence_set().augment(), learner.bias, 0.5) - learner.bias
        assert (learner.episode.gain_low, learner.episode.gain_high) == pytest.approx(
            (step.min(), step.max()), abs=1e-12
        )

    def test_the_bias_is_a_copy(self):
        learner = UCRL().start(INFO, 0)
        learner.act(0)
        learner.bias[:] = 5.0
        assert not learner.bias.any()

    def test_the_counts_are_what_happened(self):
        learner, seen = UCRL2().start(INFO, streams(3)[1]), {}
        episode, pending = 1, []
        for _, s, a, r, succ, number in play(learner, ENV, streams(3)[0], 2000):
            if number > episode:
                for i, _, x in pending:
                    seen.setdefault(i, []).append(x)
                episode, pending = number, []
            pending.append((ENV.mdp.pair(s, a), r, succ))
        counts = learner.counts
        for i in range(4):
            part = slice(counts.succ_ptr[i], counts.succ_ptr[i + 1])
            succ, times = np.unique(seen.get(i, []), return_counts=True)
            assert counts.succ[part].tolist() == succ.tolist()
            assert counts.times[part].tolist() == times.tolist()

    def test_only_mixed_states_cost_a_random_number(self):
        rng = streams(4)[1]
        learner = UCRL().start(INFO, rng)
        before = rng.bit_generator.state
        for _ in play(learner, ENV, streams(4)[0], 500):
            pass
        np.testing.assert_equal(rng.bit_generator.state, before)

    def test_any_generator_serves(self):
        """By hand the agent's stream may be of any kind."""
        runs = []
        for _ in range(2):
            learner = SCAL(0.5).start(INFO, np.random.Generator(np.random.PCG64(1)))
            runs.append([step[:5] for step in play(learner, ENV, streams(0)[0], 2000)])
        assert runs[0] == runs[1]

    def test_a_seed_is_a_generator_of_its_own(self):
        one, other = (
            SCAL(0.5).start(INFO, 7),
            SCAL(0.5).start(INFO, np.random.Generator(np.random.SFC64(np.random.SeedSequence(7)))),
        )
        assert list(play(one, ENV, streams(0)[0], 3000)) == list(play(other, ENV, streams(0)[0], 3000))

    @pytest.mark.parametrize("power", [10, -10, -40])
    def test_scaling_the_rewards_scales_gain_and_span_alone(self, power):
        """By a power of two every operation scales exactly: the same decisions, bit by bit."""
        scale, low = 2.0**power, 0.0
        P, r, available = ENV.mdp.to_dense()
        small = Env.from_mdp(MDP.from_dense(P, r * scale, available=available, r_min=low, r_max=scale), "bernoulli")
        plain = Env.from_mdp(MDP.from_dense(P, r, available=available), "bernoulli")
        narrow = {"p_scale": 0.005, "r_scale": 0.005}
        for agent, scaled in (
            (SCAL(0.5), SCAL(0.5 * scale)),
            (SCAL(0.3, **narrow), SCAL(0.3 * scale, **narrow)),
            (UCRL(**narrow), UCRL(**narrow)),
            (UCRL2(), UCRL2()),
        ):
            one, other = agent.start(INFO, streams(5)[1]), scaled.start(ProblemInfo.from_mdp(small.mdp), streams(5)[1])
            for a, b in zip(
                play(one, plain, streams(5)[0], 3000), play(other, small, streams(5)[0], 3000), strict=True
            ):
                assert (a[1], a[2], a[3] * scale, a[4], a[5]) == b[1:]
            assert one.episode.gain * scale == other.episode.gain
            assert one.episode.span * scale == other.episode.span
            assert one.episode.sweeps == other.episode.sweeps

    def test_ragged_action_sets_and_another_range(self):
        rng = np.random.default_rng(3)
        available = np.array([[False, True, True], [True, False, False], [True, True, True], [False, False, True]])
        mdp = MDP.from_dense(
            rng.dirichlet(np.ones(4), size=(4, 3)),
            rng.uniform(-5, 20, (4, 3)),
            available=available,
            r_min=-5.0,
            r_max=20.0,
        )
        env = Env.from_mdp(mdp, "bernoulli")
        for agent in (SCAL(10.0, p_scale=0.05, r_scale=0.05), UCRL(), UCRL2()):
            learner = agent.start(ProblemInfo.from_mdp(mdp), streams(0)[1])
            for _, s, a, *_ in play(learner, env, streams(0)[0], 1000):
                assert available[s, a]
            assert -5.0 <= learner.episode.gain <= 20.0


class TestWhatIsKnown:
    def test_before_the_first_step_there_is_no_episode(self):
        learner = SCAL(2.0).start(INFO, 0)
        with pytest.raises(OptionError, match=r"policy: there is no episode yet\. Call act\(state\) first"):
            _ = learner.policy
        with pytest.raises(OptionError, match=r"confidence_set: there is no episode yet\. Call act\(state\) first"):
            learner.confidence_set()

    def test_policy_and_set_of_the_episode(self):
        learner = SCAL(2.0).start(INFO, 0)
        learner.act(0)
        assert learner.policy == Policy.deterministic([0, 0, 0], n_actions=2)
        bounded = learner.confidence_set()
        assert bounded.contains(ENV.mdp)
        assert (bounded.r_high == 1).all()

    def test_what_it_was_told(self):
        learner = SCAL(2.0).start(INFO, 0)
        assert isinstance(learner, Learner)
        assert learner.info is INFO
        assert learner.seconds == 0.0
        learner.act(0)
        assert learner.seconds > 0.0


class TestRefusals:
    def test_observe_before_act(self):
        learner = UCRL().start(INFO, 0)
        with pytest.raises(
            OptionError, match=r"observe: no action is waiting for its reward\. Call act\(state\) first"
        ):
            learner.observe(0.5, 0)
        learner.act(0)
        learner.observe(0.5, 0)
        with pytest.raises(OptionError, match="observe: no action is waiting"):
            learner.observe(0.5, 0)

    def test_act_twice(self):
        learner = UCRL().start(INFO, 0)
        learner.act(0)
        with pytest.raises(
            OptionError, match=r"act: step 1 has no reward yet\. Call observe\(reward, next_state\) first"
        ):
            learner.act(0)
        learner.observe(0.5, 1)
        learner.act(1)
        with pytest.raises(OptionError, match="act: step 2 has no reward yet"):
            learner.act(1)

    @pytest.mark.parametrize("state", [-1, 3, 0.0, "0", None, True, np.array([1])])
    def test_states_that_are_none(self, state):
        learner = UCRL().start(INFO, 0)
        with pytest.raises(OptionError, match=r"act: the state must be in 0\.\.2; got .* at step 1"):
            learner.act(state)
        learner.act(0)
        with pytest.raises(OptionError, match=r"observe: the next state must be in 0\.\.2; got .* at step 1"):
            learner.observe(0.5, state)

    @pytest.mark.parametrize("reward", [-0.1, 1.5, np.nan, np.inf, "1", None, 1j])
    def test_rewards_out_of_range(self, reward):
        learner = UCRL().start(INFO, 0)
        learner.act(0)
        learner.observe(0.0, 0)
        learner.act(0)
        with pytest.raises(
            InputError, match=r"observe: the reward must lie in \[0, 1\]; got .* at step 2\. Declare the range"
        ):
            learner.observe(reward, 0)

    def test_a_refusal_leaves_the_learner_as_it_was(self):
        clean, tried = (SCAL(0.5).start(INFO, 3) for _ in range(2))
        one, other = [], []
        for step in play(clean, ENV, streams(2)[0], 400):
            one.append(step)
        rng, state = streams(2)[0], ENV.reset(streams(2)[0])
        for _ in range(400):
            action = tried.act(state)
            for wrong in ((7.0, 0), (0.5, 9)):
                with pytest.raises(InputError, match="observe:"):
                    tried.observe(*wrong)
            with pytest.raises(InputError, match="act:"):
                tried.act(state)
            reward, succ = ENV.step(state, action, rng)
            tried.observe(reward, succ)
            other.append((tried.t, state, action, reward, succ, tried.n_episodes))
            state = succ
        assert one == other

    def test_numbers_of_numpy_are_numbers(self):
        learner = UCRL().start(INFO, 0)
        assert learner.act(np.int64(0)) == 0
        learner.observe(np.float32(0.5), np.uint8(2))
        learner.act(np.uint32(2))
        learner.observe(1, np.int16(0))
        assert learner.t == 2
