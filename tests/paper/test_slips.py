"""The slips of the text: all of them there, their numbers against hand-made ones, and what breaks them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields, replace
from fractions import Fraction
from importlib import import_module
from math import log, log2, sqrt

import numpy as np
import pytest

import spanrl
from spanrl.errors import ModelError
from spanrl.models.bounded import BoundedMDP
from spanrl.models.policy import Policy
from spanrl.paper import oracles_chains, pool, slips
from spanrl.paper.claims import SMOKE
from spanrl.paper.oracles import finite
from spanrl.paper.slips import Slip, all_slips
from spanrl.paper.slips.base import Statement
from spanrl.paper.slips.domains import _gold_is_kept
from spanrl.paper.slips.learning import expected_variance

IDS = (
    "two-state-span", "second-deterministic-policy", "closed-set", "some-maximiser", "deviation-norm", "fixed-point-augmented",
    "two-stage-coefficient", "cycle-iterates", "argmin", "episode-rule", "eta", "eta-above-one", "below-the-span", "variance",
    "always-better", "smaller-better", "span-alone",
    "three-state-diameter", "knight-quest-states", "knight-quest-gold", "knight-quest-second-key", "knight-quest-target",
    "knight-quest-armour",
)  # fmt: skip
STATEMENTS = {one.id: one for name in slips._MODULES for one in import_module(f"spanrl.paper.slips.{name}").SLIPS}


@pytest.fixture(scope="module")
def found() -> dict[str, Slip]:
    return {slip.id: slip for slip in all_slips()}


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def test_every_slip_is_there_once_and_in_order():
    assert tuple(STATEMENTS) == IDS
    assert sum(len(import_module(f"spanrl.paper.slips.{name}").SLIPS) for name in slips._MODULES) == len(IDS)


@pytest.mark.parametrize("name", IDS)
def test_every_slip_is_shown(found, name):
    slip = found[name]
    assert slip.shown is True, slip.numbers
    assert slip.numbers
    assert all(getattr(slip, text).strip() for text in ("title", "place", "printed", "found"))
    assert len(slip.title) <= 70


def test_ids_are_anchors(found):
    assert all(re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) for name in found)


def test_numbers_survive_json(found):
    for slip in found.values():
        record = {one.name: getattr(slip, one.name) for one in fields(slip)} | {"numbers": dict(slip.numbers)}
        assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_the_same_numbers_again_by_a_worker(found):
    """In another process, as a task of its own beside the claims."""
    answers = {}
    pool.ask([pool.SLIPS], SMOKE, workers=1, done=answers.__setitem__)
    assert answers[pool.SLIPS].content["slips"] == [asdict(slip) for slip in found.values()]


# --- each against numbers from elsewhere ----------------------------------------------------------------------------

E1 = "gains of (x, y) = (0, 1) and (1, 1)"
KNOWN = {
    "two-state-span": {
        # ½ + (1 − 3y)/(2(x + y)) at x = y = 1/100
        "span at x = y = 0.01": float(Fraction(1, 2) + Fraction(97, 100) / Fraction(4, 100)),
        "largest span of the four deterministic policies": 1.0,
    },
    "second-deterministic-policy": {"deterministic policies in Π_c": 2, E1: [0.5, 0.0]},
    "closed-set": {
        "span at x = y = 0.1, 0.01, 0.001, 0.0001": [2.25, 24.75, 249.75, 2499.75],
        "smallest x + y in Π_c, on a grid of 1/7": 2 / 7,  # x + 7y ≥ 2 at c = ¾
        "largest gain in Π_c, on that grid": 0.75,
        "x, y there": [1.0, 1 / 7],
    },
    "some-maximiser": {"sp(h*)": 0.0, "gains of the two policies": [1.0, 1.0], "spans of the two policies": [0.0, 10.0]},
    "deviation-norm": {
        # P̂ = e μ̂ᵀ, so H = I − P̂
        "‖μ − μ̂‖₁": 0.6,
        "max |H_ij|": 0.9,
        "largest row sum of |H|": 1.8,
        "the printed bound": 0.54,
        "the bound with the row sum": 1.08,
    },
    "fixed-point-augmented": {
        "fixed point": [0.7, 0.3, 0.0],
        "fixed point, augmented": [0.7, 0.3, 0.0],
        "T_c moves the printed (α+β, β, 0) by, augmented": 0.1,
    },
    "two-stage-coefficient": {"row 2 of P_d²": [1, 0, 0], "two-stage coefficient": "15/16", "the printed coefficient": "1/4"},
    "cycle-iterates": {
        "the cycle is as printed up to c = 1/(2 − δ)": 4 / 7,
        "T_cⁿ 0 converges from c = sp(h^d)": 0.8,
        "sp(v_n − v_{n−1}) at n = 150": [0.5, 4 / 7, 0.25, 0.0],
        "v_4 − v_2, c = 0.5": [0.5, 0.5, 0.5],
        "v_4 − v_2 as printed": 1.0,
    },
    "argmin": {"Lv": [0, 1], "smallest one-step values": [0, 1], "D(c, v) is empty (linear programme)": True},
    "episode-rule": {
        "with <": [1, 2, 3, 5, 9, 17, 33, 65],
        "with ≤": [1, 3, 6, 12, 24, 48, 96, 192],
        "first episodes of SCAL start at": [1, 2, 3, 5, 9, 17, 33, 65],
        "largest ν_k − max{1, N_k}, with < and ≤": [0, 1],
        "visits of a new pair in its first episode, with < and ≤": [1, 2],
        "episodes m, with < and ≤": [15, 13],  # the last start at 2¹³ + 1 = 8193, and at 3·2¹¹ = 6144
        "m ≤ SA log₂(8T/SA)": log2(8e4),
        "Σ ν/√max{1, N} ≤ (√2 + 1)√(SAT)": 100 * (sqrt(2) + 1),
        "Σ ν/max{1, N − 1} ≤ 6SA + 2SA ln T": 6 + 2 * log(1e4),
    },
    "eta": {"η_k = r_max/(c t_k)": 2e-4, "η_k = 1/(c √t_k)": 2e-2, "loss of gain in the proof, r_max/t_k": 1e-4},
    "eta-above-one": {
        "η_1 = r_max/c": 2,
        "B_p ∩ [η_1, 1] can be formed": False,
        "with η_1 cut to 1": True,
        "c = 0.5, 0.1, 0.01: first t_k with η_k ≤ 1": [2, 10, 100],
    },
    "below-the-span": {
        "largest gain in Π_c (ScOpt on the true model)": pytest.approx(0.75, abs=1e-5),
        "average reward of SCAL, last half of 10⁶ steps": pytest.approx(1, abs=0.01),
        "gains of that policy in s0 and s1": [0.5, 1.0],  # x = y = 0
    },
    "always-better": {
        # with c = 50 nothing is ever truncated
        "largest span of UCRL's optimistic bias": pytest.approx(33.0, abs=0.1),
        "mean pseudo-regret of SCAL relative to it": pytest.approx([0.1, 1.0, 1.0], abs=0.05),
        "runs of SCAL with UCRL's rewards at every measurement": [0, 5, 5],
    },
    "smaller-better": {
        "sp(h*)": 1 / 0.995,
        # means of 20 runs at t = 10⁶ in docs/reproduction.md: 3,437 with c = 2, and UCRL's with c = 20 and 25
        "mean pseudo-regret of SCAL": pytest.approx([8.2e4, 3437, 3.4e4, 3.4e4], rel=0.1),
    },
    "span-alone": {"D": [10, 100], "sp(h*)": [1 / 0.9, 1 / 0.99]},
    "variance": {"n = 2, p = 1/2: p(1 − p)": "1/4", "n = 2, p = 1/2: E[p̂(1 − p̂)]": "1/8"},
    "three-state-diameter": {"D": [200, 10, 3, 4, 20], "1/δ": [200, 10, 3, 2, 10 / 9]},
    "knight-quest-states": {
        "tuples (row, column, gold, dragon, object)": 384,
        "on the dragon's cell without armour": 12,
        "with the princess and a key": 12,
        "states": 360,
    },
    "knight-quest-gold": {
        # 16·3·3, less the 3 + 3 + 3 in which the game has ended; 4 objects, 3 dragons, 2 goods
        "states without gold but with an object": 135,
        "pairs that lead into them from other states": 24,
        "the same where buying leaves the gold": 0,
        "diameter where buying leaves the gold": "inf",
    },
    "knight-quest-second-key": {
        "owned after buying a key with 0, 1, 2, 3: ours": [1, 1, 3, 3],
        "owned after buying armour with 0, 1, 2, 3: printed": [2, 3, 3, 3],
    },
    "knight-quest-target": {
        "D": 248.5,
        "states (princess, gold, key and armour) among the 360": 0,
        "from (town, no gold, armour) to the farthest, by dragon": [248.5] * 3,
    },
    "knight-quest-armour": {
        "states in which buying armour is optimal": 2,
        "these states": "(0,3) gold dragon=(0,1) key; (0,3) gold dragon=(1,1) key",
        "of them, states in which buying armour is optimal": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", IDS)
def test_numbers_are_the_known_ones(found, name):
    for key, value in KNOWN[name].items():
        exact = isinstance(value, (str, bool)) or type(value).__name__.startswith("Approx")
        assert found[name].numbers[key] == (value if exact else close(value)), key


def test_the_bounds_of_the_proof_hold_with_either_rule(found):
    numbers = found["episode-rule"].numbers
    assert max(numbers["episodes m, with < and ≤"]) <= numbers["m ≤ SA log₂(8T/SA)"]
    assert max(numbers["Σ ν/√max{1, N}, with < and ≤"]) <= numbers["Σ ν/√max{1, N} ≤ (√2 + 1)√(SAT)"]
    assert max(numbers["Σ ν/max{1, N − 1}, with < and ≤"]) <= numbers["Σ ν/max{1, N − 1} ≤ 6SA + 2SA ln T"]


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("p", [Fraction(0), Fraction(1, 3), Fraction(1, 2)])
def test_expected_variance(n, p):
    assert expected_variance(n, p) == p * (1 - p) * Fraction(n - 1, n)


def test_the_deviation_matrix_is_the_oracles(found):
    H = oracles_chains.deviation_matrix(np.tile([0.4, 0.4, 0.1, 0.1], (4, 1)))
    assert found["deviation-norm"].numbers["largest row sum of |H|"] == close(np.abs(H).sum(axis=1).max())


def test_only_purchases_differ_where_the_gold_is_kept():
    mdp = spanrl.make("knight-quest").mdp
    kept = _gold_is_kept(mdp)
    P, r, _ = mdp.to_dense()
    Q, s, _ = kept.to_dense()
    states, actions = np.nonzero((P != Q).any(axis=2))
    assert set(actions.tolist()) == {6, 7}
    assert states.size == 24
    assert np.array_equal(r, s)


@pytest.mark.parametrize("delta", [0.1, 0.5])
def test_three_state_diameter_by_linear_programming(found, delta):
    numbers = found["three-state-diameter"].numbers
    D = oracles_chains.diameter(finite(spanrl.make("three-state", delta=delta).mdp))
    assert numbers["D"][numbers["δ"].index(delta)] == pytest.approx(D, rel=1e-7)


# --- broken on purpose ----------------------------------------------------------------------------------------------


def likeliest(evaluate):
    return lambda mdp, policy: evaluate(
        mdp, Policy.deterministic(np.argmax(policy.probs, axis=1), policy.probs.shape[1])
    )


def half_the_bias(evaluate):
    return lambda mdp, policy: replace(found := evaluate(mdp, policy), bias=found.bias / 2, span=found.span / 2)


def first_gain_everywhere(evaluate):
    return lambda mdp, policy: replace(found := evaluate(mdp, policy), gain=np.full_like(found.gain, found.gain[0]))


def same_place(make):
    return lambda name, **options: make("riverswim" if name == "knight-quest" else name)


def without_truncation(span_bellman):
    return lambda model, v, c: spanrl.bellman(model, v)


def all_feasible(span_greedy):
    return lambda model, v, c: replace(found := span_greedy(model, v, c), feasible=np.ones_like(found.feasible))


def one_over_delta(analyse):
    return lambda mdp, **options: replace(
        analyse(mdp, **options), diameter=1 / mdp.to_dense()[0][0, 0, 1] if mdp.n_states == 3 else 249.0
    )


def one_more_visit(learn):
    def slow(env, agent, **options):
        run = learn(env, agent, **options)
        n = np.arange(1, run.episodes["start"].size)
        return replace(run, episodes=run.episodes | {"start": np.concatenate(([1], 3 * 2 ** (n - 1)))})

    return slow


def with_the_bound_of_another(learn):
    """Learn the two-state example as if it were planned: the policy of Lemma 2 is what a run with reward c looks like."""

    def learned(env, agent, **options):
        run = learn(env, agent, **options)
        return replace(run, reward=0.75 * run.t)

    return learned


def with_a_small_bound(learn):
    """Play SCAL with c = 2 whatever it is asked for: far better than UCRL, always."""
    return lambda env, agent, **options: learn(env, "ucrl" if agent == "ucrl" else "scal[span_bound=2]", **options)


def slack(scopt):
    return lambda mdp, c, **options: scopt(mdp, 2 * c, **options)


BREAKS = (
    ("two-state-span", "evaluate", likeliest),
    ("closed-set", "evaluate", likeliest),
    ("closed-set", "evaluate", half_the_bias),
    ("second-deterministic-policy", "evaluate", first_gain_everywhere),
    ("some-maximiser", "evaluate", lambda f: lambda mdp, policy: replace(f(mdp, policy), span=0.0)),
    ("deviation-norm", "evaluate", half_the_bias),
    ("fixed-point-augmented", "scopt", slack),
    ("fixed-point-augmented", "span_bellman", without_truncation),
    ("two-stage-coefficient", "make", lambda f: lambda name, **options: f(name)),
    ("cycle-iterates", "span_bellman", without_truncation),
    ("argmin", "span_greedy", all_feasible),
    ("episode-rule", "learn", one_more_visit),
    ("below-the-span", "learn", with_the_bound_of_another),
    ("below-the-span", "scopt", slack),
    ("always-better", "learn", with_a_small_bound),
    ("smaller-better", "learn", with_a_small_bound),
    ("span-alone", "learn", with_a_small_bound),
    ("three-state-diameter", "analyse", one_over_delta),
    ("three-state-diameter", "make", lambda f: lambda name, **options: f(name)),
    ("knight-quest-states", "make", same_place),
    ("knight-quest-gold", "analyse", one_over_delta),
    ("knight-quest-target", "analyse", one_over_delta),
    ("knight-quest-armour", "analyse", lambda f: lambda mdp, **options: replace(f(mdp), bias=np.zeros(mdp.n_states))),
)


@pytest.mark.parametrize(("name", "function", "broken"), BREAKS)
def test_a_broken_function_shows_nothing(monkeypatch, name, function, broken):
    monkeypatch.setattr(spanrl, function, broken(getattr(spanrl, function)))
    assert STATEMENTS[name].measured().shown is False


def test_a_perturbation_without_checks_shows_nothing(monkeypatch):
    monkeypatch.setattr(BoundedMDP, "perturb", lambda self, eta, state: self)
    assert STATEMENTS["eta-above-one"].measured().shown is False


def test_a_second_key_that_becomes_armour_shows_nothing(monkeypatch):
    from spanrl.envs import knight_quest

    act = knight_quest._act

    def printed(state, action):
        after = act(state, action)
        bought = action in (6, 7) and after[0][1].gold < state.gold
        return [(1.0, after[0][1]._replace(owned=3))] if bought and state.owned else after

    monkeypatch.setattr(knight_quest, "_act", printed)
    assert STATEMENTS["knight-quest-second-key"].measured().shown is False


def test_an_error_shows_nothing_and_is_told():
    def broken():
        raise ModelError("MDP: the rows are wrong.")

    slip = Statement("x", "x", "x", "x", "x", broken).measured()
    assert (slip.shown, slip.numbers) == (False, {"error": "ModelError: MDP: the rows are wrong."})


def test_what_is_not_finite_becomes_text():
    slip = Statement(
        "x", "x", "x", "x", "x", lambda: ({"a": np.inf, "b": [1.0, np.float64("-inf")], "c": np.nan}, True)
    )
    assert slip.measured().numbers == {"a": "inf", "b": [1.0, "-inf"], "c": "nan"}
