"""What sharper confidence sets are worth, and how fast each agent of the family is.

Regrets are means of the pseudo-regret over equal seeds; the value of a row is that of the paper's constants over that of KT bounds. On two
queues it is the part of the range from the best to the worst gain by which the last policy misses the best. Rates are steps per second of
processor time, planning included.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median
from time import process_time

from harness import Row

from spanrl import MDP, Env, evaluate, learn, make, solve
from spanrl.agents.registry import make_agent
from spanrl.learning.session import Session
from spanrl.learning.worlds import as_world

RIVER = "riverswim[variant=osband]"
REGRETS = {
    "three-state": ("scal[span_bound=2{}]", "ucrl{}", 20.0),
    RIVER: ("scal[span_bound=10{}]", "ucrl{}", 20.0),
    "4-rooms": ("scal[span_bound=2{}]", "ucrl{}", 10.0),
}
"""Problem → SCAL, UCRL, and how many times smaller the regret of both is to be with KT bounds."""

RATES = {
    "scal[span_bound=7,bounds=kt]": 1e7,
    "ucrl[bounds=kt]": 1e7,
    "ucrl2b": 1e7,
    "ucrl3": 1e7,
    "ucrl3[noss=true]": 2e6,
    "kl-ucrl": 2e6,
    "tucrl": 1e7,
    "tucrl[bounds=kt]": 1e7,
    "scal-plus[span_bound=7]": 1e7,
    "focus[span_bound=7]": 1e7,
    "tsde": 1e7,
    "imed-rl": 3e5,
}
"""Agent → steps per second that are asked of it."""

QUEUES, GUARANTEED, BESIDE = "two-queues", "scal[span_bound=2500,bounds=kl]", "scal[span_bound=2500,bounds=kt]"


def sharp_rows(smoke: bool) -> list[Row]:
    """Return the rows of all three questions."""
    T, seeds = (1000, range(2)) if smoke else (10**6, range(20))
    regrets = [
        _regret_row(problem, agent, target, T, seeds)
        for problem, (*agents, target) in REGRETS.items()
        for agent in agents
    ]
    queues = [
        _queue_row(agent, target, 1000 if smoke else 10**8, range(2))
        for agent, target in ((GUARANTEED, 0.1), (BESIDE, None))
    ]
    return [*regrets, *queues, *(_rate_row(agent, target, T) for agent, target in RATES.items())]


def _regret_row(problem: str, agent: str, target: float, T: int, seeds: Sequence[int]) -> Row:
    plain, sharp = (agent.format(more) for more in ("", ",bounds=kt" if "[" in agent else "[bounds=kt]"))
    paper, kt = (
        mean(float(learn(problem, one, horizon=T, seed=seed).pseudo_regret[-1]) for seed in seeds)
        for one in (plain, sharp)
    )
    note = f"{paper:,.0f} with the paper's constants, {kt:,.0f} with KT; {len(seeds)} seeds"
    group = f"Pseudo-regret at T = {T:g}: the paper's constants over KT"
    return Row(group, f"{plain} on {problem}", paper / kt, "×", target, at_least=True, note=note)


def _queue_row(agent: str, target: float | None, T: int, seeds: Sequence[int]) -> Row:
    env = make(QUEUES)
    mdp = env.mdp
    best, worst = solve(mdp).gain, -solve(_negated(mdp)).gain
    gaps = [(best - _last_gain(env, agent, T, seed, best)) / (best - worst) for seed in seeds]
    note = f"gaps {', '.join(f'{gap:.4f}' for gap in gaps)}; gains from {worst:.4g} to {best:.4g}"
    group = f"Two queues, 400 states, T = {T:g}: how far the last policy is from the best one"
    return Row(group, agent, max(gaps), "", target, note=note)


def _negated(mdp: MDP) -> MDP:
    table = mdp.pair_state, mdp.action, mdp.succ_ptr, mdp.succ, mdp.prob
    return MDP.from_pairs(*table, -mdp.reward, r_min=-mdp.r_max, r_max=-mdp.r_min)


def _last_gain(env: Env, agent: str, T: int, seed: int, gain: float) -> float:
    session = Session(as_world(env), make_agent(agent), agent, horizon=T, seed=seed, points=1)
    session.run(gain, lambda t: None)
    return float(evaluate(env.mdp, session.learner.policy).gain[0])


def _rate_row(agent: str, target: float, T: int) -> Row:
    learn(RIVER, agent, horizon=1000, seed=0)  # compiled before
    seconds = []
    for seed in range(3):
        begun = process_time()
        learn(RIVER, agent, horizon=T, seed=seed)
        seconds.append(process_time() - begun)
    return Row(f"RiverSwim, T = {T:g}: steps per second", agent, T / median(seconds), "", target, at_least=True)
