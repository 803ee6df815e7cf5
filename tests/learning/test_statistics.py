"""What the paper's experiments show, at small scale: seeds fixed, level 1e-3 a test, exact thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from spanrl import learn, make

LEVEL = 1e-3
SEEDS = range(20)
LINEAR, SUBLINEAR = 0.8, 0.6
"""Log-log slopes of the mean over the last decade and a half (spec, section 5)."""


def slope(t, regret):
    """Return the log-log slope over the last decade and a half."""
    late = t >= t[-1] / 10**1.5
    return float(np.polyfit(np.log(t[late]), np.log(regret[late]), 1)[0])


def final_pseudo_regrets(agent, horizon):
    env = make("three-state[delta=0.005]")
    return np.array([learn(env, agent, horizon=horizon, seed=seed).pseudo_regret[-1] for seed in SEEDS])


@pytest.fixture(scope="module")
def ucrl():
    return final_pseudo_regrets("ucrl", 10**6)


def test_scal_is_below_ucrl(ucrl):
    """Paired over 20 seeds at T = 10⁶, δ = 0.005: one-sided t test of the mean difference, and every single seed."""
    difference = ucrl - final_pseudo_regrets("scal[span_bound=2]", 10**6)
    statistic = difference.mean() / (difference.std(ddof=1) / np.sqrt(difference.size))
    assert statistic > student.isf(LEVEL, difference.size - 1)
    assert (difference > 0).all()


def test_a_smaller_bound_on_the_span_means_less_regret(ucrl):
    means = [final_pseudo_regrets(f"scal[span_bound={c}]", 10**6).mean() for c in (2, 10, 25)]
    assert means[0] < means[1] < means[2]
    assert means[0] < ucrl.mean()


def test_without_a_diameter_ucrl_is_linear_and_scal_is_not():
    """δ = 0, T = 2.5·10⁷. All seeds give the same pseudo-regret there: it does not depend on rewards alone."""
    runs = {
        agent: learn("three-state[delta=0]", agent, horizon=25 * 10**6, seed=0)
        for agent in ("ucrl", "scal[span_bound=2]")
    }
    slopes = {agent: slope(run.t, run.pseudo_regret) for agent, run in runs.items()}
    assert slopes["ucrl"] >= LINEAR, slopes
    assert slopes["scal[span_bound=2]"] <= SUBLINEAR, slopes


@pytest.mark.parametrize("seed", [0, 1])
def test_too_small_a_bound_costs_linear_regret(seed):
    """c = 0.5 < sp(h*): the constraint forbids the optimal policy."""
    run = learn("three-state[delta=0.005]", "scal[span_bound=0.5]", horizon=10**7, seed=seed)
    assert slope(run.t, run.pseudo_regret) >= LINEAR


def test_regret_stays_within_the_bound_of_the_theorem():
    """α = 1, c ≥ sp(h*): at most a fraction δ of runs may exceed it. (The bound is far away: this is a check of units.)"""
    from spanrl import regret_bound

    env = make("three-state[delta=0.1]")
    for seed in SEEDS:
        run = learn(env, "scal[span_bound=2]", horizon=10**6, seed=seed)
        assert run.regret[-1] <= regret_bound(10**6, n_states=3, n_actions=2, max_support=2, span_bound=2)


def test_the_number_of_episodes_is_logarithmic():
    """m ≤ S A log₂(8T/SA) for T ≥ SA, with SA the number of pairs at most."""
    for agent in ("scal[span_bound=2]", "ucrl", "ucrl2"):
        run = learn("riverswim", agent, horizon=10**6, seed=0)
        pairs = run.meta["n_states"] * run.meta["n_actions"]
        late = run.t >= pairs
        assert (run.n_episodes[late] <= pairs * np.log2(8 * run.t[late] / pairs)).all()


def test_the_confidence_sets_hold_the_truth():
    """Every episode of 20 runs for each agent: the failure probability is below δ ζ(6)/15 ≈ 0.0034 a run; none is expected."""
    for agent in ("scal[span_bound=2]", "ucrl2"):
        for seed in SEEDS:
            run = learn("three-state[delta=0.1]", agent, horizon=20_000, seed=seed, audit=True)
            assert run.episodes["contains"].all()
