"""The compiled agents against the paper in plain numpy, episode by episode: gain bracket, span, sweeps, and policy up to ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest

from spanrl import Env, ProblemInfo, learn, make, reference
from spanrl.agents.scal import SCAL
from spanrl.agents.ucrl import UCRL
from spanrl.bench import garnet
from spanrl.models.counts import Batch

TIE = 1e-9


def random_env(seed):
    return Env.from_mdp(garnet(5, 3, 2 + seed % 3, seed=seed), rewards="bernoulli")


ENVS = {
    "three-state": lambda: make("three-state", delta=0.05),
    "two-state": lambda: make("two-state"),
    "riverswim": lambda: make("riverswim"),
    **{f"random {seed}": lambda seed=seed: random_env(seed) for seed in range(4)},
}
AGENTS = {
    "ucrl": UCRL(warm_start=False),
    "scal, c = 5": SCAL(5.0, warm_start=False),
    "scal, c = 0.5": SCAL(0.5, warm_start=False),
}


def dense(counts, info):
    """Return the statistics of a learner as the reference keeps them, and which actions there are."""
    S, A = info.n_states, info.n_actions
    out, allowed = reference.Counts(S, A), np.zeros((S, A), dtype=bool)
    for i, (s, a) in enumerate(zip(info.pair_state, info.action, strict=True)):
        allowed[s, a] = True
        out.N[s, a], out.rewards[s, a] = counts.n[i], counts.n[i] * counts.r_mean[i]
        out.squares[s, a] = counts.r_sq[i]
        at = slice(counts.succ_ptr[i], counts.succ_ptr[i + 1])
        out.successors[s, a, counts.succ[at]] = counts.times[at]
    return out, allowed


@dataclass(frozen=True)
class Watched:
    """An agent whose learner calls ``look`` at the start of every episode."""

    agent: Any
    look: Callable[[Any], None]

    def start(self, info, rng):
        learner = self.agent.start(info, rng)
        learner.on_episode.append(self.look)
        return learner


def episodes(env, agent, T, every=1):
    """Run an agent; return (episode, plan of the reference on the same counts, its set, the policy that was played) of every episode."""
    info = ProblemInfo.from_mdp(env.mdp)
    found, options = [], {"r_min": info.r_min, "r_max": info.r_max}
    c = getattr(agent, "span_bound", inf)

    def compare(learner):
        if (learner.n_episodes - 1) % every:
            return
        counts, allowed = dense(learner.counts, info)
        t_k = learner.episode.start
        plan = reference.plan(
            counts, allowed, t_k, c=c, delta=agent.delta, perturb=getattr(agent, "perturb", False), **options
        )
        M = reference.confidence_set(counts, allowed, t_k, agent.delta, **options)
        M = reference.modified(M, info.r_min) if c < inf else M
        found.append((learner.episode, plan, M, learner.policy.probs.copy()))

    learn(env, Watched(agent, compare), horizon=T, seed=7, gain=0.0)
    return found


def check(found, c):
    """Assert that every episode has the plan of the reference."""
    for episode, plan, M, policy in found:
        scale = 1 + np.abs(plan.v).max()
        np.testing.assert_allclose(
            [episode.gain_low, episode.gain_high], plan.gain_bounds, atol=TIE * scale, err_msg=f"t_k = {episode.start}"
        )
        assert episode.span == pytest.approx(reference.sp(plan.v), abs=TIE * scale)
        assert episode.sweeps == plan.n + 1
        check_policy(M, plan, policy, c, TIE * scale)


def check_policy(M, plan, policy, c, tie):
    """Assert that a policy is G_c v up to ties between actions."""
    most, least = reference.values(M, plan.v), reference.values(M, plan.v, -1.0)
    high, low = most.max(axis=1), least.min(axis=1)
    top = high.min() + c
    for s in range(len(high)):
        best, worst = most[s] >= high[s] - tie, least[s] <= low[s] + tie
        assert policy[s].sum() == pytest.approx(1.0)
        if high[s] <= top + tie:
            assert policy[s][~best].sum() <= 1e-6
            continue
        assert policy[s][~(best | worst)].sum() == 0
        if not (best & worst).any():
            assert policy[s][worst].sum() == pytest.approx((high[s] - top) / (high[s] - low[s]), abs=1e-6)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("env", ENVS)
def test_every_episode_has_the_plan_of_the_paper(env, agent):
    found = episodes(ENVS[env](), AGENTS[agent], 20_000)
    assert len(found) > 10
    assert found[-1][2].r_high.min() < found[0][2].r_high.min()  # the last set is not everything
    check(found, getattr(AGENTS[agent], "span_bound", inf))


@pytest.mark.parametrize("c", [2.0, inf])
def test_knight_quest(c):
    """The paper's largest domain, 360 states, after 20 000 visits of each pair that all brought what they should on the average."""
    env, agent = make("knight-quest"), UCRL(warm_start=False) if c == inf else SCAL(c, warm_start=False)
    info = ProblemInfo.from_mdp(env.mdp)
    seen = {}
    for i in range(info.n_pairs):
        for j in range(env.out_ptr[i], env.out_ptr[i + 1]):
            key = i, float(env.out_reward[j]), int(env.out_succ[j])
            seen[key] = seen.get(key, 0) + round(20_000 * env.out_prob[j])
    learner = agent.start(info, np.random.default_rng(0))
    learner.t = sum(seen.values())
    learner.begin_episode(Batch.from_dict(seen), 0)
    counts, allowed = dense(learner.counts, info)
    options = {"delta": agent.delta, "r_min": info.r_min, "r_max": info.r_max}
    plan = reference.plan(counts, allowed, learner.episode.start, c=c, **options)
    assert plan.n > 10
    M = reference.confidence_set(counts, allowed, learner.episode.start, **options)
    M = reference.modified(M, info.r_min) if c < inf else M
    check([(learner.episode, plan, M, learner.policy.probs)], c)


def test_the_perturbed_set_of_the_theorem():
    found = episodes(make("three-state", delta=0.05), SCAL(2.0, perturb=True, warm_start=False), 12)
    assert len(found) > 3
    for episode, plan, _, _ in found:
        np.testing.assert_allclose([episode.gain_low, episode.gain_high], plan.gain_bounds, atol=1e-8)
        assert episode.span == pytest.approx(reference.sp(plan.v), abs=1e-8)


@pytest.mark.parametrize("env", ["three-state", "riverswim"])
@pytest.mark.parametrize("agent", ["ucrl", "scal, c = 5"])
def test_whole_runs_agree_where_policies_are_deterministic(env, agent):
    """Both are told the same outcomes: the n-th visit of a pair always brings the same. Episodes then begin at the same steps."""
    world, configured = ENVS[env](), AGENTS[agent]
    info, T = ProblemInfo.from_mdp(world.mdp), 400

    def shared():
        visits = {}

        def step(s, a):
            n = visits[s, a] = visits.get((s, a), 0) + 1
            return world.step(s, a, np.random.default_rng((s, a, n)))

        return step

    allowed = dense(configured.start(info, 0).counts, info)[1]
    start = int(np.flatnonzero(world.mdp.start)[0])
    by_paper = reference.learn(
        shared(), start, allowed, T, np.random.default_rng(0), c=getattr(configured, "span_bound", inf)
    )
    learner, step, s, begun = configured.start(info, np.random.default_rng(0)), shared(), start, []
    learner.on_episode.append(lambda learner: begun.append(learner.episode))
    for _ in range(T):
        a = learner.act(s)
        r, s = step(s, a)
        learner.observe(r, s)
    assert all(episode.deterministic for episode in begun)
    assert [episode.t_k for episode in by_paper] == [episode.start for episode in begun]
    for mine, theirs in zip(begun, by_paper, strict=True):
        np.testing.assert_allclose([mine.gain_low, mine.gain_high], theirs.plan.gain_bounds, atol=TIE)


def wrong_beta(variance, N, b, size):
    """Return the radius without the variance of the rewards' last visit: N where the paper has N − 1."""
    return np.sqrt(14 * variance * b / np.maximum(1, N)) + 49 / 3 * size * b / np.maximum(1, N)


def wrong_T(M, v, c):
    """Truncate from above the mean instead of the minimum."""
    Lv = reference.values(M, v).max(axis=1)
    return np.minimum(Lv, Lv.mean() + c)


def wrong_scopt(M, c, epsilon, gamma=0.0, s_bar=0, original=reference.scopt):
    """Stop twice as early."""
    return original(M, c, 2 * epsilon, gamma, s_bar)


@pytest.mark.parametrize(("name", "wrong"), [("beta", wrong_beta), ("T", wrong_T), ("scopt", wrong_scopt)])
def test_a_broken_formula_shows(monkeypatch, name, wrong):
    monkeypatch.setattr(reference, name, wrong)
    found = episodes(make("riverswim"), SCAL(0.5, warm_start=False), 20_000, every=5)
    with pytest.raises(AssertionError):
        check(found, 0.5)


def test_extremes_are_those_of_a_linear_programme():
    from scipy.optimize import linprog

    rng = np.random.default_rng(3)
    for _ in range(50):
        S = int(rng.integers(1, 7))
        p, v = rng.dirichlet(np.ones(S)), rng.normal(size=S).round(1)
        low, high = np.maximum(0, p - rng.random(S) / 3), np.minimum(1, p + rng.random(S) / 3)
        for sign in (1.0, -1.0):
            best = linprog(-sign * v, A_eq=np.ones((1, S)), b_eq=[1.0], bounds=list(zip(low, high, strict=True)))
            assert reference.extreme(low, high, v, sign) == pytest.approx(-sign * best.fun, abs=1e-9)


def test_scopt_finds_the_best_constrained_policy_of_the_two_state_example():
    """Lemma 1: with ½ < c < 1 the gain is c, the policy mixes, x = 1 and y = (1 − c)/(1 + c)."""
    mdp, c = make("two-state").mdp, 0.75
    P, r, available = mdp.to_dense()
    known = reference.Plausible(available, P, P, r, r)
    plan = reference.scopt(known, c, 1e-9)
    assert plan.gain_bounds[0] == pytest.approx(c, abs=1e-8)
    assert reference.sp(plan.v) == pytest.approx(c, abs=1e-8)
    assert plan.policy[1].max() < 1
    assert sqrt(plan.policy[1].min() * (1 + c) / (1 - c)) == pytest.approx(1.0, abs=1e-6)
