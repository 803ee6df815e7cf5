"""Confidence sets: their radii (C0) and their coverage (C1)."""

from __future__ import annotations

from collections import Counter
from math import pi
from typing import NamedTuple

import numpy as np
from scipy.stats import beta, binom

from spanrl.agents.registry import Agent
from spanrl.agents.scal import SCAL
from spanrl.agents.ucrl import UCRL
from spanrl.agents.ucrl2 import UCRL2
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.confidence.hoeffding import HoeffdingBall
from spanrl.envs.env import Env
from spanrl.models.bounded import BoundedMDP
from spanrl.models.counts import Counts
from spanrl.models.info import ProblemInfo
from spanrl.paper import oracles_learning as paper
from spanrl.paper.claims.base import CheckResult, Claim, Gaps, Ledger, Scale
from spanrl.paper.claims.sampling import check_sampling
from spanrl.paper.instances import RANGES, generator, random_mdp
from spanrl.paper.oracles_learning import Ball, Intervals, Seen, Setting
from spanrl.paper.oracles_sets import pair_ball, pair_box
from spanrl.paper.replay import replay, run, sizes
from spanrl.paper.system import System

Region = BernsteinBox | HoeffdingBall

RADII = 1e-12
"""Allowed distance of an end of an interval from the printed formula."""

LEVEL = 1e-3
"""Probability with which a true statistical claim would be called false."""


class Row(NamedTuple):
    """What was seen of one pair, and the ends of its set, computed by hand (``bc -l``, 30 digits)."""

    region: Region
    S: int
    A: int
    t: int
    rewards: dict[float, int]
    successors: dict[int, int]
    ends: Intervals | Ball
    r_min: float = 0.0
    r_max: float = 1.0


_REST = 0.20254631828958368  # (49/3) ln(240000)/999
TABLE = (
    # b = ln(2·3·2·1000/0.05), σ̂²_r = 240/999
    Row(BernsteinBox(), 3, 2, 1000, {0.0: 600, 1.0: 400}, {0: 900, 1: 100},
        Intervals(0.0, 0.806670474603823155, [0.572516190560127882, 0.0, 0.0], [1.0, 0.427483809439872118, _REST])),
    # the optimistic reward is capped
    Row(BernsteinBox(), 3, 2, 1000, {1.0: 1000}, {1: 1000},
        Intervals(0.79745368171041632, 1.0, [0.0, 0.79745368171041632, 0.0], [_REST, 1.0, _REST])),
    # b = ln(2·2·1·3/0.1), N = 2, α = 0.001
    Row(BernsteinBox(0.1, 0.001, 0.001), 2, 1, 3, {0.0: 1, 1.0: 1}, {0: 1, 1: 1},
        Intervals(0.29235847850524328, 0.70764152149475672, [0.330272282274256363] * 2, [0.669727717725743637] * 2)),
    # b = ln(2·2·2·2/0.5), N = 1, α = 0.01
    Row(BernsteinBox(0.5, 0.01, 0.01), 2, 2, 2, {0.25: 1}, {1: 1},
        Intervals(0.0, 0.816070197457288669, [0.0, 0.433929802542711331], [0.566070197457288669, 1.0])),
    # δ = 1/√t, b = ln(2·4·3·10⁴·100), rewards in [−2, 3], σ̂²_r = 1250/499, α_r = 0.05, α_p = 0.2
    Row(BernsteinBox("rsqrt", 0.2, 0.05), 4, 3, 10_000, {-2.0: 100, 0.5: 300, 3.0: 100}, {0: 250, 3: 250},
        Intervals(0.116816816930973414, 0.883183183069026586,
             [0.23450960277084951, 0.0, 0.0, 0.23450960277084951],
             [0.76549039722915049, 0.111247114900106716, 0.111247114900106716, 0.76549039722915049]), -2.0, 3.0),
    # UCRL2: √(7 ln(240000)/2000) and √(14·3·ln(80000)/1000)
    Row(HoeffdingBall(), 3, 2, 1000, {0.0: 600, 1.0: 400}, {0: 900, 1: 100},
        Ball(0.191770848082852604, 0.608229151917147396, [0.9, 0.1, 0.0], 0.688600639248579832)),
    # never seen: everything
    Row(BernsteinBox(), 2, 2, 7, {}, {}, Intervals(-1.0, 2.0, [0.0, 0.0], [1.0, 1.0]), -1.0, 2.0),
    Row(HoeffdingBall(), 2, 2, 7, {}, {}, Ball(-1.0, 2.0, None, 2.0), -1.0, 2.0),
)  # fmt: skip


def gaps_C0(bounded: BoundedMDP, i: int, want: Intervals | Ball) -> Gaps:
    """Return the distance of the ends of pair i from those wanted (App. F, the two displayed radii)."""
    gaps = {
        "reward, lower end": abs(bounded.r_low[i] - want.r_low),
        "reward, upper end": abs(bounded.r_high[i] - want.r_high),
    }
    if isinstance(want, Intervals):
        low, high = pair_box(bounded, i)
        gaps["probability, lower end"] = float(np.abs(low - want.p_low).max())
        gaps["probability, upper end"] = float(np.abs(high - want.p_high).max())
        return gaps
    centre, radius = pair_ball(bounded, i)
    gaps["radius of a ball"] = abs(radius - want.radius)
    if want.centre is not None:
        gaps["centre of a ball"] = float(np.abs(centre - want.centre).max())
    return gaps


def counts_of(pairs: list[Seen]) -> Counts:
    """Return the statistics of what was seen, rounded once from exact fractions."""
    succ = [sorted(s for s, times in seen.successors.items() if times) for seen in pairs]
    times = [seen.successors[s] for seen, listed in zip(pairs, succ, strict=True) for s in listed]
    return Counts(
        np.array([seen.n for seen in pairs], dtype=np.int64),
        np.array([float(seen.mean) if seen.n else 0.0 for seen in pairs]),
        np.array([float(seen.variance * (seen.n - 1)) if seen.n else 0.0 for seen in pairs]),
        np.cumsum([0, *(len(listed) for listed in succ)], dtype=np.int64),
        np.array([s for listed in succ for s in listed], dtype=np.uint32),
        np.array(times, dtype=np.int64),
    )


def setting(region: Region, t: int, info: ProblemInfo, A: int) -> Setting:
    """Return what the radii of ``region`` depend on besides the samples."""
    scales = (region.p_scale, region.r_scale) if isinstance(region, BernsteinBox) else (1.0, 1.0)
    return Setting(int(info.n_states), A, t, region.delta, *scales, info.r_min, info.r_max)


def wanted(region: Region, seen: Seen, at: Setting) -> Intervals | Ball:
    """Return the set of a pair by the oracle."""
    return paper.bernstein_ends(seen, at) if isinstance(region, BernsteinBox) else paper.hoeffding_ends(seen, at)


def random_experience(rng: np.random.Generator) -> tuple[ProblemInfo, int, list[Seen]]:
    """Draw a problem with ragged actions (and columns that no state has), its A, and experience of its pairs."""
    S, columns = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    available = rng.random((S, columns)) < 0.5
    available[np.arange(S), rng.integers(columns - 1, size=S)] = True
    available[:, -1] = False
    r_min, r_max = RANGES[rng.integers(3)]
    info = ProblemInfo(S, columns, r_min=r_min, r_max=r_max, available=available)
    pairs = []
    for _ in range(info.n_pairs):
        n = int(rng.choice([0, 1, 2, 3, 30, 400, 5000, 10**6]))
        values = r_min + (r_max - r_min) * rng.choice([0.0, 0.25, 0.625, 1.0], size=int(rng.integers(1, 4)))
        rewards = rng.multinomial(n, rng.dirichlet(np.ones(values.size))).tolist()
        reached = rng.multinomial(n, rng.dirichlet(np.full(S, 0.3))).tolist()
        seen = Seen()
        for value, times in zip(values.tolist(), rewards, strict=True):
            seen.rewards[value] += times
        seen.successors.update({s: times for s, times in enumerate(reached) if times})
        pairs.append(seen)
    return info, int(available.sum(axis=1).max()), pairs


def random_region(rng: np.random.Generator) -> Region:
    """Draw a region: three boxes in four, with any level and scales."""
    levels: tuple[float | str, ...] = (0.05, 0.9, 1e-6, "rsqrt")
    delta = levels[rng.integers(4)]
    if rng.random() < 0.25:
        return HoeffdingBall(delta)
    return BernsteinBox(delta, *(float(x) for x in rng.choice([1.0, 0.05, 0.005, 2.0], size=2)))


def random_env(rng: np.random.Generator) -> Env:
    """Draw an environment of three states with rewards in [−1, 2], paid as −1 or 2."""
    while True:
        mdp = random_mdp(rng, S=3, A=2, positive=True)
        if mdp.r_min == -1:
            return Env.from_mdp(mdp, "bernoulli")


def check_C0(system: System, scale: Scale) -> CheckResult:
    """Check the ends of sets: a table computed by hand, random experience, and learners whose steps are counted here."""
    rng, ledger = generator("C0"), Ledger()
    for row in TABLE:
        info = ProblemInfo(row.S, row.A, r_min=row.r_min, r_max=row.r_max)
        seen = Seen(Counter(row.rewards), Counter(row.successors))
        experience = counts_of([seen, *(Seen() for _ in range(info.n_pairs - 1))])
        found = system.confidence_set(row.region, experience, row.t, info)
        ledger.gaps({f"table: {k}": gap for k, gap in gaps_C0(found, 0, row.ends).items()}, RADII)
    for _ in range(scale.instances * 2):
        info, A, pairs = random_experience(rng)
        region, t = random_region(rng), int(10 ** rng.uniform(0, 8))
        found = system.confidence_set(region, counts_of(pairs), t, info)
        _compare(ledger, "random", found, region, pairs, setting(region, t, info, A))
    if ledger.broken:
        return ledger.outcome()
    agents = (SCAL(2.0, p_scale=0.02, r_scale=0.05), UCRL("rsqrt", r_scale=0.01), UCRL2(0.2), SCAL(1.0, 0.5))
    places = (system.make("three-state"), random_env(rng), system.make("riverswim[n_states=3]"))
    for number in range(scale.instances // 4):
        env = (*places, random_env(rng))[number % 4]
        for agent in agents:
            _compare_learner(ledger, system, env, agent, number)
    return ledger.outcome(needs=_CASES)


_CASES = (
    "N = 0", "N = 1", "optimistic reward capped at r_max", "pessimistic reward kept above r_min", "p kept in [0, 1]",
    "unseen successors held below 1", "ends inside, r_min ≠ 0", "ends inside, δ = 1/√t", "balls of radius below 2",
)  # fmt: skip


def _compare(ledger: Ledger, who: str, found: BoundedMDP, region: Region, pairs: list[Seen], at: Setting) -> None:
    """Compare all pairs of a set with the oracle, and count the cases that occur."""
    for i, seen in enumerate(pairs):
        want = wanted(region, seen, at)
        ledger.gaps({f"{who}: {name}": gap for name, gap in gaps_C0(found, i, want).items()}, RADII)
        inside = seen.n > 0 and want.r_low > at.r_min and want.r_high < at.r_max
        ledger.count("N = 0", seen.n == 0)
        ledger.count("N = 1", seen.n == 1)
        ledger.count("optimistic reward capped at r_max", seen.n and want.r_high == at.r_max)
        ledger.count("pessimistic reward kept above r_min", seen.n and want.r_low == at.r_min)
        ledger.count("ends inside, r_min ≠ 0", inside and at.r_min != 0)
        ledger.count("ends inside, δ = 1/√t", inside and at.delta == "rsqrt")
        if isinstance(want, Intervals):
            ledger.count("p kept in [0, 1]", seen.n and max(want.p_high) == 1.0 and min(want.p_low) == 0.0)
            unseen = [high for s, high in enumerate(want.p_high) if not seen.successors[s]]
            ledger.count("unseen successors held below 1", unseen and max(unseen) < 1)
        else:
            ledger.count("balls of radius below 2", want.radius < 2)


def _compare_learner(ledger: Ledger, system: System, env: Env, agent: Agent, seed: int) -> None:
    """Drive a learner by hand and compare its set at the start of every episode."""
    for moment in replay(system, env, agent, horizon=1500, seed=seed):
        if not moment.over:
            learner, region = moment.learner, moment.learner.rules.estimate
            at = setting(region, moment.t, learner.info, sizes(env.mdp)[1])
            _compare(ledger, "learner", learner.confidence_set(), region, moment.seen, at)
            ledger.count("episodes of learners compared")


COVERED = (("three-state[delta=0.05]", 2.0), ("two-state", 1.0), ("riverswim[n_states=3]", 5.0))


def check_C1(system: System, scale: Scale, delta: float = 0.9, horizon: int = 2000) -> CheckResult:
    """Count the runs in which the true model leaves a confidence set, and compare with the binomial law of the bound.

    That law needs runs that draw from the true model, each from random numbers of its own: this is checked too.
    """
    rng, ledger = generator("C1"), Ledger()
    check_sampling(system, ledger)
    n, most = scale.instances * (len(COVERED) + 1), delta * (pi**6 / 945) / 15
    critical = next(k for k in range(n + 2) if binom.sf(k - 1, n, most) <= LEVEL)
    outside = episodes = 0
    for seed in range(scale.instances):
        for env, c in (*COVERED, (random_env(rng), 3.0)):
            agent = UCRL(delta) if seed % 4 == 3 else SCAL(c, delta)
            found = run(system, env, agent, horizon=horizon, seed=seed, audit=True)
            outside += int(not found.episodes["contains"].all())
            episodes += found.episodes["contains"].size
            ledger.true(f"at most {critical - 1} runs with M outside (level {LEVEL:g})", outside < critical)
    ledger.note("runs", n)
    ledger.note("episodes", episodes)
    ledger.note("runs in which M left a set", outside)
    ledger.note("δ ζ(6)/15", most)
    ledger.note("runs with M outside that would reject it", critical)
    ledger.note("upper limit of the probability, 99.9 %", float(beta.ppf(1 - LEVEL, outside + 1, n - outside)))
    ledger.note(
        "power",
        "low: with these radii the model leaves a set far more rarely than the bound allows; C0 is the sharp check",
    )
    return ledger.outcome()


CLAIMS = (
    Claim(
        id="C0",
        title="The confidence radii are the printed ones",
        place="Sec. 3.1; App. F, the two displayed radii; UCRL2: Jaksch et al. 2010, Eq. 3 and 4",
        statement="β = √(14 α σ̂² b/max{1, N}) + (49/3) α r_max b/max{1, N − 1} with b = ln(2SAt_k/δ), A = max_s |A_s|, the "
        "unbiased variance of rewards and p̂(1 − p̂); sets are cut to [r_min, r_max] and [0, 1], and are everything "
        "where N = 0.",
        tolerance=f"{RADII:g} absolute on every end, against a table computed by hand and 40-digit arithmetic.",
        check=check_C0,
    ),
    Claim(
        id="C1",
        title="The true model stays in all confidence sets",
        place="Thm. 22, App. F",
        statement="α = 1: P(M ∉ M_k for some k) ≤ Σ_t δ/(15 t⁶) = δ ζ(6)/15.",
        tolerance=f"level {LEVEL:g}: binomial law of independent runs, each with at most that probability; δ = 0.9. Low power. "
        f"What runs draw: χ² and z tests against the rules of the domains, level {LEVEL:g} together.",
        check=check_C1,
    ),
)
