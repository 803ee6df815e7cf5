"""SCAL⁺: its model and bonus by hand, a plain version decision by decision, the ingredients of its guarantee, broken ones beside."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction
from functools import cache
from math import log, sqrt

import numpy as np
import pytest
from family_samples import TIE, Decision, assert_same_decisions, iterate, lowest

from spanrl import MDP, Env, ProblemInfo, SCALPlus, analyse, learn, make, make_agent, span_bellman, streams
from spanrl.agents.registry import agent_id
from spanrl.agents.scal_plus import BonusModel, bonus
from spanrl.bench import garnet
from spanrl.errors import OptionError
from spanrl.models.counts import Batch, Counts
from ways import Kept, assert_all_ways_agree, assert_interpreted_agrees, ragged_env

LEVEL = 1e-3


def random_env(seed):
    return Env.from_mdp(garnet(5, 2, 2 + seed % 3, seed=seed), rewards="bernoulli")


# --- the model ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 17, 10**6])
@pytest.mark.parametrize(("c", "size", "delta"), [(0.0, 1.0, 0.05), (2.5, 3.0, 0.5), (1e3, 0.25, 1e-9)])
def test_the_bonus_to_forty_digits(n, c, size, delta):
    getcontext().prec = 40
    S, A = 7, 3
    N = Decimal(max(1, n))
    root = ((20 * S * A * N / Decimal(delta)).ln() / N).sqrt()
    wanted = (Decimal(c) + Decimal(size)) * root + Decimal(c) / (n + 1)
    assert bonus.py_func(n, c, size, 20 * S * A / delta) == pytest.approx(float(wanted), rel=1e-13)


INFO = ProblemInfo(3, 2, r_min=-1.0, r_max=2.0, available=[[True, True], [True, False], [True, True]])
TIMES = np.array([[0, 0, 0], [0, 3, 1], [5, 0, 0], [0, 0, 7], [2, 2, 0]])
MEAN = np.array([0.0, 0.5, -1.0, 2.0, 0.25])  # the first was never seen: its mean is no statistic


def sample_counts(times=TIMES, mean=MEAN):
    n = times.sum(axis=1)
    pair, succ = np.nonzero(times)
    ptr = np.searchsorted(pair, np.arange(n.size + 1))
    return Counts(n, np.array(mean, dtype=float), np.zeros(n.size), ptr, succ.astype(np.uint32), times[pair, succ])


def dense_model(estimate, counts, info):
    """Return p̄ [n_pairs, S] and r̂ + b [n_pairs] as the estimate writes them."""
    sets = estimate.sets(counts, 10**6, info)
    P = np.zeros((info.n_pairs, int(info.n_states)))
    for i in range(info.n_pairs):
        row = slice(*sets.succ_ptr[i : i + 2])
        P[i, sets.succ[row]] = sets.low[row]
    assert sets.r_low.tolist() == sets.r_high.tolist()
    return P, sets.r_high.copy()


def test_the_model_in_fractions():
    P, r = dense_model(BonusModel(4.0, 0.1), sample_counts(), INFO)
    for i, row in enumerate(TIMES.tolist()):
        n = sum(row)
        wanted = [Fraction(times + (s == 0), n + 1) for s, times in enumerate(row)]
        assert P[i].tolist() == pytest.approx([float(p) for p in wanted], rel=1e-15)
        b = (4 + 3) * sqrt(log(20 * 3 * 2 * max(1, n) / 0.1) / max(1, n)) + 4 / (n + 1)
        assert r[i] == pytest.approx((MEAN[i] if n else -1.0) + b, rel=1e-14)
    assert r.max() > INFO.r_max, "not capped"


def test_rows_that_moved_are_right():
    """Rows are written from what has changed: after a run they are what they are from scratch."""
    kept = Kept(SCALPlus(0.5))
    learn(ragged_env(2), kept, horizon=3000, seed=2)
    (learner,) = kept.learners
    sets, fresh = learner._planner._work.sets, learner.rules.estimate.sets(learner.counts, 1, learner.info)
    n = int(fresh.succ_ptr[-1])
    assert sets.succ_ptr.tolist() == fresh.succ_ptr.tolist()
    assert sets.succ[:n].tolist() == fresh.succ[:n].tolist()
    assert sets.low[:n].tobytes() == fresh.low[:n].tobytes()
    assert sets.r_high.tobytes() == fresh.r_high.tobytes()


# --- decision by decision -------------------------------------------------------------------------------------------


def plain_scal_plus(c, delta, scale=1.0, *, greedy=False):
    """Return the decisions of SCAL⁺ as its docstring has them, for rewards in [0, 1]."""

    def decide(counts, allowed, t, s, steps):
        N, (S, A) = counts.N, allowed.shape
        plus = np.maximum(1, N)
        P = counts.successors / (N + 1)[:, :, None]
        P[:, :, 0] += 1 / (N + 1)
        b = scale * ((c + 1) * np.sqrt(np.log(20 * S * A * plus / delta) / plus) + c / (N + 1))
        raised = np.where(allowed, counts.rewards / plus + b, -np.inf)
        v, Lv = iterate(lambda v: raised + P @ v, S, c, 1 / sqrt(t))
        ceiling, lower = Lv.min() + c, np.where(allowed, P @ v, np.inf)  # the copies that pay 0
        other, weight = lowest(-lower), np.zeros(S)
        best = lowest(raised + P @ v)
        for k in range(S if not greedy else 0):
            if Lv[k] > ceiling + TIE and best[k] != other[k]:
                weight[k] = (Lv[k] - ceiling) / (Lv[k] - lower[k].min())
        return Decision(best, other, weight, np.maximum(1, N))

    return decide


ENVS = {
    "riverswim": lambda: make("riverswim[variant=osband]"),
    **{f"random {k}": lambda k=k: random_env(k) for k in range(3)},
}


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize(
    ("c", "scale", "greedy"),
    [(3.0, 1.0, False), (0.3, 0.05, False), (0.3, 0.05, True)],
    ids=["wide", "mixed", "greedy"],
)
def test_a_plain_version_decides_alike(env, c, scale, greedy):
    agent = SCALPlus(c, bonus_scale=scale, policy="greedy" if greedy else "mixture", warm_start=False)
    assert_same_decisions(ENVS[env](), agent, plain_scal_plus(c, 0.05, scale, greedy=greedy), 1000, fewest=8)


def test_some_of_these_mix():
    run = learn(random_env(1), SCALPlus(0.3, bonus_scale=0.05), horizon=1500, seed=0)
    assert 0 < run.episodes["deterministic"].sum() < run.episodes["deterministic"].size


@pytest.mark.parametrize("mutant", ["no pseudo-visit", "other constant", "shorter episodes"])
def test_a_broken_plain_version_shows(mutant):
    sound = plain_scal_plus(0.3, 0.05, 0.05)

    def decide(counts, allowed, t, s, steps):
        if mutant == "other constant":
            return plain_scal_plus(0.3, 0.05, 0.06)(counts, allowed, t, s, steps)
        if mutant == "no pseudo-visit":
            counts = type("Shifted", (), {**vars(counts), "successors": counts.successors.copy()})
            counts.successors[:, :, 1] += 1
            counts.successors[:, :, 0] -= 1
        plan = sound(counts, allowed, t, s, steps)
        return plan._replace(visits=plan.visits - (plan.visits > 4)) if mutant == "shorter episodes" else plan

    with pytest.raises(AssertionError):
        assert_same_decisions(random_env(1), SCALPlus(0.3, bonus_scale=0.05, warm_start=False), decide, 1000, fewest=8)


# --- the operator ---------------------------------------------------------------------------------------------------


def test_the_operator_is_monotone_and_commutes_with_constants_and_certifies_the_plan():
    """T_c of the model that the agent plans on, by the general operators; and every plan's bracket is that of T_c at its bias."""
    rng, looked = np.random.default_rng(0), 0

    def look(learner):
        nonlocal looked
        P, r = dense_model(learner.rules.estimate, learner.counts, learner.info)
        mdp, c = pairs_mdp(learner.info, P, r), learner.rules.span_bound
        v = rng.normal(size=mdp.n_states)
        w, shift = v + rng.random(mdp.n_states), float(rng.normal())
        assert (span_bellman(mdp, v, c) <= span_bellman(mdp, w, c) + 1e-12).all()
        np.testing.assert_allclose(span_bellman(mdp, v + shift, c), span_bellman(mdp, v, c) + shift, atol=1e-12)
        assert np.ptp(span_bellman(mdp, w, c)) <= c + 1e-12
        step = span_bellman(mdp, learner.bias, c) - learner.bias
        assert learner.plan.gain_bounds == pytest.approx((step.min(), step.max()), abs=1e-10)
        assert np.ptp(step) <= learner.info.size / sqrt(learner.episode.start) + 1e-10
        assert learner.plan.span <= c + 1e-12
        assert (P[:, 0] >= 1 / (learner.counts.n + 1) - 1e-15).all(), "a contraction"
        looked += 1

    agent = Kept(SCALPlus(0.7))
    for seed in range(2):
        learner = agent.start(ProblemInfo.from_mdp(ragged_env(seed).mdp), streams(seed)[1])
        learner.on_episode.append(look)
        env, (env_rng, _) = ragged_env(seed), streams(seed)
        s = env.reset(env_rng)
        for _ in range(700):
            reward, following = env.step(s, learner.act(s), env_rng)
            learner.observe(reward, following)
            s = following
    assert looked > 20


def pairs_mdp(info, P, r):
    """Return a model from dense rows; rewards may exceed the declared range."""
    table = np.zeros((int(info.n_states), int(info.n_actions), int(info.n_states)))
    rewards, available = np.zeros(table.shape[:2]), np.zeros(table.shape[:2], dtype=bool)
    for i, (s, a) in enumerate(zip(info.pair_state, info.action, strict=True)):
        table[s, a], rewards[s, a], available[s, a] = P[i], r[i], True
    return MDP.from_dense(table, rewards, available=available, r_min=info.r_min, r_max=float(r.max()))


# --- the ingredients of the guarantee: claims, see family_claims.py ---------------------------------------------------


def misses(factor, n_runs=400, n=1500, delta=0.5):
    """Return in how many runs the good event of one pair, S = A = 1 and c = 2, fails at some N ≤ n; the root is scaled by a factor."""
    rng = np.random.default_rng(5)
    p, h, c = np.array([0.2, 0.5, 0.3]), np.array([0.0, 2.0, 1.0]), 2.0
    root = np.array([bonus.py_func(N, c, 1.0, 20 / delta) - c / (N + 1) for N in range(1, n + 1)])
    N = np.arange(1, n + 1)
    wrong_h = np.abs(np.cumsum(rng.choice(h, p=p, size=(n_runs, n)), axis=1) / N - p @ h)
    wrong_r = np.abs(np.cumsum(rng.random((n_runs, n)) < 0.4, axis=1) / N - 0.4)
    return int((wrong_h + wrong_r > factor * root).any(axis=1).sum())


@cache
def worst_of_the_event(seed):
    """Return a model, its analysis, r̂ and counts as bad as the good event allows for c = sp(h*), and δ."""
    rng = np.random.default_rng(seed)
    S, A, N, delta = 4, 1 + seed % 2, int(10 ** rng.integers(2, 6)), 0.05
    P, r = rng.dirichlet(np.full(S, 0.7), size=(S, A)), rng.uniform(0.3, 1, (S, A))
    known = analyse(MDP.from_dense(P, r), diameter=False)
    h, c = known.bias, known.span
    root = sqrt(log(20 * S * A * N / delta) / N)
    times, bottom = np.floor(N * P).astype(int), int(h.argmin())
    for s, a in np.ndindex(S, A):
        times[s, a, bottom] += N - times[s, a].sum()
        left = c * root - (P[s, a] - times[s, a] / N) @ h
        for top in np.argsort(-h):  # from the best state to the worst, as far as the event allows
            if h[top] > h[bottom]:
                moved = min(times[s, a, top], int(left * N / (h[top] - h[bottom])))
                times[s, a, top] -= moved
                times[s, a, bottom] += moved
                left -= moved * (h[top] - h[bottom]) / N
        assert 0 <= left <= c * root
    return MDP.from_dense(P, r), known, np.maximum(0.0, r - root), times.reshape(-1, S), delta


def check_optimism(model):
    """Assert T_c h* ≥ h* + g* at the edge of the event; ``model(counts, info, c, δ)`` returns p̄ and the raised rewards."""
    for seed in range(24):
        mdp, known, r_hat, times, delta = worst_of_the_event(seed)
        P, r = model(sample_counts(times, r_hat.ravel()), ProblemInfo.from_mdp(mdp), known.span, delta)
        Lh = (r + P @ known.bias).reshape(mdp.n_states, -1).max(axis=1)
        assert (np.minimum(Lh, Lh.min() + known.span) >= known.bias + known.gain - 1e-9).all(), seed


def capped(counts, info, c, delta):
    P, r = dense_model(BonusModel(c, delta), counts, info)
    return P, np.minimum(r, info.r_max)


def without_the_second_term(counts, info, c, delta):
    P, r = dense_model(BonusModel(c, delta), counts, info)
    return P, r - c / (counts.n + 1)


MUTANTS = {
    "a tenth": lambda counts, info, c, delta: dense_model(BonusModel(c, delta, 0.1), counts, info),
    "nine tenths": lambda counts, info, c, delta: dense_model(BonusModel(c, delta, 0.9), counts, info),
    "half of c": lambda counts, info, c, delta: dense_model(BonusModel(c / 2, delta), counts, info),
    "capped at r_max": capped,
    "no second term": without_the_second_term,
}


def optimistic_gain(seed, scale):
    """Return how far the gain of a plan of the agent, on the worst counts of the event, lies above g*."""
    mdp, known, r_hat, times, delta = worst_of_the_event(seed)
    seen = {(i, float(r_hat.flat[i]), int(s)): int(times[i, s]) for i, s in zip(*np.nonzero(times), strict=True)}
    learner = SCALPlus(known.span, delta, scale).start(ProblemInfo.from_mdp(mdp), 0)
    learner.t = int(times.sum())
    learner.begin_episode(Batch.from_dict(seen), 0)
    return learner.episode.gain_high - known.gain


def test_so_is_the_gain_of_its_plans():
    above = [optimistic_gain(seed, 1.0) for seed in range(24)]
    assert min(above) >= -1e-9
    assert min(above) < 0.05, "by little, in some of them"
    assert min(optimistic_gain(seed, 0.1) for seed in range(24)) < -0.01


# --- runs and refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", [SCALPlus(0.5, bonus_scale=0.1), SCALPlus(2.0, policy="greedy", warm_start=False)])
def test_all_ways_agree(agent):
    run, _ = assert_all_ways_agree(ragged_env(1), agent, 2000, 1)
    assert run.n_episodes[-1] > 10


def test_interpreted():
    assert_interpreted_agrees(ragged_env(1), SCALPlus(0.5), 200, 1)


def test_regret_is_small_once_bonuses_are():
    runs = [learn("three-state", SCALPlus(2.0, bonus_scale=0.1), horizon=10**6, seed=seed) for seed in range(3)]
    assert max(run.pseudo_regret[-1] for run in runs) < 0.02 * 10**6 * runs[0].meta["gain"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"span_bound": -1.0}, r"SCALPlus: span_bound must be a finite number ≥ 0; got -1\.0\. Give a bound on sp"),
        ({"span_bound": np.inf}, r"SCALPlus: span_bound must be a finite number ≥ 0; got inf"),
        ({"span_bound": 2.0, "delta": 1.0}, r"SCALPlus: delta must lie in \(0, 1\); got 1\.0\. Use 0\.05"),
        ({"span_bound": 2.0, "delta": "rsqrt"}, r"SCALPlus: delta must lie in \(0, 1\); got 'rsqrt'"),
        ({"span_bound": 2.0, "bonus_scale": 0.0}, r"SCALPlus: bonus_scale must be a finite number > 0; got 0\.0"),
        ({"span_bound": 2.0, "policy": "best"}, r"SCALPlus: policy must be mixture or greedy; got 'best'"),
        ({"span_bound": 2.0, "warm_start": "False"}, r"SCALPlus: warm_start must be true or false; got 'False'"),
    ],
)
def test_options(given, words):
    with pytest.raises(OptionError, match=words):
        SCALPlus(**given)


def test_names():
    assert agent_id(SCALPlus(2.0, bonus_scale=0.1)) == "scal-plus[span_bound=2,bonus_scale=0.1]"
    assert make_agent("scal-plus[span_bound=2,policy=greedy]") == SCALPlus(2.0, policy="greedy")
    with pytest.raises(OptionError, match=r"scal-plus: span_bound must be given"):
        make_agent("scal-plus")


def test_there_is_no_set():
    with pytest.raises(OptionError, match=r"audit needs the true model and an agent with confidence sets"):
        learn("three-state", SCALPlus(2.0), horizon=10, seed=0, audit=True)


def test_the_horizon_is_not_read():
    kept = Kept(SCALPlus(1.0))
    learn("three-state", kept, horizon=100, seed=0)
    assert not kept.learners[0].info.horizon_was_read
