"""KL balls as models: what they contain, files, refusals, and what the solver makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from model_samples import random_dense, small_mdp

from spanrl import MDP, BoundedMDP, Policy, bellman, evaluate, solve
from spanrl.errors import ModelError


def small_kl() -> BoundedMDP:
    return BoundedMDP.kl_ball(small_mdp(), [0.1, np.inf, 0.5], [0.0, 0.1, 0.5], [0.2, 0.3, 1.0])


def random_kl(seed: int) -> tuple[BoundedMDP, MDP]:
    """Return a model and its centre."""
    rng = np.random.default_rng(seed)
    P, r, available = random_dense(rng, 5, 3)
    centre = MDP.from_dense(P, r, available=available)
    radius = rng.choice([0.0, 0.01, 0.2, 1.0], size=centre.n_pairs)
    low, high = centre.reward - 0.2 * centre.reward, centre.reward + 0.5 * (1 - centre.reward)
    return BoundedMDP.kl_ball(centre, radius, low, high), centre


def test_contains_by_hand():
    """KL((½, ½, 0), q) ≤ ¼ ln 2: mass m on the third state costs −ln(1 − m), however it is taken from the others alike."""
    bounded = BoundedMDP.kl_ball([[[0.5, 0.5, 0.0]]] * 3, np.log(2) / 4, 0.0, 1.0)

    def holds(p: list[float]) -> bool:
        return bounded.contains(MDP.from_dense([[p], [[0.5, 0.5, 0]], [[0.5, 0.5, 0]]], [[0.5]] * 3))

    m = 1 - 2.0**-0.25
    assert holds([0.5, 0.5, 0.0])
    assert holds([(1 - m) / 2, (1 - m) / 2, m])
    assert not holds([(1 - m) / 2 - 1e-4, (1 - m) / 2 - 1e-4, m + 2e-4])
    assert not holds([1.0, 0.0, 0.0]), "what was seen cannot be impossible"
    x = np.sqrt(1 - 2.0**-0.5) / 2  # −½ ln(4(½ + x)(½ − x)) = ¼ ln 2
    assert holds([0.5 + x - 1e-9, 0.5 - x + 1e-9, 0.0])
    assert not holds([0.5 + x + 1e-6, 0.5 - x - 1e-6, 0.0])


def test_rewards_and_infinite_radii():
    bounded = small_kl()
    assert (
        bounded.contains(small_mdp())
        == ((small_mdp().reward <= bounded.r_high) & (small_mdp().reward >= bounded.r_low)).all()
    )
    everything = BoundedMDP.kl_ball([[[1.0, 0.0]]] * 2, np.inf, 0.0, 1.0)
    assert everything.contains(MDP.from_dense([[[0.0, 1.0]], [[0.0, 1.0]]], [[0.3]] * 2))


def test_save_load_augment_and_print(tmp_path):
    bounded = small_kl()
    bounded.save(tmp_path / "kl.npz")
    assert BoundedMDP.load(tmp_path / "kl.npz") == bounded
    l1 = BoundedMDP.l1_ball(small_mdp(), 0.5, 0.0, 1.0)
    l1.save(tmp_path / "l1.npz")
    assert not BoundedMDP.load(tmp_path / "l1.npz").is_kl
    assert bounded.augment().is_kl
    assert not bounded.augment().r_low.any()
    assert not bounded.is_ball
    assert repr(bounded).endswith("KL balls>")
    assert "KL radius: mean inf" in str(bounded)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: BoundedMDP.kl_ball(small_mdp(), -0.1, 0.0, 1.0),
            r"radius.*must be a number ≥ 0.*A radius of ∞ allows",
        ),
        (lambda: BoundedMDP.kl_ball(small_mdp(), np.nan, 0.0, 1.0), r"radius.*must be a number ≥ 0"),
        (lambda: BoundedMDP.kl_ball(small_mdp(), 0.1, 0.5, 0.4), "r_low"),
        (lambda: BoundedMDP.kl_ball([[[0.5, 0.4]]] * 2, 0.1, 0.0, 1.0), "sums to"),
        (lambda: small_kl().perturb(0.1, 0), "works on boxes; this model has KL balls"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(ModelError, match=words):
        make()


@pytest.mark.parametrize("sense", ["optimistic", "pessimistic"])
def test_solve_certifies_both_senses(sense):
    """The chain that nature answers with lies in the set, and its gain in the bracket; the centre's gain is on the right side."""
    for seed in range(3):
        bounded, centre = random_kl(seed)
        solution = solve(bounded, sense=sense, tol=1e-9)
        assert solution.converged
        P, r = solution.optimistic[0].toarray(), solution.optimistic[1]
        for s, a in enumerate(solution.policy.actions):
            i = int(np.flatnonzero((centre.pair_state == s) & (centre.action == a))[0])
            row = slice(centre.succ_ptr[i], centre.succ_ptr[i + 1])
            divergence = centre.prob[row] @ np.log(centre.prob[row] / P[s, centre.succ[row]])
            assert divergence <= bounded.radius[i] + 1e-12
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-14)
        gain = evaluate(MDP.from_dense(P[:, None], r[:, None]), Policy.deterministic([0] * 5)).gain
        lo, hi = solution.gain_bounds
        assert lo - 1e-9 <= gain.min()
        assert gain.max() <= hi + 1e-9
        v = np.random.default_rng(seed).normal(size=5)
        sign = 1.0 if sense == "optimistic" else -1.0
        assert (sign * (bellman(bounded, v, sense=sense) - bellman(centre, v)) >= -1e-12).all()


def test_both_senses_are_one_kernel():
    """min over the ball = −max at −v."""
    rng = np.random.default_rng(3)
    single = BoundedMDP.kl_ball(rng.dirichlet(np.ones(6), size=(6, 1)), 0.3, 0.0, 0.0)
    for v in (rng.normal(size=6), np.round(rng.random(6), 1), 1e9 + rng.random(6)):
        np.testing.assert_array_equal(bellman(single, v, sense="pessimistic"), -bellman(single, -v))
