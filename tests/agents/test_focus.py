"""FOCUS: its operator and bonus by hand, a plain version decision by decision, the ingredients of its guarantee, broken ones beside."""

from __future__ import annotations

import warnings
from decimal import Decimal, getcontext
from math import inf, log, log2, sqrt

import numpy as np
import pytest
from family_samples import Decision, assert_same_decisions, iterate, lowest

from spanrl import FOCUS, MDP, Env, ProblemInfo, analyse, check_agent, learn, make, make_agent, streams
from spanrl.agents.focus import VarianceBonus
from spanrl.agents.registry import agent_id
from spanrl.bench import garnet
from spanrl.errors import OptionError
from spanrl.kernels.bonus import bonus_values
from spanrl.kernels.layout import BONUS, Arrays, new_workspace
from spanrl.kernels.order import rank_states
from spanrl.models.counts import Counts
from ways import assert_all_ways_agree, assert_interpreted_agrees, ragged_env


def plain_value(p, x, y, v, gamma=1.0):
    """Return the value of a row without its reward, as the docstring of the kernel has it."""
    m = p @ v
    spread = sqrt(p @ (v - m) ** 2)
    return gamma * min(m + max(sqrt(x) * spread, y), v.max()) + (1 - gamma) * v[0]


def values(P, x, y, v, gamma=1.0):
    """Return the same of every row of P by the kernel."""
    n, S = P.shape
    pair, succ = np.nonzero(P)
    ptr = np.searchsorted(pair, np.arange(n + 1))
    row = [np.arange(n + 1), ptr, succ.astype(np.uint32), gamma * P[pair, succ], np.zeros(pair.size), x, y]
    for part in row:
        part.flags.writeable = False
    m, ws, q = Arrays(BONUS, *row), new_workspace(S, n, pair.size), np.empty(n)
    rank_states(1.0, v, ws)
    bonus_values(m, np.zeros(n), ws, np.arange(n), v, q)
    return q


@pytest.fixture(params=range(8))
def rows(request):
    """Return random rows, x, y, v and a number H ≥ sp(v) with y = x·H: the least that is monotone."""
    rng = np.random.default_rng(request.param)
    n, S = 40, 6
    P = rng.dirichlet(np.full(S, 0.4), n) * (rng.random((n, S)) < 0.7)
    P[P.sum(axis=1) == 0, 0] = 1.0
    P /= P.sum(axis=1, keepdims=True)
    v = rng.normal(size=S) * 10.0 ** rng.integers(-3, 4)
    x = 10.0 ** rng.uniform(-6, 1, n)
    return P, x, x * np.ptp(v), v


class TestOperator:
    @pytest.mark.parametrize("gamma", [1.0, 0.9])
    def test_formula(self, rows, gamma):
        P, x, y, v = rows
        wanted = [plain_value(p, *xy, v, gamma) for p, *xy in zip(P, x, y, strict=True)]
        np.testing.assert_allclose(values(P, x, y, v, gamma), wanted, rtol=1e-12, atol=1e-12 * np.abs(v).max())

    def test_never_seen_is_the_best_state(self):
        assert values(np.zeros((1, 3)), np.zeros(1), np.zeros(1), np.array([1.0, 4.0, 2.0])).tolist() == [4.0]

    def test_constants_pass_through(self, rows):
        P, x, y, v = rows
        np.testing.assert_allclose(
            values(P, x, y, v + 3.5), values(P, x, y, v) + 3.5, atol=1e-11 * np.abs(v).max() + 1e-12
        )

    def test_monotone_on_the_span(self, rows):
        """Where v and w have a span of at most H; so q(v) ≤ max v, and the operator clips and certifies like any other."""
        P, x, y, v = rows
        rng, H = np.random.default_rng(0), np.ptp(v)
        for _ in range(20):
            w = v + rng.random(v.size) * rng.choice([1e-6, 1.0]) * H
            w = np.minimum(w, w.min() + H)
            low = np.minimum(v, w)
            low = np.maximum(low, low.max() - H)
            high = np.maximum(low, w)
            assert np.ptp(high) <= H * (1 + 1e-12)
            assert (values(P, x, y, low) <= values(P, x, y, high) + 1e-12 * np.abs(v).max()).all()

    def test_not_monotone_with_a_smaller_range_term(self):
        """The reason for c₂ ≥ c₁²: with y = x·H/20 a better state makes a row worse."""
        P, x = np.array([[0.02, 0.98, 0.0]]), np.array([0.5])
        v, better = np.array([0.0, 1.0, 2.0]), np.array([0.1, 1.0, 2.0])
        assert values(P, x, 0.1 * x, v)[0] > values(P, x, 0.1 * x, better)[0] + 1e-3
        assert values(P, x, 2.0 * x, v)[0] <= values(P, x, 2.0 * x, better)[0]


INFO = ProblemInfo(3, 2, r_min=-1.0, r_max=2.0, horizon=1000)


def test_the_numbers_of_the_estimate_to_forty_digits():
    getcontext().prec = 40
    times = np.array([[0, 0, 0], [0, 3, 1], [5, 0, 0], [0, 0, 70_000], [2, 2, 0], [1, 0, 0]])
    n = times.sum(axis=1)
    mean, squares = np.array([0.0, 0.5, -1.0, 1.5, 0.25, 1.0]), np.array([0.0, 2.0, 0.0, 900.0, 1.0, 0.0])
    pair, succ = np.nonzero(times)
    ptr = np.searchsorted(pair, np.arange(n.size + 1))
    counts = Counts(n, mean, squares, ptr, succ.astype(np.uint32), times[pair, succ])
    rules = FOCUS(span_bound=2.5, delta=0.1).start(INFO, 0).rules
    sets = rules.estimate.sets(counts, 1, INFO)
    U = (Decimal(9 * 9 * 2 * 1000) / Decimal("0.1")).ln()
    assert rules.span_bound == 5.0
    assert sets.r_high[0] == 2.0
    for i in range(1, 6):
        N = int(n[i])
        assert sets.size[i] == pytest.approx(float(16 * U / N), rel=1e-14)
        assert sets.rest[i] == pytest.approx(float(32 * 5 * U / N), rel=1e-14)
        raised = Decimal(mean[i]) + (2 * Decimal(squares[i]) / N * U / N).sqrt() + 3 * 3 * U / N
        assert sets.r_high[i] == pytest.approx(min(2.0, float(raised)), rel=1e-14)
    row = slice(*ptr[1:3])
    assert sets.low[row].tolist() == [0.75, 0.25]


# --- decision by decision -------------------------------------------------------------------------------------------


def plain_focus(T, c1, c2, H, delta, discounted=False):
    """Return the decisions of FOCUS as its docstring has them, for rewards in [0, 1]."""
    gamma = 1 - 1 / T if discounted else 1.0

    def decide(counts, allowed, t, s, steps):
        N, (S, A) = counts.N, allowed.shape
        U = log(9 * S * S * A * T / delta)

        def q(v):
            out = np.full((S, A), -inf)
            for pair in zip(*np.nonzero(allowed), strict=True):
                n = N[pair]
                out[pair] = 1.0 + v.max()
                if n > 0:
                    row, y = counts.successors[pair] / n, c2 * H * U / n
                    r = min(1.0, counts.rewards[pair] / n + sqrt(2 * counts.squares[pair] / n * U / n) + 3 * U / n)
                    out[pair] = r + plain_value(row, c1 * c1 * U / n, y, v, gamma)
            return out

        v, _ = iterate(q, S, H, 1 / t)
        visits = 2.0 ** np.ceil(np.log2(N + 1)) - N
        best = lowest(q(v))
        return Decision(best, best, np.zeros(S), np.maximum(visits, 1))

    return decide


ENVS = {
    "riverswim": lambda: make("riverswim[variant=osband]"),
    **{f"random {k}": lambda k=k: Env.from_mdp(garnet(4, 2, 2, seed=k), "bernoulli") for k in range(2)},
}
WAYS = {"proved": {}, "sharp": {"c1": 0.2, "c2": 0.05}, "discounted": {"c1": 0.2, "c2": 0.05, "discounted": True}}


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("way", WAYS)
def test_a_plain_version_decides_alike(env, way):
    options = {"c1": 4.0, "c2": 32.0} | WAYS[way]
    agent = FOCUS(span_bound=3.0, warm_start=False, **options)
    assert_same_decisions(ENVS[env](), agent, plain_focus(600, H=6.0, delta=0.05, **options), 600, fewest=8)


@pytest.mark.parametrize("mutant", [{"c1": 2.0}, {"c2": 0.08}, {"H": 0.05}, {"delta": 1e-9}], ids=str)
def test_a_broken_plain_version_shows(mutant):
    agent = FOCUS(span_bound=3.0, c1=0.2, c2=0.05, warm_start=False)
    broken = plain_focus(3000, **({"c1": 0.2, "c2": 0.05, "H": 6.0, "delta": 0.05} | mutant))
    with pytest.raises(AssertionError):
        assert_same_decisions(ENVS["random 1"](), agent, broken, 3000, fewest=8)


# --- the ingredients of the guarantee -------------------------------------------------------------------------------


def fixed_point_of_the_discount(P, r, x, y, H, gamma):
    """Iterate V ← Clip_H max_a r + γ·min(p̂V + b, max V) itself, from 0."""
    V = np.zeros(P.shape[0])
    for _ in range(20_000):
        Q = np.array([[r[s, a] + plain_value(P[s, a], x, y, V, 1.0) for a in range(2)] for s in range(V.size)])
        Q = r + gamma * (Q - r)
        W = Q.max(axis=1)
        W = np.minimum(W, W.min() + H)
        if np.abs(W - V).max() < 1e-11:
            return V, Q
        V = W
    raise AssertionError("no fixed point")


def test_the_discounted_form_is_a_restart():
    """Its gain is (1 − γ)V(0), and its bias V − V(0)."""
    rng, gamma, H = np.random.default_rng(3), 0.98, 0.6
    P, r = rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2))
    V, _ = fixed_point_of_the_discount(P, r, 0.01, 0.01 * H, H, gamma)
    q = lambda v: r + np.array([[plain_value(P[s, a], 0.01, 0.01 * H, v, gamma) for a in range(2)] for s in range(3)])  # noqa: E731
    v, Lv = iterate(q, 3, H, 1e-12)
    np.testing.assert_allclose(v - v[0], V - V[0], atol=1e-9)
    step = np.minimum(Lv, Lv.min() + H) - v
    assert step.mean() == pytest.approx((1 - gamma) * V[0], abs=1e-9)


def check_optimism(factor):
    """Assert F h* ≥ h* + g* where |(p − p̂)h*| is as large as the bonus allows and r̂ raised is r: every plan promises at least g*."""
    worst = inf
    for seed in range(30):
        rng = np.random.default_rng(seed)
        S, A = 4, 2
        P, r = rng.dirichlet(np.full(S, 0.7), (S * A)), rng.random((S, A))
        known = analyse(MDP.from_dense(P.reshape(S, A, S), r), diameter=False)
        h, H, x = known.bias, 2 * known.span, 10.0 ** rng.uniform(-4, -2)
        y, worse = 2 * x * H, np.eye(S)[h.argmin()]
        shares = np.linspace(0, 1, 2001)[:, None, None]
        mixed = (1 - shares) * P + shares * worse  # [2001, S·A, S], ever worse
        m = mixed @ h
        spread = np.sqrt(np.maximum((mixed @ h**2) - m**2, 0.0))
        inside = np.abs(m - P @ h) <= np.maximum(sqrt(x) * spread, y)
        last = np.array([mixed[np.flatnonzero(inside[:, i])[-1], i] for i in range(S * A)])
        q = r + values(last, np.full(S * A, factor**2 * x), np.full(S * A, factor * y), h).reshape(S, A)
        step = np.minimum(q.max(axis=1), q.max(axis=1).min() + H) - h
        worst = min(worst, step.min() - known.gain)
    assert worst >= -1e-9


def bonus_fails(factor, n_runs=400, n=2000):
    """Return in how many runs |(p̂ − p)h| exceeds the bonus, or the mean reward the raised one, at some N ≤ n.

    S = A = 1, δ = 0.5 and T = n; the bonus is scaled by a factor, and h has the span 1 = H/2.
    """
    rng, N, U = np.random.default_rng(7), np.arange(1, n + 1), log(9 * n / 0.5)
    p, h = np.array([0.2, 0.5, 0.3]), np.array([0.0, 1.0, 0.4])
    seen = rng.choice(3, p=p, size=(n_runs, n))
    m = np.cumsum(h[seen], axis=1) / N
    variance = np.maximum(np.cumsum(h[seen] ** 2, axis=1) / N - m**2, 0.0)
    bonus = np.maximum(4 * np.sqrt(variance * U / N), 32 * 2 * U / N)
    paid = rng.random((n_runs, n)) < 0.3
    mean = np.cumsum(paid, axis=1) / N
    raised = mean + factor * (np.sqrt(2 * mean * (1 - mean) * U / N) + 3 * U / N)
    wrong = (np.abs(m - p @ h) > factor * bonus) | (raised < 0.3)
    return int(wrong.any(axis=1).sum())


@pytest.mark.parametrize("discounted", [False, True])
def test_brackets_are_those_of_the_operator(discounted):
    """Every plan of a run, warm starts included, recomputed by hand; rewards in [−1, 2]."""
    env, looked = ragged_env(3), 0
    agent = FOCUS(span_bound=0.8, c1=0.2, c2=0.05, discounted=discounted)

    def look(learner):
        nonlocal looked
        counts, info, H = learner.counts, learner.info, 1.6
        S, A, v, size = int(info.n_states), int(info.max_actions), learner.bias, info.r_max - info.r_min
        U, gamma, q = log(9 * S * S * A * 1500 / 0.05), 1 - 1 / 1500 if discounted else 1.0, np.full(info.n_pairs, -inf)
        for i, n in enumerate(counts.n):
            q[i] = info.r_max + v.max()
            if n:
                row = slice(*counts.succ_ptr[i : i + 2])
                p = np.zeros(S)
                p[counts.succ[row]] = counts.times[row] / n
                raised = counts.r_mean[i] + sqrt(2 * counts.r_sq[i] / n * U / n) + 3 * size * U / n
                q[i] = min(info.r_max, raised) + plain_value(p, 0.04 * U / n, 0.05 * H * U / n, v, gamma)
        Lv = np.maximum.reduceat(q, info.pair_ptr[:-1])
        step = np.minimum(Lv, Lv.min() + H) - v
        assert learner.plan.gain_bounds == pytest.approx((step.min(), step.max()), abs=1e-9)
        assert np.ptp(step) <= size / learner.episode.start + 1e-9
        assert np.ptp(v) <= H + 1e-9
        assert (q[learner.plan.pairs[::2]] >= Lv - 1e-9).all(), "greedy before it is clipped"
        looked += 1

    env_rng, agent_rng = streams(3)
    learner, s = agent.start(ProblemInfo.from_mdp(env.mdp, 1500), agent_rng), env.reset(env_rng)
    learner.on_episode.append(look)
    for _ in range(1500):
        r, following = env.step(s, learner.act(s), env_rng)
        learner.observe(r, following)
        s = following
    assert looked > 20


def test_the_gain_of_plans_is_optimistic():
    run = learn("riverswim[variant=osband]", FOCUS(span_bound=7, c1=1, c2=1), horizon=50_000, seed=0)
    gain = analyse(make("riverswim[variant=osband]").mdp, diameter=False).gain
    assert (run.episodes["gain"] + 1 / np.sqrt(run.episodes["start"]) >= gain).all()


def check_count(agent):
    """Assert that there are no more episodes than powers of two that the visits of four pairs can reach."""
    run = learn("three-state", agent, horizon=10**5, seed=0)
    assert run.episodes["start"].size <= 4 * (1 + log2(10**5))


def test_the_prior_pays_on_the_pair_of_its_paper():
    """Without a prior on the span the second model costs more: the price that the pair is made to show."""
    assert learn("focus-pair", FOCUS(span_bound=10, c1=1, c2=1), horizon=10**5, seed=0).pseudo_regret[-1] < 5000, (
        "the first is learnt"
    )
    env = make("focus-pair[model=returns]")
    known, unknown = (
        np.mean(
            [learn(env, FOCUS(span_bound=c, c1=1, c2=1), horizon=10**5, seed=k).pseudo_regret[-1] for k in range(3)]
        )
        for c in (1.0, inf)
    )
    assert known < 0.5 * unknown


# --- like every agent -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent", [FOCUS(span_bound=1.0, c1=0.2, c2=0.05), FOCUS(span_bound=1.0, c1=0.2, c2=0.05, discounted=True)]
)
def test_all_ways_agree(agent):
    assert_all_ways_agree(ragged_env(1), agent, 2000, 1)
    assert_interpreted_agrees(ragged_env(1), agent, 300, 1)


def test_check_agent():
    check_agent(FOCUS(span_bound=2.0))


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"span_bound": 0}, "FOCUS: span_bound must be a number > 0; got 0"),
            ({"c1": 0}, "FOCUS: c1 must be a finite number > 0; got 0"),
            ({"c1": 2, "c2": 3}, "FOCUS: c2 must be a finite number ≥ c1², or plans have no certificate; got 3"),
            ({"c2": inf}, "FOCUS: c2 must be a finite number"),
            ({"delta": "rsqrt"}, "FOCUS: delta must be a number; got 'rsqrt'"),
            ({"delta": 1.0}, "FOCUS: delta"),
            ({"discounted": 1}, "FOCUS: discounted"),
        ],
    )
    def test_refused(self, options, words):
        with pytest.raises(OptionError) as caught:
            FOCUS(**options)
        assert words in str(caught.value)

    def test_an_open_horizon_is_refused(self):
        with pytest.raises(
            OptionError, match=r"FOCUS: must know the number of steps; .* Give ProblemInfo\(…, horizon=T\)"
        ):
            FOCUS().start(ProblemInfo(3, 2), 0)

    def test_a_short_horizon_without_a_prior_warns(self):
        with pytest.warns(UserWarning, match=r"FOCUS: with a horizon of 53 and no span_bound, H = .* is below 1"):
            FOCUS().start(ProblemInfo(3, 2, horizon=53), 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            FOCUS().start(ProblemInfo(3, 2, horizon=54), 0)
            FOCUS(span_bound=0.1).start(ProblemInfo(3, 2, horizon=1), 0)

    def test_without_a_prior_the_span_grows_with_the_horizon(self):
        rules = FOCUS().start(ProblemInfo(3, 2, r_min=-1, r_max=3, horizon=5400), 0).rules
        assert rules.span_bound == pytest.approx(4 * sqrt(5400 / (27 * 2)))
        assert isinstance(rules.estimate, VarianceBonus)

    def test_text_form(self):
        text = "focus[span_bound=2,c1=1,c2=1,discounted=true]"
        assert agent_id(make_agent(text)) == text
