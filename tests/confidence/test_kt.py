"""KT bounds: every end against the definition in decimals, coverage by simulation, and what they do for the regret."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
from test_kt_interval import DIGITS, Definition

from coverage_samples import N_RUNS, is_refuted, leaves
from spanrl import MDP, SCAL, UCRL, Env, ProblemInfo, analyse, check_agent, learn, make, make_agent
from spanrl.agents.episodes import DOUBLING, one_over_root
from spanrl.agents.planner import Planner, Start
from spanrl.agents.registry import agent_id
from spanrl.confidence.kt import KT
from spanrl.confidence.kt_interval import kt_excess
from spanrl.errors import OptionError
from spanrl.kernels.counting import add_batch
from spanrl.kernels.jit import interpreted
from spanrl.models.counts import Batch, Counts
from ways import Kept, assert_all_ways_agree, assert_interpreted_agrees, ragged_env

ROUNDING = Decimal("1e-12")


def log_level(delta: float, S: int, A: int) -> Decimal:
    """Return ln(1/d), d = δ/(S²A + SA)."""
    return (Decimal(S * S * A + S * A) / Decimal(delta)).ln()


def ragged_info(S: int, A: int, r_min: float, r_max: float) -> ProblemInfo:
    """Return a problem in which state s has 1 + s mod A actions."""
    return ProblemInfo(S, A, r_min=r_min, r_max=r_max, available=np.arange(A) <= (np.arange(S) % A)[:, None])


def add(counts: Counts, seen: dict[tuple[int, float, int], int]) -> None:
    batch = Batch.from_dict(seen)
    counts.reserve(counts.succ.size + batch.pair.size)
    assert add_batch(*batch, counts.seen, np.zeros((0, counts.seen.succ.size))) >= 0


def experience(rng: np.random.Generator, info: ProblemInfo) -> dict[tuple[int, float, int], int]:
    """Return {(pair, reward, successor): times}: 1 to 10⁶ visits per pair, with 1 to S successors; pair 1 is never seen."""
    seen = {}
    for i in set(range(info.n_pairs)) - {1}:
        n = int(10 ** rng.uniform(0, 6)) if i else 1
        states = rng.choice(info.n_states, size=int(rng.integers(1, info.n_states + 1)), replace=False).tolist()
        levels = ([0.0], [1.0], [0.0, 1.0], [0.0, 0.3, 0.85])[i % 4]  # also pairs that pay r_min or r_max alone
        outcomes = [(info.r_min + info.size * x, s) for x in levels for s in states]
        times = rng.multinomial(n, rng.dirichlet(np.ones(len(outcomes)))).tolist()
        seen |= {(i, r, s): k for (r, s), k in zip(outcomes, times, strict=True) if k}
    return seen


class TestEnds:
    @pytest.mark.parametrize(
        ("S", "A", "r_min", "r_max", "delta"),
        [(1, 1, 0.0, 1.0, 0.9), (4, 2, 0.0, 1.0, 0.05), (5, 3, -1.0, 2.0, 0.3), (6, 3, 100.0, 100.5, 1e-6)],
    )
    def test_are_those_of_the_definition(self, S, A, r_min, r_max, delta):
        info, rng = ragged_info(S, A, r_min, r_max), np.random.default_rng(S)
        seen = experience(rng, info)
        counts = Counts.empty(info.n_pairs)
        add(counts, seen)
        sets = KT(delta).sets(counts, 17, info)
        with localcontext(DIGITS):
            level = log_level(delta, S, A)
            for i in range(info.n_pairs):
                mine = {key: k for key, k in seen.items() if key[0] == i}
                n, row = sum(mine.values()), slice(sets.succ_ptr[i], sets.succ_ptr[i + 1])
                if n == 0:
                    assert (sets.rest[i], sets.r_low[i], sets.r_high[i]) == (1.0, r_min, r_max)
                    assert row.start == row.stop
                    continue
                by_state = {}
                for (_, _, s), k in mine.items():
                    by_state[s] = by_state.get(s, 0) + k
                assert sets.succ[row].tolist() == sorted(by_state)
                for s, low, room in zip(sorted(by_state), sets.low[row], sets.room[row], strict=True):
                    self.check(Definition(by_state[s], n, level), Decimal(low), Decimal(low + room))
                self.check(Definition(0, n, level), Decimal(0), Decimal(sets.rest[i]))
                size = Decimal(r_max) - Decimal(r_min)
                paid = sum(k * (Decimal(r) - Decimal(r_min)) for (_, r, _), k in mine.items()) / size
                ends = ((Decimal(x) - Decimal(r_min)) / size for x in (sets.r_low[i], sets.r_high[i]))
                self.check(Definition(paid, n, level), *ends, slack=ROUNDING * max(1, abs(int(r_max))))

    @staticmethod
    def check(set_: Definition, low: Decimal, high: Decimal, slack: Decimal = ROUNDING) -> None:
        """Check that the definition holds up to the ends and not beyond, to 1e-12 (what a reward loses to an offset is more)."""
        if low > slack or set_.k > slack * set_.n:
            assert set_.holds(low + slack)
            assert low <= slack or not set_.holds(low - slack)
        assert low >= 0
        if high < 1 - slack or set_.n - set_.k > slack * set_.n:
            assert set_.holds(high - slack)
            assert high >= 1 - slack or not set_.holds(high + slack)
        assert high <= 1

    def test_without_visits_everything_is_allowed(self):
        info = ragged_info(3, 2, -1.0, 1.0)
        sets = KT().sets(Counts.empty(info.n_pairs), 1, info)
        assert (sets.rest == 1).all()
        assert (sets.r_low == -1).all()
        assert (sets.r_high == 1).all()

    def test_do_not_depend_on_t(self):
        info = ragged_info(5, 3, 0.0, 1.0)
        counts = Counts.empty(info.n_pairs)
        add(counts, experience(np.random.default_rng(3), info))
        one, other = (KT(0.1).sets(counts, t, info) for t in (1, 10**9))
        for a, b in zip(one, other, strict=True):
            assert a.tobytes() == b.tobytes()

    def test_are_a_set_that_the_solver_takes(self):
        """As a checked model, with the frequencies inside."""
        info = ragged_info(5, 3, -1.0, 2.0)
        counts = Counts.empty(info.n_pairs)
        add(counts, experience(np.random.default_rng(4), info) | {(1, 0.0, 2): 3})
        bounded = KT(0.1).bounded(counts, 5, info)
        prob = counts.times / np.repeat(counts.n, np.diff(counts.succ_ptr))
        pairs = info.pair_state, info.action, counts.succ_ptr, counts.succ, prob, counts.r_mean
        assert bounded.contains(MDP.from_pairs(*pairs, r_min=-1.0, r_max=2.0, n_actions=info.n_actions))


def listed(sets):
    """Return the bytes of all that counts of a set."""
    n = int(sets.succ_ptr[-1])
    parts = sets.succ_ptr, sets.succ[:n], sets.low[:n], sets.room[:n], sets.rest, sets.r_low, sets.r_high
    return [part.tobytes() for part in parts]


class TestChangedPairsAlone:
    """A set that was brought up to date has the bits of one from scratch."""

    @pytest.mark.parametrize("room", [0, 200], ids=["room is made on the way", "there is room"])
    def test_where_successors_are_listed_between_others(self, room):
        info, rng, estimate = ragged_info(6, 3, -1.0, 2.0), np.random.default_rng(8), KT(0.2)
        planner, counts = Planner(info, estimate, DOUBLING, one_over_root), Counts.empty(info.n_pairs)
        counts.reserve(room)
        t, few, moved = 1, 0, 0
        for _ in range(60):
            pairs = rng.choice(info.n_pairs, size=int(rng.integers(1, 3)), replace=False).tolist()
            seen = {(i, float(rng.integers(-1, 3)), int(rng.integers(6))): int(rng.integers(1, 9)) for i in pairs}
            before = counts.succ_ptr.copy()
            planner.take_in(counts, Batch.from_dict(seen))
            few += int(planner._work.n_changed[0]) <= len(pairs)
            moved += any(before[i] < counts.succ_ptr[i] and counts.n[i] and i not in pairs for i in range(info.n_pairs))
            start = Start(t, 0, 0, np.zeros(4, dtype=np.uint64))
            planner.plan(counts, start, span_bound=np.inf, mixture=False, from_bias=True)
            assert listed(planner._work.sets) == listed(estimate.sets(counts, t, info))
            t += sum(seen.values())
        assert few > (50 if room else 20)
        assert moved > 10

    @pytest.mark.parametrize(
        "agent", [UCRL(bounds="kt"), SCAL(0.5, bounds="kt", best_of_both=True)], ids=["ucrl", "scal"]
    )
    def test_in_runs(self, agent):
        env = ragged_env(4)
        for horizon in (1, 7, 30, 100, 300, 1000, 3000):
            for watched in (False, True):
                kept = Kept(agent, watched)
                learn(env, kept, horizon=horizon, seed=1)
                (learner,) = kept.learners
                wanted = learner.rules.estimate.sets(learner.counts, learner.episode.start, learner.info)
                assert listed(learner._planner._work.sets) == listed(wanted)


def settings_of(delta: float, S: int, *, excess: bool = True, factor: float = 1.0):
    """Return the settings as a function of n. Mutants: ``factor`` times the level d, and intervals without the excess."""
    own = KT(delta).settings(ProblemInfo(S, 1)) - np.log(factor)
    return lambda n: own if excess else own - typical_excess(n)


@cache
def typical_excess(n: int) -> float:
    """Return the excess at k = n/2, near which all but the rarest k have it, to a few hundredths; at most ln(1/d)."""
    with interpreted():
        return float(kt_excess(n / 2, float(n)))


class TestCoverage:
    """Each interval has the level d = δ/(S²A + SA). One state: its reward alone can be missed. Two: two rewards and two coins (the two
    intervals of a coin are one event), which are independent. The bounds d and 1 − (1 − d)⁴ on the probability that the true model is ever
    missed are below δ, and near enough to what happens that a wrong level shows."""

    DELTA = 0.9
    CASES = ((1, 200, 0.9 / 2), (2, 120, 1 - (1 - 0.9 / 6) ** 4))

    @pytest.mark.parametrize(("S", "n_visits", "most"), CASES)
    def test_the_model_is_outside_as_rarely_as_promised(self, S, n_visits, most):
        failures = leaves(KT(self.DELTA), S, N_RUNS, n_visits)
        assert not is_refuted(failures, N_RUNS, most)
        assert is_refuted(failures, N_RUNS, most / 2), "and not much more rarely: the sets are not too wide"

    @pytest.mark.parametrize(("S", "n_visits", "most"), CASES)
    @pytest.mark.parametrize("fault", [{"factor": 2.0}, {"excess": False}], ids=["level doubled", "no excess"])
    def test_a_fault_shows(self, S, n_visits, most, fault):
        failures = leaves(KT(self.DELTA), S, N_RUNS, n_visits, settings=settings_of(self.DELTA, S, **fault))
        assert is_refuted(failures, N_RUNS, most)

    def test_in_audited_runs(self):
        """The sets of the episodes, as a learner has them."""
        P, r = [[[0.3, 0.7]], [[0.6, 0.4]]], [[0.5], [0.2]]
        env, n_runs = Env.from_mdp(MDP.from_dense(P, r), "bernoulli"), 100
        agent = UCRL(self.DELTA, bounds="kt")
        missed = sum(
            not learn(env, agent, horizon=100, seed=seed, points=1, gain=0.0, audit=True).episodes["contains"].all()
            for seed in range(n_runs)
        )
        assert not is_refuted(missed, n_runs, self.CASES[1][2])
        assert missed > 0, "else nothing was tested"


def queues(n: int = 4) -> Env:
    """Return two queues of at most n customers with one server, which chooses whom to serve; the cost is x + 1.5 y per slot."""
    outcomes = {}
    for x, y, a in np.ndindex(n + 1, n + 1, 2):
        served, left = (0.7, 0.3) if a == 0 else (0.5, 0.5)
        found = []
        for new_x, px in ((1, 0.25), (0, 0.75)):
            for new_y, py in ((1, 0.15), (0, 0.85)):
                for done, pd in ((1, served), (0, left)):
                    x_left, y_left = max(x - done * (a == 0), 0), max(y - done * (a == 1), 0)
                    succ = min(x_left + new_x, n) * (n + 1) + min(y_left + new_y, n)
                    found.append((px * py * pd, succ, 1 - (x + 1.5 * y) / (2.5 * n)))
        outcomes[x * (n + 1) + y, a] = found
    return Env.from_outcomes(outcomes)


PROBLEMS = {
    "three-state": (make("three-state[delta=0.01]"), 2.0, 10**6, 10),
    "riverswim": (make("riverswim"), 6.0, 10**6, 10),
    "queues": (queues(), 11.0, 10**5, 3),
}
"""{name: (environment, c, T, how many times less)}."""


@pytest.fixture(scope="module")
def runs():
    """{(problem, agent, bounds): runs}."""
    found = {}
    for name, (env, c, horizon, _) in PROBLEMS.items():
        for kind, options in (("ucrl", {}), ("scal", {"span_bound": c})):
            for bounds in ("bernstein", "kt"):
                agent = make_agent(kind, bounds=bounds, **options)
                found[name, kind, bounds] = [learn(env, agent, horizon=horizon, seed=seed) for seed in range(3)]
    return found


class TestRegret:
    """Sums over three seeds, at fixed seeds; measured ratios to the Bernstein sets are 1/35 and less, and 1/4 for the queues."""

    @pytest.mark.parametrize("kind", ["ucrl", "scal"])
    @pytest.mark.parametrize("name", PROBLEMS)
    def test_is_far_below_that_of_bernstein_sets(self, runs, name, kind):
        wide, narrow = (
            sum(run.pseudo_regret[-1] for run in runs[name, kind, bounds]) for bounds in ("bernstein", "kt")
        )
        assert wide > 1000
        assert narrow < wide / PROBLEMS[name][3]

    @pytest.mark.parametrize("name", PROBLEMS)
    def test_spans_keep_to_the_bound(self, runs, name):
        env, c, _, _ = PROBLEMS[name]
        assert c >= analyse(env.mdp).span
        for run in runs[name, "scal", "kt"]:
            assert run.span.max() <= c + 1e-12
            assert run.episodes["span"].max() <= c + 1e-12
        if name == "three-state":
            assert max(run.episodes["span"].max() for run in runs[name, "ucrl", "kt"]) > c, (
                "without the bound they do not"
            )


class TestOptions:
    @pytest.mark.parametrize(
        ("option", "value", "sentence"),
        [
            ("p_scale", 0.5, r"bounds='kt' have no factor p_scale; got 0.5. Leave it out, or use bounds='bernstein'."),
            ("r_scale", 2.0, r"bounds='kt' have no factor r_scale; got 2.0. Leave it out"),
            ("delta", "rsqrt", r"bounds='kt' need a fixed delta; got 'rsqrt'. Leave it out"),
            ("perturb", True, r"bounds='kt' cannot be perturbed; got True. Leave it out"),
        ],
    )
    def test_what_it_does_not_define_is_refused(self, option, value, sentence):
        given = {option: value}
        text = f"{option}={str(value).lower()},bounds=kt"
        with pytest.raises(OptionError, match=f"SCAL: {sentence}"):
            SCAL(5.0, bounds="kt", **given)
        with pytest.raises(OptionError, match=f"SCAL: {sentence}"):
            make_agent(f"scal[span_bound=5,{text}]")
        if option == "perturb":  # of SCAL alone
            return
        with pytest.raises(OptionError, match=f"UCRL: {sentence}"):
            UCRL(bounds="kt", **given)
        with pytest.raises(OptionError, match=f"UCRL: {sentence}"):
            make_agent(f"ucrl[{text}]")

    def test_factors_of_1_have_no_effect(self):
        assert make_agent("scal[span_bound=5,p_scale=1,r_scale=1,bounds=kt]") == SCAL(5.0, bounds="kt")

    def test_unknown_bounds_are_refused(self):
        with pytest.raises(OptionError, match=r"UCRL: bounds must be bernstein.*; got 'kts'"):
            UCRL(bounds="kts")

    @pytest.mark.parametrize("text", ["scal[span_bound=5,bounds=kt]", "ucrl[bounds=kt]", "ucrl[delta=0.1,bounds=kt]"])
    def test_text_form(self, text):
        assert agent_id(text) == text == agent_id(make_agent(text))
        assert isinstance(make_agent(text).rules.estimate, KT)
        assert make_agent(text).rules.estimate.delta == make_agent(text).delta

    def test_the_level_is_what_was_asked_for(self):
        info = ProblemInfo(7, 3)
        (level,) = KT(0.3).settings(info)
        assert level == pytest.approx(np.log((49 * 3 + 21) / 0.3), rel=1e-15)


class TestRuns:
    @pytest.mark.parametrize(
        "agent", [UCRL(bounds="kt"), SCAL(0.4, bounds="kt"), SCAL(0.4, bounds="kt", policy="greedy", warm_start=False)]
    )
    @pytest.mark.parametrize("seed", [1, 2])
    def test_all_ways_agree(self, agent, seed):
        run, _ = assert_all_ways_agree(ragged_env(seed), agent, 2000, seed)
        assert run.n_episodes[-1] > 10

    @pytest.mark.parametrize("agent", [UCRL(0.9, bounds="kt"), SCAL(0.4, bounds="kt")])
    def test_interpreted(self, agent):
        assert_interpreted_agrees(ragged_env(2, r_min=100.0, r_max=100.5), agent, 300, 1)

    def test_contract(self):
        check_agent("ucrl[bounds=kt]")
        check_agent("scal[span_bound=0.4,bounds=kt]")
