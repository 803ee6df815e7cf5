"""TUCRL: what it closes, a plain version decision by decision, the ingredients of its guarantee, and regret where UCRL's is linear."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from family_samples import Decision, assert_same_decisions, iterate, lowest, played, walled_grid

import plain_bounds as plain
from spanrl import (
    MDP,
    TUCRL,
    UCRL,
    Env,
    ProblemInfo,
    analyse,
    learn,
    make,
    make_agent,
    reference,
    span_bellman,
    streams,
)
from spanrl.agents.learner import Learner, Rules
from spanrl.agents.registry import agent_id
from spanrl.agents.tucrl import TruncatedBox, UntilNewState, fill_truncated
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.confidence.estimate import FILL
from spanrl.errors import OptionError
from spanrl.kernels.jit import interpreted, passed
from ways import Kept, assert_all_ways_agree, assert_interpreted_agrees, ragged_env

SMALL = {"p_scale": 0.01, "r_scale": 0.01}


def reachable_gain(env):
    """Return the optimal gain of the first four cells of the grid."""
    P, r, _ = env.mdp.to_dense()
    return analyse(MDP.from_dense(P[:4, :, :4], r[:4])).gain


# --- decision by decision -------------------------------------------------------------------------------------------


def plausible(counts, allowed, t, s, alpha):
    """Return the truncated set by the book, S_k^C and K_k, for rewards in [0, 1] and δ = 0.05."""
    N, (S, A) = counts.N, allowed.shape
    plus, less, log_term = np.maximum(1, N), np.maximum(1, N - 1), np.log(2 * S * A * t / 0.05)
    p, r, seen = counts.successors / plus[:, :, None], counts.rewards / plus, N > 0

    def radius(variance, plus, less):
        return np.sqrt(14 * alpha * variance * log_term / plus) + 49 / 3 * alpha * log_term / less

    around_p = radius(p * (1 - p), plus[:, :, None], less[:, :, None])
    around_r = radius(counts.squares / less, plus, less)
    low = np.where(seen[:, :, None], np.maximum(0, p - around_p), 0)
    high = np.where(seen[:, :, None], np.minimum(1, p + around_p), 1)
    r_low, r_high = np.where(seen, np.maximum(0, r - around_r), 0), np.where(seen, np.minimum(1, r + around_r), 1)
    return truncated(reference.Plausible(allowed, low, high, r_low, r_high), counts, allowed, t, s)


def truncated(M, counts, allowed, t, s):
    """Return a set truncated by the book, S_k^C and K_k."""
    N, (S, A) = counts.N, allowed.shape
    high, r_high, C = M.p_high.copy(), M.r_high.copy(), N.sum(axis=1) > 0
    C[s] = True
    K = C[:, None] & allowed & (np.maximum(1, N - 1) <= sqrt(t / (S * A)))
    for x, a in np.argwhere(C[:, None] & ~K):
        high[x, a, ~C] = 0
    if not K.any():
        r_high[~C] = 0
    return M._replace(p_high=high, r_high=r_high), C, K


def plain_tucrl(alpha, other=None):
    """Return the decisions of TUCRL as its docstring has them; ``other`` makes sets of another kind."""

    def decide(counts, allowed, t, s, steps):
        if other is None:
            M, C, _ = plausible(counts, allowed, t, s, alpha)
        else:
            M, C, _ = truncated(other(counts, allowed), counts, allowed, t, s)
        v, _ = iterate(lambda v: reference.values(M, v), len(C), inf, 1 / sqrt(t))
        best = lowest(reference.values(M, v))
        return Decision(best, best, np.zeros(len(C)), np.where(C[:, None], np.maximum(1, counts.N), 0))

    return decide


ENVS = {
    "grid": walled_grid,
    "riverswim": lambda: make("riverswim[variant=osband]"),
    "three-state": lambda: make("three-state[delta=0.05]"),
}


@pytest.mark.parametrize(("env", "alpha"), [("grid", 0.05), ("riverswim", 0.05), ("three-state", 1.0)])
def test_a_plain_version_decides_alike(env, alpha):
    agent = TUCRL(p_scale=alpha, r_scale=alpha, warm_start=False)
    assert_same_decisions(ENVS[env](), agent, plain_tucrl(alpha), 2500, fewest=20)


@pytest.mark.parametrize(("bounds", "make_set"), [("ucrl2b", plain.ucrl2b_set), ("ucrl3", plain.ucrl3_set)])
def test_so_does_one_with_other_bounds(bounds, make_set):
    agent = TUCRL(warm_start=False, bounds=bounds)
    assert_same_decisions(walled_grid(), agent, plain_tucrl(1.0, make_set), 1000, fewest=20)


@pytest.mark.parametrize("mutant", ["never truncates", "new states end nothing"])
def test_a_broken_plain_version_shows(mutant):
    def decide(counts, allowed, t, s, steps):
        plan = plain_tucrl(0.05)(counts, allowed, t, s, steps)
        if mutant == "new states end nothing":
            return plan._replace(visits=np.maximum(1, counts.N))
        dreaming = plain_tucrl(0.05)(counts, allowed, 10**9 * t, s, steps)  # K_k is never empty
        return plan._replace(best=dreaming.best)

    with pytest.raises(AssertionError):
        assert_same_decisions(
            walled_grid(), TUCRL(p_scale=0.05, r_scale=0.05, warm_start=False), decide, 2500, fewest=20
        )


def test_dropping_the_closed_states_changes_no_gain():
    """The paper plans on S_k^C alone where K_k is empty: the gain is within our bracket."""
    env, dropped = walled_grid(), 0

    def look(learner):
        nonlocal dropped
        counts, allowed = reference.Counts(6, 2), np.ones((6, 2), dtype=bool)
        counts.N[:] = learner.counts.n.reshape(6, 2)
        counts.rewards[:] = (learner.counts.n * learner.counts.r_mean).reshape(6, 2)
        counts.squares[:] = learner.counts.r_sq.reshape(6, 2)
        for i in range(12):
            at = slice(*learner.counts.succ_ptr[i : i + 2])
            counts.successors[i // 2, i % 2, learner.counts.succ[at]] = learner.counts.times[at]
        M, C, K = plausible(counts, allowed, learner.episode.start, learner.began_in, 0.05)
        if K.any() or C.all():
            return
        inside = [part[C] for part in M]
        sub = reference.Plausible(inside[0], inside[1][:, :, C], inside[2][:, :, C], *inside[3:])
        low, high = reference.scopt(sub, inf, 1e-6).gain_bounds
        assert learner.episode.gain_low - 1e-9 <= high
        assert low <= learner.episode.gain_high + 1e-9
        dropped += 1

    learner = TUCRL(p_scale=0.05, r_scale=0.05).start(ProblemInfo.from_mdp(env.mdp), 0)
    learner.on_episode.append(look)
    rng, s = np.random.default_rng(0), 0
    for _ in range(4000):
        reward, following = env.step(s, learner.act(s), rng)
        learner.observe(reward, following)
        s = following
    assert dropped > 10


# --- the ingredients of the guarantee: claims, see family_claims.py ---------------------------------------------------


class Look(NamedTuple):
    """An episode as it begins: the Bernstein set before truncation, S_k^T, K_k, and what was planned."""

    t: int
    whole: Any
    closed: np.ndarray
    poor: np.ndarray
    gain_high: float
    bounded: Any
    bias: np.ndarray
    gain_bounds: tuple[float, float]


def looks(agent, env, T):
    """Return a look at each episode of a run."""
    found, info = [], ProblemInfo.from_mdp(env.mdp)
    S, SA = int(info.n_states), int(info.n_states) * int(info.max_actions)

    def look(learner):
        n, t = learner.counts.n, learner.episode.start
        closed = np.bincount(info.pair_state, n, S) == 0
        closed[learner.began_in] = False
        poor = ~closed[info.pair_state] & (np.maximum(1, n - 1) <= sqrt(t / SA))
        whole = BernsteinBox(0.05, **SMALL).bounded(learner.counts, t, info)
        plan = learner.plan.gain_bounds
        found.append(Look(t, whole, closed, poor, plan[1], learner.confidence_set(), learner.bias, plan))

    learner = agent.start(info, streams(1)[1])
    learner.on_episode.append(look)
    env_rng = streams(1)[0]
    s = env.reset(env_rng)
    for _ in range(T):
        reward, following = env.step(s, learner.act(s), env_rng)
        learner.observe(reward, following)
        s = following
    return found


def check_optimism(agent):
    """Assert that plans dream of r_max while K_k and S_k^T are not empty, and reach g* where the true model is plausible."""
    env = walled_grid()
    best, kinds = reachable_gain(env), set()
    for look in looks(agent, env, 3000):
        dreams = bool(look.closed.any() and look.poor.any())
        if dreams:
            assert look.gain_high >= 1 - 1e-9, look.t
            kinds.add("dreams")
        elif look.whole.contains(env.mdp):
            assert look.gain_high >= best - 1e-9, look.t
            kinds.add("all may be" if look.gain_high > 1 - 1e-6 else "knows")
    assert kinds == {"dreams", "all may be", "knows"}


def check_truncation(agent):
    """Assert that pairs outside of K_k cannot reach S_k^T, and that those in it can."""
    env, shut = walled_grid(), 0
    for look in looks(agent, env, 3000):
        upper = dense_upper(look.bounded)
        for i in np.flatnonzero(~look.closed[np.arange(12) // 2]):
            reach = upper[i, look.closed]
            assert (reach > 0).all() if look.poor[i] else (reach == 0).all(), (look.t, i)
            shut += reach.size > 0 and not look.poor[i]
    assert shut > 100


def dense_upper(bounded):
    """Return the upper ends of all successors [n_pairs, S]."""
    upper = np.tile(bounded.rest_high[:, None], bounded.n_states)
    for i in range(upper.shape[0]):
        at = slice(*bounded.succ_ptr[i : i + 2])
        upper[i, bounded.succ[at]] = bounded.p_high[at]
    return upper


@passed(FILL)
def fill_hasty(known, settings, kept, sets):
    """Give up states never visited at once."""
    fill_truncated(known, settings, kept, sets)
    for s in range(known.n_states):
        for i in range(known.pair_ptr[s], known.pair_ptr[s + 1]):
            sets.flagged[i] = not sets.closed[s]
            if sets.closed[s]:
                sets.r_low[i] = sets.r_high[i] = known.r_min


@dataclass(frozen=True)
class HastyBox(TruncatedBox):
    fill: ClassVar = fill_hasty


@dataclass(frozen=True)
class Hasty:
    """A TUCRL that never dreams."""

    def start(self, info, rng):
        return Learner(Rules(HastyBox(0.05, **SMALL), UntilNewState()), info, rng)


@pytest.mark.parametrize("bounds", ["kt", "ucrl2b", "ucrl3"])
def test_all_boxes_are_truncated(bounds):
    check_truncation(TUCRL(bounds=bounds))


def check_coverage(scale):
    """Assert that the true model stays plausible, on the pairs of cells that can be reached, also where the others are closed."""
    env = walled_grid()
    P, r, _ = env.mdp.to_dense()
    kept = Kept(TUCRL(p_scale=scale, r_scale=scale))
    learn(env, kept, horizon=20_000, seed=0, gain=0.0)
    bounded = kept.learners[0].confidence_set()
    fits = (P.reshape(12, 6) <= dense_upper(bounded) + 1e-12).all(axis=1) & (r.ravel() <= bounded.r_high + 1e-12)
    assert fits[:8].all()


def test_once_all_states_were_visited_its_set_is_that_of_ucrl():
    kept = Kept(TUCRL())
    learn("three-state[delta=0.05]", kept, horizon=5000, seed=0)
    (learner,) = kept.learners
    ours = learner.confidence_set()
    other = BernsteinBox(0.05).bounded(learner.counts, learner.episode.start, learner.info)
    for name in ("succ", "p_low", "p_high", "rest_high", "r_low", "r_high"):
        assert getattr(ours, name).tolist() == getattr(other, name).tolist(), name


def check_new_states_begin_episodes(agent):
    starts, steps = played(ragged_env(3), agent, 500, 0)
    seen, begun, arrivals = {steps[0][0]}, set(starts), 0
    for k, (_, _, following) in enumerate(steps[:-1]):
        if following not in seen:
            seen.add(following)
            assert k + 2 in begun
            arrivals += 1
    assert arrivals >= 3


def test_the_operator_is_monotone_and_commutes_with_constants_and_certifies_the_plan():
    rng = np.random.default_rng(0)
    for look in looks(TUCRL(**SMALL), walled_grid(), 1000):
        v = rng.normal(size=6)
        w, shift = v + rng.random(6), float(rng.normal())
        assert (span_bellman(look.bounded, v, inf) <= span_bellman(look.bounded, w, inf) + 1e-12).all()
        moved = span_bellman(look.bounded, v + shift, inf)
        np.testing.assert_allclose(moved, span_bellman(look.bounded, v, inf) + shift, atol=1e-12)
        step = span_bellman(look.bounded, look.bias, inf) - look.bias
        assert look.gain_bounds == pytest.approx((step.min(), step.max()), abs=1e-10)
        assert np.ptp(step) <= 1 / sqrt(look.t) + 1e-10


# --- where some states cannot be reached ------------------------------------------------------------------------------


def test_regret_where_that_of_ucrl_is_linear():
    """The grid has no finite diameter. In the second half of the run UCRL loses as fast as in the first; TUCRL has stopped."""
    env, T = walled_grid(), 10**6
    gain = reachable_gain(env)
    for agent, is_linear in ((UCRL(), True), (UCRL(bounds="kt"), True), (TUCRL(), False)):
        run = learn(env, agent, horizon=T, seed=0, gain=gain, points=10)
        half = np.interp(T / 2, run.t, run.pseudo_regret)
        late = (run.pseudo_regret[-1] - half) / (T / 2)
        assert (late > 0.2 * gain) if is_linear else (late < 0.02 * gain), agent


def test_a_better_part_that_is_reached_late_is_not_given_up():
    """A door that opens once in a hundred tries leads to the best state: unlike a wall, it is found."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 0] = P[1, 0, 0] = P[2, 0, 1] = P[2, 1, 2] = 1.0
    P[0, 1] = [0.5, 0.5, 0.0]
    P[1, 1] = [0.0, 0.99, 0.01]
    env = Env.from_mdp(MDP.from_dense(P, [[0.1, 0.0], [0.0, 0.0], [0.0, 1.0]]), "bernoulli")
    run = learn(env, TUCRL(), horizon=3 * 10**5, seed=0, points=10)
    late = run.t > 1.5 * 10**5
    assert np.ptp(run.pseudo_regret[late]) < 0.01 * late.sum() * 10**5


def test_sharper_boxes_lose_less():
    runs = [learn(walled_grid(), agent, horizon=10**5, seed=0, gain=0.7) for agent in (TUCRL(), TUCRL(bounds="kt"))]
    assert runs[1].pseudo_regret[-1] < 0.2 * runs[0].pseudo_regret[-1]


@pytest.mark.parametrize("bounds", ["bernstein", "kt"])
def test_being_taken_elsewhere_leaves_the_contract_whole(bounds):
    """A state seen as a successor in which nothing was played: flagged rows list it, so it must be open."""
    rng, info = np.random.default_rng(0), ProblemInfo(6, 2)
    with interpreted():
        learner = TUCRL(bounds=bounds).start(info, 0)
        for _ in range(60):
            learner.act(int(rng.integers(3)))
            learner.observe(0.5, int(rng.integers(6)))
    assert learner.n_episodes > 10
    assert learner.confidence_set().n_states == 6


# --- runs and refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [ragged_env(1), walled_grid()], ids=["ragged", "grid"])
@pytest.mark.parametrize(
    "agent",
    [TUCRL(**SMALL), TUCRL(warm_start=False, delta="rsqrt"), TUCRL(bounds="kt"), TUCRL(bounds="ucrl3")],
    ids=["small", "cold", "kt", "ucrl3"],
)
def test_all_ways_agree(env, agent):
    run, _ = assert_all_ways_agree(env, agent, 2000, 1)
    assert run.n_episodes[-1] > 10


def test_interpreted():
    assert_interpreted_agrees(walled_grid(), TUCRL(**SMALL), 200, 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"delta": 0.0}, r"TUCRL: delta must lie in \(0, 1\) or be 'rsqrt'; got 0\.0"),
        ({"p_scale": 0.0}, r"TUCRL: p_scale must be a finite number > 0; got 0\.0\. 1 is the theory"),
        ({"r_scale": "x"}, r"TUCRL: r_scale must be a finite number > 0; got 'x'"),
        ({"warm_start": 1}, r"TUCRL: warm_start must be true or false; got 1"),
        (
            {"bounds": "kl"},
            r"TUCRL: bounds must be bernstein or kt or ucrl2b or ucrl3; got 'kl'\. Balls cannot close states",
        ),
        ({"bounds": "kt", "p_scale": 0.5}, r"TUCRL: bounds='kt' have no factor p_scale"),
        ({"bounds": "kt", "delta": "rsqrt"}, r"TUCRL: bounds='kt' need a fixed delta"),
    ],
)
def test_options(given, words):
    with pytest.raises(OptionError, match=words):
        TUCRL(**given)


def test_names():
    assert agent_id(TUCRL(p_scale=0.5)) == "tucrl[p_scale=0.5]"
    assert make_agent("tucrl[delta=rsqrt]") == TUCRL("rsqrt")


def test_it_can_be_audited():
    """Before all states were visited the set need not hold the whole model; here they are soon."""
    run = learn("three-state[delta=0.05]", TUCRL(), horizon=20_000, seed=0, audit=True)
    assert run.episodes["contains"][-1]
