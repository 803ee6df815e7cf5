"""The parts of IMED-RL: K_inf against closed forms and other maximisers, outcomes against a plain list, the solve against ``solve``."""

from __future__ import annotations

from collections import Counter
from math import inf, log

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from spanrl import MDP, solve
from spanrl.kernels.imed import Experience, count_outcome, experience, k_inf, memory_sizes, solve_skeleton
from spanrl.kernels.jit import interpreted


def by_scipy(x, times, mu, top):
    """Maximise the mean of the logarithms over λ with scipy's bounded search, and compare with the ends."""
    p, end = np.asarray(times) / np.sum(times), 1 / (top - mu)
    with np.errstate(divide="ignore"):
        found = minimize_scalar(
            lambda z: -p @ np.log(np.maximum(1 - (x - mu) * z, 0)),
            bounds=(0, end),
            method="bounded",
            options={"xatol": 1e-13 * end},
        )
        at_end = p @ np.log(np.maximum(1 - (x - mu) * end, 0))
    return max(-found.fun, at_end, 0.0)


def kl(p, q):
    """Return the divergence of two Bernoulli laws."""
    return sum(a * log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def random_laws():
    rng = np.random.default_rng(0)
    for _ in range(200):
        m, scale, top = int(rng.integers(1, 9)), 10.0 ** rng.uniform(-3, 3), rng.uniform(-2, 2)
        x = top - scale * rng.random(m) ** 3
        x[0] = top if m > 1 and rng.random() < 0.3 else x[0]
        times = rng.integers(1, 10 ** int(rng.integers(1, 5)), size=m).astype(float)
        mean = times @ x / times.sum()
        yield x, times, mean + (top - mean) * rng.choice([1e-3, 0.1, 0.5, 0.9, 1 - 1e-6]), top


NASTY = {
    "one atom": ([0.2], [3], 0.5, 1.0),
    "one atom, just above it": ([0.2], [1], 0.2 + 1e-9, 1.0),
    "mu just below the top": ([0.2, 0.6], [5, 1], 1 - 1e-12, 1.0),
    "an atom at the top": ([0.0, 1.0], [9, 1], 0.3, 1.0),
    "nearly all at the top": ([0.0, 1.0], [1, 10**6], 1 - 1e-7, 1.0),
    "hardly any at the top": ([0.0, 1.0], [10**6, 1], 0.9, 1.0),
    "a huge bias": ([-1e6, -1e6 + 1, 0.0], [5, 5, 1], -10.0, 1.0),
    "far below": ([-1e12, 0.5], [1, 1], 0.9, 1.0),
    "all alike": ([0.3, 0.3, 0.3], [1, 2, 3], 0.4, 1.0),
    "hardly below mu": ([0.2, 0.8], [5, 5], 0.5 + 1e-6, 1.0),
}


class TestKInf:
    def test_against_another_maximiser(self):
        """Scipy's search is the less precise one: it may miss the supremum, by 1e-9 here, but never exceed it."""
        found = np.array([(k_inf(*law), by_scipy(*law)) for law in random_laws()])
        assert (found[:, 0] > 0).all()
        assert (found[:, 0] >= found[:, 1] - 1e-13 * (1 + found[:, 1])).all()
        np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("name", NASTY)
    def test_nasty_laws(self, name):
        x, times, mu, top = NASTY[name]
        x, times = np.array(x), np.array(times, dtype=float)
        found = k_inf(x, times, mu, top)
        assert found == pytest.approx(by_scipy(x, times, mu, top), rel=1e-8, abs=1e-12)
        with interpreted():
            assert k_inf(x, times, mu, top) == found

    @pytest.mark.parametrize("q", [0.3, 0.5, 0.999999])
    @pytest.mark.parametrize("n", [0, 1, 25])
    def test_bernoulli_laws_have_a_closed_form(self, n, q):
        """K_inf = kl(p, q), also on another scale: X in {a, a + b}, mean a + bq."""
        for a, b in ((0.0, 1.0), (-7.0, 3.0)):
            x, times = np.array([a, a + b]), np.array([100.0 - n, n])
            assert k_inf(x[: 1 + (n > 0)], times[: 1 + (n > 0)], a + b * q, a + b) == pytest.approx(
                kl(n / 100, q), rel=1e-10
            )

    def test_a_single_value_moves_to_the_top(self):
        """Mass 1 − (M − μ)/(M − x) must move, and costs ln of what is left."""
        assert k_inf(np.array([-2.0]), np.array([4.0]), 0.5, 1.0) == pytest.approx(log(3 / 0.5), rel=1e-12)

    def test_its_ends(self):
        x, times = np.array([0.2, 0.6]), np.array([1.0, 1.0])
        assert k_inf(x, times, 0.4, 1.0) == 0 == k_inf(x, times, -5.0, 1.0), "the mean is reached"
        assert k_inf(x, times, 1.0, 1.0) == inf == k_inf(x, times, 1.0 + 1e-9, 1.0), "and cannot be"
        assert k_inf(np.ones(1), times[:1], 1.0, 1.0) == 0

    def test_wrong_formulas_are_noticed(self):
        """ln(M − (X − μ)λ), as a public program has it, and the sup without its upper end."""
        x, times, mu, top = np.array([0.1, 0.4]), np.array([3.0, 1.0]), 0.9, 1.5
        wrong = by_scipy(x, times, mu, top) + log(top)
        assert k_inf(x, times, mu, top) == pytest.approx(by_scipy(x, times, mu, top), rel=1e-9)
        assert abs(wrong - k_inf(x, times, mu, top)) > 0.1
        assert by_scipy(x, times, mu, top) < by_scipy(x, times, mu, top - 0.3) - 0.05, "M matters"


def new_experience(pair_ptr, room) -> Experience:
    S, n_pairs = len(pair_ptr) - 1, pair_ptr[-1]
    values, visits = memory_sizes(S, n_pairs, room)
    return experience.py_func(np.zeros(values), np.zeros(visits, dtype=np.int64), S, n_pairs, room)


def outcomes(seen, room, pair):
    """Return {(successor, reward): times} of a pair."""
    here = slice(pair * (room + 1), pair * (room + 1) + seen.listed[pair])
    return dict(
        zip(zip(seen.succ[here].tolist(), seen.reward[here].tolist(), strict=True), seen.times[here], strict=True)
    )


class TestOutcomes:
    def test_arrays_do_not_overlap(self):
        seen = new_experience([0, 2, 5], 4)
        for k, array in enumerate(seen):
            array[:] = k + 1
        assert [set(array.tolist()) for array in seen] == [{k + 1} for k in range(len(seen))]
        assert [array.size for array in seen] == [5, 5, 25, 25, 25, 5, 2, 2, 2, 5, 1]

    def test_distinct_outcomes_are_counted(self):
        rng, room, seen = np.random.default_rng(1), 12, new_experience([0, 1, 3], 12)
        wanted = [Counter() for _ in range(3)]
        for _ in range(500):
            pair, reward, succ = int(rng.integers(3)), float(rng.choice([0.0, 0.25, 0.5, 1.0])), int(rng.integers(2))
            count_outcome(seen, room, pair, reward, succ)
            wanted[pair][succ, reward] += 1
        for pair in range(3):
            assert outcomes(seen, room, pair) == wanted[pair]
            assert list(outcomes(seen, room, pair)) == sorted(wanted[pair])
            assert seen.n[pair] == sum(wanted[pair].values())
            assert seen.paid[pair] == sum(r * k for (_, r), k in wanted[pair].items())

    @pytest.mark.parametrize("room", [3, 4, 20])
    def test_beyond_the_room_successors_and_means_stay_exact(self, room):
        """Also where each of three successors has a single place left."""
        rng, seen, history = np.random.default_rng(2), new_experience([0, 1, 2, 3], room), []
        for k in range(400):
            history.append((0 if k < 200 else int(rng.integers(3)), float(rng.random())))
            count_outcome(seen, room, 0, history[-1][1], history[-1][0])
            kept = outcomes(seen, room, 0)
            assert len(kept) <= room
            assert list(kept) == sorted(kept)
        for s in range(3):
            rewards = [r for succ, r in history if succ == s]
            assert sum(k for (succ, _), k in kept.items() if succ == s) == len(rewards)
            assert sum(r * k for (succ, r), k in kept.items() if succ == s) == pytest.approx(sum(rewards), rel=1e-12)

    def test_the_nearest_become_one(self):
        seen = new_experience([0, 1, 2], 3)
        for reward, succ in ((0.0, 0), (0.5, 0), (0.5, 0), (0.6, 1), (0.53, 0)):
            count_outcome(seen, 3, 0, reward, succ)
        kept = [(succ, reward, k) for (succ, reward), k in outcomes(seen, 3, 0).items()]
        assert kept == [(0, 0.0, 1), (0, pytest.approx(0.51), 3), (1, 0.6, 1)]

    def test_interpreted(self):
        rng, drawn = np.random.default_rng(3), []
        seen, slow = new_experience([0, 1, 2], 5), new_experience([0, 1, 2], 5)
        for _ in range(100):
            drawn.append((float(rng.random()), int(rng.integers(2))))
            count_outcome(seen, 5, 0, *drawn[-1])
        with interpreted():
            for reward, succ in drawn:
                count_outcome(slow, 5, 0, reward, succ)
        assert [a.tobytes() for a in slow] == [a.tobytes() for a in seen]


def random_experience(seed, S=4, A=3, room=6):
    """Return pair_ptr and what some hundred random steps leave, with pairs outside the skeleton and one never played."""
    rng, ptr = np.random.default_rng(seed), np.arange(0, S * A + 1, A)
    seen, P = new_experience(ptr, room), rng.dirichlet(np.full(S, 0.5), size=S * A)
    for i in range(S * A):
        for _ in range(int(rng.choice([1, 3, 30, 300])) if i else 0):
            count_outcome(seen, room, i, float(rng.integers(3)) / 2, int(rng.choice(S, p=P[i])))
    seen.enough[:] = np.log(np.maximum(seen.n.reshape(S, A).max(axis=1), 1)) ** 2
    return ptr, seen


def empirical_model(seen, S, A, room, r_max=1.0, exponent=2):
    """Return the MDP of the skeleton, with one pseudo-observation per pair."""
    n = seen.n.reshape(S, A)
    P, r = np.full((S, A, S), 1 / S), np.full((S, A), r_max)
    for i in range(S * A):
        for (succ, reward), k in outcomes(seen, room, i).items():
            P[i // A, i % A, succ] += k
            r[i // A, i % A] += k * reward
    available = n >= np.log(np.maximum(n.max(axis=1), 1))[:, None] ** exponent
    return MDP.from_dense(P / (n + 1)[..., None], r / (n + 1), available=available)


class TestSolve:
    @pytest.mark.parametrize("seed", range(6))
    def test_the_skeleton_is_solved(self, seed):
        S, A, room = 4, 3, 6
        ptr, seen = random_experience(seed, S, A, room)
        low, high = solve_skeleton(ptr, seen, room, 1.0, 1e-10)
        model = empirical_model(seen, S, A, room)
        assert 0 < model.n_pairs < S * A, "some pairs are outside"
        wanted = solve(model, tol=1e-11)
        assert high - low <= 1e-10
        assert low - 1e-11 <= wanted.gain <= high + 1e-11
        np.testing.assert_allclose(seen.phi, wanted.bias - wanted.bias.max(), rtol=0, atol=1e-7)
        assert seen.phi.max() == 0

    def test_another_skeleton_is_another_model(self):
        """N ≥ 1, N ≥ ln(max N): the gains differ, or the test above could not see which is solved."""
        for exponent in (0, 1):
            gaps = []
            for seed in range(6):
                _, seen = random_experience(seed)
                gains = [solve(empirical_model(seen, 4, 3, 6, exponent=e), tol=1e-9).gain for e in (2, exponent)]
                gaps.append(abs(gains[0] - gains[1]))
            assert max(gaps) > 1e-3

    def test_it_stops_at_the_tolerance_and_resumes_there(self):
        """A sweep narrows the bracket; one that is narrow enough costs a single sweep."""
        ptr, seen = random_experience(0)
        widths, tols = [], [1.0, 1e-2, 1e-4, 1e-4]
        for tol in tols:
            low, high = solve_skeleton(ptr, seen, 6, 1.0, tol)
            widths.append(high - low)
        assert (np.array(widths) <= tols).all()
        assert widths[0] > 1e-2, "not solved further than asked"
        assert 0 < widths[3] < widths[2], "one sweep more, from where the last solve ended"

    def test_a_periodic_model_converges(self):
        """Two states that alternate, but for the pseudo-observation of weight 1e-6."""
        ptr, seen = np.array([0, 1, 2]), new_experience([0, 1, 2], 2)
        for i in range(2):
            count_outcome(seen, 2, i, float(i), 1 - i)
            seen.n[i] = seen.times[3 * i] = 10**6
            seen.paid[i] = i * 10**6
        low, high = solve_skeleton(ptr, seen, 2, 1.0, 1e-9)
        assert high - low <= 1e-9
        assert low == pytest.approx(0.5, abs=1e-5)

    def test_interpreted(self):
        ptr, seen = random_experience(1)
        _, slow = random_experience(1)
        found = solve_skeleton(ptr, seen, 6, 1.0, 1e-6)
        with interpreted():
            assert solve_skeleton(ptr, slow, 6, 1.0, 1e-6) == found
        assert slow.phi.tobytes() == seen.phi.tobytes()
