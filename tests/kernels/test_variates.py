"""Variates have the laws that scipy.stats knows, at every scale of the parameters, and are a function of the words.

Level of the statistical tests: 1e-3 each, seeds fixed. Kolmogorov and Smirnov's thresholds are exact; each test is also put to what a
mistake would give, which it must reject at the same sample size.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, gammaln, polygamma

from spanrl.kernels.jit import interpreted, kernel
from spanrl.kernels.variates import _WIDTH, _is_accepted, _is_below, beta, dirichlet_row, log_gamma, normal, uniform
from spanrl.seeding import get_state, streams

LEVEL = 1e-3
N = 50_000
UNIFORM, NORMAL, LOG_GAMMA, BETA = range(4)
SHAPES = [1e-3, 1e-2, 0.5, 0.999, 1.0, 1.5, 10.0, 1e4, 1e12]
BETAS = [(0.5, 0.5), (1.0, 1.0), (1.0, 4.0), (0.5, 3.0), (3.0, 7.0), (1e5, 2e5), (1e-3, 5.0), (5.0, 1e-3), (1e-3, 1e-3)]
ROWS = {  # prior, n_states, {state: times}
    "uniform prior": (1.0, 6, {1: 3, 4: 40}),
    "a thousand steps": (1.0, 4, {0: 700, 2: 1, 3: 299}),
    "Jeffreys": (0.5, 5, {2: 2}),
    "small prior": (0.05, 4, {3: 1, 0: 2}),
    "nothing seen": (1.0, 3, {}),
}


@kernel
def fill(which, a, b, words, out):
    """Fill ``out`` with variates: one loop for all, since every one would be compiled."""
    for i in range(out.size):
        if which == UNIFORM:
            out[i] = uniform(words)
        elif which == NORMAL:
            out[i] = normal(words)
        elif which == LOG_GAMMA:
            out[i] = log_gamma(a, words)
        else:
            out[i] = beta(a, b, words)


@kernel
def fill_rows(prior, succ, times, words, out):
    for i in range(out.shape[0]):
        dirichlet_row(prior, succ, times, words, out[i])


def drawn(seed, which, a=1.0, b=1.0, n=N):
    out = np.full(n, np.nan)
    fill(which, a, b, get_state(streams(seed)[1]), out)
    return out


def drawn_rows(seed, prior, n_states, seen, n=N):
    succ, times = np.array(list(seen), dtype=np.uint32), np.array(list(seen.values()), dtype=np.int64)
    out = np.full((n, n_states), np.nan)
    fill_rows(prior, succ, times, get_state(streams(seed)[1]), out)
    return out


@cache
def threshold(n):
    return stats.kstwo.isf(LEVEL, n)


def distance(x, cdf, least=-np.inf, most=np.inf):
    """Return sup |F_n − F| over [least, most]: at most Kolmogorov's statistic, for variates that are cut off beyond."""
    x = np.sort(x)
    inside = np.flatnonzero((x >= least) & (x <= most))
    F = cdf(x[inside])
    return max((F - inside / x.size).max(), ((inside + 1) / x.size - F).max())


def fits(x, cdf, **ends):
    return distance(x, cdf, **ends) <= threshold(x.size)


def log_gamma_cdf(shape):
    """Return the law of the logarithm of a Gamma(shape); far down P = e^(shape·x) / Γ(shape + 1), where e^x need not be a double."""
    return lambda x: np.where(
        x < -40.0, np.exp(shape * np.minimum(x, -40.0) - gammaln(shape + 1)), stats.gamma(shape).cdf(np.exp(x))
    )


class TestUniform:
    def test_law(self):
        assert fits(drawn(100, UNIFORM), stats.uniform.cdf)

    @pytest.mark.parametrize(("word", "expected"), [(0, 2.0**-53), (2**64 - 1, 1 - 2.0**-53)])
    def test_ends(self, word, expected):
        """The first word of SFC64 is a + b + w."""
        words, out = np.array([word, 0, 7, 0], dtype=np.uint64), np.empty(1)
        fill(UNIFORM, 1.0, 1.0, words, out)
        assert out[0] == expected

    def test_takes_one_word(self):
        rng, words, out = streams(101)[1], get_state(streams(101)[1]), np.empty(1000)
        fill(UNIFORM, 1.0, 1.0, words, out)
        np.testing.assert_allclose(out, rng.random(1000), rtol=0, atol=2.0**-53)
        np.testing.assert_array_equal(words, get_state(rng))


class TestNormal:
    def test_law(self):
        x = drawn(102, NORMAL)
        assert fits(x, stats.norm.cdf)
        assert not fits(1.05 * x, stats.norm.cdf)
        assert not fits(x + 0.05, stats.norm.cdf)

    def test_tails(self):
        """The number beyond 3 is binomial."""
        for x in (drawn(103, NORMAL, n=10**6), -drawn(104, NORMAL, n=10**6)):
            assert stats.binomtest(int((x > 3).sum()), x.size, stats.norm.sf(3)).pvalue >= LEVEL / 2

    def test_neighbours_are_independent(self):
        x = drawn(105, NORMAL, n=10**5)
        for y in (x, x * x):
            assert abs(stats.pearsonr(y[1:], y[:-1]).statistic) <= stats.norm.isf(LEVEL / 4) / np.sqrt(x.size)

    def test_ellipses_lie_inside_and_around_the_region(self):
        """v² ≤ −4u² ln u, by Decimal, close to the border on both sides and over the whole square."""
        is_below = _is_below.py_func
        for u in np.linspace(0.001, 0.999, 200):
            with localcontext(prec=40):
                border = float((-4 * Decimal(u) ** 2 * Decimal(u).ln()).sqrt())
            for v in (border * (1 - 1e-12), border * 0.99, border * 0.5, 0.0):
                assert is_below(u, v)
                assert is_below(u, -v)
            for v in (border * (1 + 1e-12), border * 1.01, 0.9):
                assert not is_below(u, v)
                assert not is_below(u, -v)
            assert 2 * border <= _WIDTH


class TestGamma:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_law(self, shape):
        x, cdf = drawn(110 + SHAPES.index(shape), LOG_GAMMA, shape), log_gamma_cdf(shape)
        assert np.isfinite(x).all()
        assert fits(x, cdf)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_a_shape_off_by_five_percent_would_show(self, shape):
        for wrong in (0.95, 1.05):
            assert not fits(drawn(120 + SHAPES.index(shape), LOG_GAMMA, wrong * shape), log_gamma_cdf(shape))

    @pytest.mark.parametrize("shape", SHAPES[:-1])
    def test_mean(self, shape):
        """The logarithm has mean ψ(shape) and variance ψ′(shape); a shape off by a hundredth would show."""
        n = 400_000
        limit = stats.norm.isf(LEVEL / 2) * np.sqrt(polygamma(1, shape) / n)
        for factor, right in ((1.0, True), (0.99, False), (1.01, False)):
            x = drawn(200 + SHAPES.index(shape), LOG_GAMMA, factor * shape, n=n)
            assert (abs(x.mean() - digamma(shape)) <= limit) == right

    @pytest.mark.parametrize("shape", [1e-3, 1e-2, 0.5])
    def test_a_forgotten_exponent_would_show(self, shape):
        x, log_u = drawn(130, LOG_GAMMA, shape + 1), np.log(drawn(131, UNIFORM))
        assert fits(x + log_u / shape, log_gamma_cdf(shape))
        assert not fits(x + log_u, log_gamma_cdf(shape))
        assert not fits(x, log_gamma_cdf(shape))

    @pytest.mark.parametrize("shape", [1.0, 1.0 + 1e-12])
    def test_the_exponential_is_the_limit(self, shape):
        """The law of shape 1 has a way of its own; the general way gives the same there."""
        assert fits(np.exp(drawn(132, LOG_GAMMA, shape)), stats.expon.cdf)

    def test_the_law_used_here_is_one(self):
        """For small shapes the tests use the leading term of the distribution function: the two agree where they meet."""
        for shape in (1e-3, 1e-2, 0.1):
            cdf = log_gamma_cdf(shape)
            low, high = np.array([-40 - 1e-9, -40 + 1e-9])
            assert cdf(low) == pytest.approx(cdf(high), rel=1e-9)
            assert cdf(low) == pytest.approx(stats.gamma(shape).cdf(np.exp(low)), rel=1e-12)

    @pytest.mark.parametrize("word", [0, 2**64 - 1])
    def test_is_finite_at_the_ends_of_the_words(self, word):
        for shape in (1e-300, 1e-3, 1.0, 1e12):
            words, out = np.array([word, 0, 7, 0], dtype=np.uint64), np.empty(1)
            fill(LOG_GAMMA, shape, 1.0, words, out)
            assert np.isfinite(out[0])


class TestAcceptance:
    @pytest.mark.parametrize("d", [2 / 3, 1.0, 2.5, 30.0, 1e4, 1e8, 1e12])
    def test_is_the_rule_of_marsaglia_and_tsang(self, d):
        """The rule ln u < x²/2 + d − dv + d·ln v by Decimal, on both sides of its border; the squeeze never accepts more."""
        accepted, n = _is_accepted.py_func, 0
        for x in np.linspace(-6.0, 6.0, 121):
            t = float(x / np.sqrt(9 * d))
            if t <= -1:
                continue
            with localcontext(prec=50):
                v = (1 + Decimal(t)) ** 3
                border = float(Decimal(float(x)) ** 2 / 2 + Decimal(d) * (1 - v + v.ln()))
            rounding = 9 * 2.0**-52 * abs(d * t)  # two terms of size 3t, each right to 1.5 units in the last place
            for gap in (rounding + 1e-13, 1e-3, 0.1):
                if border - gap < -30:
                    continue
                assert accepted(d, x, t, np.exp(border - gap) * (1 - 1e-15))
                if border + gap < 0:
                    assert not accepted(d, x, t, np.exp(border + gap) * (1 + 1e-15))
                    n += 1
        assert n > 20 or d > 1e8, "at 1e12 all but 1e-9 of the points are accepted"


class TestBeta:
    @pytest.mark.parametrize("shapes", BETAS)
    def test_law(self, shapes):
        x = drawn(140 + BETAS.index(shapes), BETA, *shapes)
        assert (x > 0).all()
        assert (x < 1).all()
        assert fits(x, stats.beta(*shapes).cdf, **self.ends(*shapes))

    @pytest.mark.parametrize("shapes", BETAS)
    def test_shapes_off_by_five_percent_would_show(self, shapes):
        """Of Beta(5, 1e-3), 2 % are told apart from 1: a factor of 3 shows."""
        (a, b), wrong = shapes, 3.0 if shapes == (5.0, 1e-3) else 1.05
        x = drawn(150 + BETAS.index(shapes), BETA, wrong * a, b / wrong)
        assert not fits(x, stats.beta(a, b).cdf, **self.ends(a, b))

    @staticmethod
    def ends(a, b):
        """Return where doubles are dense enough for the law: with small shapes, many variates are nearer to 0 or 1 than any double."""
        return {"least": 1e-300 if a < 0.1 else 0.0, "most": 1 - 1e-9 if b < 0.1 else 1.0}

    def test_is_a_number_for_tiny_and_huge_shapes(self):
        sizes = [1e-300, 1e-8, 1e-3, 0.5, 1.0, 3.0, 1e6, 1e12]
        for a in sizes:
            for b in sizes:
                x = drawn(160, BETA, a, b, n=50)
                assert (x > 0).all(), (a, b)
                assert (x < 1).all(), (a, b)


class TestDirichlet:
    @pytest.mark.parametrize("case", ROWS)
    def test_is_a_distribution(self, case):
        p = drawn_rows(170, *ROWS[case])
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-15)

    @pytest.mark.parametrize("case", ROWS)
    def test_marginals_are_betas(self, case):
        """The level of the case is shared by its states."""
        prior, n_states, seen = ROWS[case]
        alpha = prior + np.array([seen.get(s, 0) for s in range(n_states)])
        p = drawn_rows(171 + list(ROWS).index(case), *ROWS[case])
        limit = stats.kstwo.isf(LEVEL / n_states, N)
        for s in range(n_states):
            law = stats.beta(alpha[s], alpha.sum() - alpha[s])
            assert distance(p[:, s], law.cdf, **TestBeta.ends(*law.args)) <= limit
            other = stats.beta(1.05 * alpha[s], alpha.sum() - alpha[s])
            assert distance(p[:, s], other.cdf, **TestBeta.ends(*other.args)) > limit

    @pytest.mark.parametrize("case", ROWS)
    def test_covariances(self, case):
        """Cov(p_i, p_j) = −α_i·α_j / (α₀²·(α₀ + 1)), and variances: normal limits for the mean of 50 000 products."""
        prior, n_states, seen = ROWS[case]
        alpha = prior + np.array([seen.get(s, 0) for s in range(n_states)])
        mean, total = alpha / alpha.sum(), alpha.sum()
        p = drawn_rows(180 + list(ROWS).index(case), *ROWS[case]) - mean
        pairs = [*combinations(range(n_states), 2), *((s, s) for s in range(n_states))]
        limit, shown = stats.norm.isf(LEVEL / 2 / len(pairs)), 0
        for i, j in pairs:
            product = p[:, i] * p[:, j]
            wanted = (mean[i] * (i == j) - mean[i] * mean[j]) / (total + 1)
            error = product.std() / np.sqrt(N)
            assert abs(product.mean() - wanted) <= limit * error
            shown += i != j and abs(product.mean()) > limit * error
        assert shown > 0, "independent entries would show"

    @pytest.mark.parametrize("prior", [1.0, 0.5])
    def test_the_order_of_the_list_does_not_matter(self, prior):
        one, other = (drawn_rows(190, prior, 5, seen, n=20) for seen in ({3: 2, 1: 9, 4: 0}, {1: 9, 3: 2}))
        np.testing.assert_array_equal(one, other)

    @pytest.mark.parametrize("prior", [1e-300, 1e-3, 1.0, 1e12])
    def test_extreme_parameters(self, prior):
        for n_states in (1, 2, 300):
            p = drawn_rows(191, prior, n_states, {0: 10**12}, n=20)
            assert (p >= 0).all()
            np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-13)
            assert (drawn_rows(192, prior, n_states, {}, n=20).max(axis=1) > 0).all()


class TestWords:
    @pytest.mark.parametrize("which", [UNIFORM, NORMAL, LOG_GAMMA, BETA])
    def test_interpreted_variates_equal_the_compiled_ones(self, which):
        for a, b in ((1.0, 1.0), (0.01, 0.5), (2.5, 1e6), (1e12, 0.3)):
            words, plain_words = get_state(streams(195)[1]), get_state(streams(195)[1])
            out, plain = np.empty(200), np.empty(200)
            fill(which, a, b, words, out)
            with interpreted():
                fill(which, a, b, plain_words, plain)
            assert (out.tobytes(), words.tobytes()) == (plain.tobytes(), plain_words.tobytes())

    @pytest.mark.parametrize("case", ROWS)
    def test_interpreted_rows_equal_the_compiled_ones(self, case):
        out = drawn_rows(196, *ROWS[case], n=30)
        with interpreted():
            plain = drawn_rows(196, *ROWS[case], n=30)
        assert out.tobytes() == plain.tobytes()

    @pytest.mark.parametrize("which", [UNIFORM, NORMAL, LOG_GAMMA, BETA])
    def test_the_words_alone_decide(self, which):
        """One loop of 100 is two of 50: nothing is kept but in the words, which are those of numpy's stream."""
        out, words, rng = np.empty(100), get_state(streams(197)[1]), streams(197)[1]
        fill(which, 0.5, 2.0, words, out[:50])
        assert not np.array_equal(words, get_state(rng))
        fill(which, 0.5, 2.0, words, out[50:])
        np.testing.assert_array_equal(out, drawn(197, which, 0.5, 2.0, n=100))
        rng.bit_generator.random_raw(int(words[3] - get_state(rng)[3]))  # the last word of the state counts
        np.testing.assert_array_equal(words, get_state(rng))
