"""Run an agent in an environment and measure its regret.

::

    seed → SeedSequence(seed, spawn_key=(0,)) for the environment, (1,) for the agent
    each episode: counts → set → solve → compiled interaction until the episode rule fires → record

The regret at t is t·g* − Σ rewards received, the pseudo-regret t·g* − Σ r(s_u, a_u). Agents see states, actions and rewards alone; g* and
the model belong to the measuring side. The same seed gives the same bits, whoever runs the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite, nan
from numbers import Integral, Real
from time import perf_counter
from typing import Any, TypeGuard

import numpy as np

from spanrl.agents.learner import Learner
from spanrl.agents.registry import Agent, AnyLearner, agent_id, make_agent
from spanrl.errors import OptionError
from spanrl.kernels.interact import add_up, harvest, interact
from spanrl.learning.options import whole_number
from spanrl.learning.recorder import Recorder
from spanrl.learning.run import Run
from spanrl.learning.simulate import BUDGET
from spanrl.learning.worlds import GymWorld, TableWorld, as_world
from spanrl.models.counts import Batch
from spanrl.models.info import ProblemInfo
from spanrl.models.mdp import MDP
from spanrl.planning.analyse import analyse
from spanrl.seeding import check_seed, get_state, is_compilable, set_state, streams

_NOBODY = np.zeros(4, dtype=np.uint64)


def learn(
    env: Any,
    agent: Any,
    *,
    horizon: float,
    seed: int,
    points: float = 100,
    gain: float | None = None,
    audit: bool = False,
    progress: bool = False,
) -> Run:
    """Let ``agent`` learn in ``env`` for ``horizon`` steps; return its curve and its episodes.

    Args:
        env: a text such as "three-state[delta=0.005]", the path of a model file, an ``Env``, an ``MDP`` (pays its mean rewards), or a
            Gymnasium environment with Discrete spaces (rewards in its ``reward_range``, else in the range of its table P, else in [0, 1]).
        agent: a text such as "scal[span_bound=5]", or an agent.
        horizon: number of steps.
        seed: a whole number ≥ 0.
        points: measurement times a decade of t; the horizon is one, too.
        gain: g*, where it cannot be computed (a Gymnasium environment without a table); regrets are NaN without it.
        audit: also record, per episode, whether the true model lies in the confidence set, and the gain bracket.
        progress: show a bar on standard error.

    Ctrl-C ends the run within half a second; what was done so far is returned with ``run.interrupted`` true.

    >>> run = learn("three-state[delta=0.01]", "scal[span_bound=2]", horizon=10_000, seed=0)
    >>> run.t[-1], bool(run.regret[-1] < 5000)
    (np.int64(10000), True)
    """
    steps, per_decade = whole_number("learn", "horizon", horizon), whole_number("learn", "points", points, 10**5)
    whole = check_seed("learn", seed)
    if whole >= 2**63:
        raise OptionError(f"learn: the seed must be below 2⁶³, to fit into the files; got {seed!r}. Give 0, say.")
    if gain is not None and (isinstance(gain, bool) or not isinstance(gain, Real) or not isfinite(gain)):
        raise OptionError(
            f"learn: gain must be a finite number or None; got {gain!r}. Leave it out to have it computed."
        )
    world = as_world(env)
    chosen = _agent(agent)
    info = world.info(steps)
    env_rng, agent_rng = streams(whole)
    learner = chosen.start(info, agent_rng)
    if not isinstance(learner, AnyLearner):
        raise OptionError(f"learn: start(info, rng) must return a learner with act and observe; got {learner!r}.")
    if audit and (world.mdp is None or not isinstance(learner, Learner)):
        raise OptionError("learn: audit needs the true model and an agent with confidence sets. Leave audit out.")
    meta: dict[str, Any] = {
        "env": world.id, "agent": agent_id(chosen), "seed": whole, "horizon": steps, "points": per_decade,
        "audit": bool(audit), "r_min": info.r_min, "r_max": info.r_max,
        "n_states": int(info.n_states), "n_actions": int(info.n_actions),
    }  # fmt: skip
    recorder, interrupted = Recorder(steps, per_decade, None, world.mdp, audit), False
    simulating = [0.0]
    try:
        best = float(gain) if gain is not None else optimal_gain(world.mdp)
        recorder = Recorder(steps, per_decade, best, world.mdp, audit)
        with _bar(steps, f"{meta['agent']} on {meta['env']}", progress) as tick:
            if isinstance(world, TableWorld) and _runs_compiled(learner):
                _run_compiled(world, learner, env_rng, recorder, tick, simulating)
            else:
                _run_by_hand(world, learner, info, env_rng, recorder, tick, simulating)
    except (KeyboardInterrupt, SystemError, RuntimeError) as error:
        if not _is_interrupt(error):
            raise
        interrupted = True
    meta["gain"] = recorder.gain
    seconds = {"planning": float(getattr(learner, "seconds", 0.0)), "simulating": simulating[0]}
    return recorder.run(meta, seconds, interrupted)


def _runs_compiled(learner: Any) -> TypeGuard[Learner]:
    """Tell whether the compiled loop takes the decisions that the learner would take itself."""
    ours = isinstance(learner, Learner) and all(
        getattr(type(learner), name) is getattr(Learner, name) for name in ("act", "observe")
    )
    return ours and is_compilable(learner.rng)


def _is_interrupt(error: BaseException | None) -> bool:
    """Tell whether an error is Ctrl-C; numba makes another error of it where it comes while code is compiled or results handed over."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def optimal_gain(mdp: MDP | None) -> float | None:
    """Return g*, exactly where the model is small; where it differs between states, that of the start."""
    if mdp is None:
        return None
    return float(np.dot(mdp.start, analyse(mdp, diameter=False).gains))


def _agent(agent: Any) -> Agent:
    """Return the agent of a text, or the agent itself."""
    if isinstance(agent, str):
        return make_agent(agent)
    if isinstance(agent, type) or not isinstance(agent, Agent):
        raise OptionError(
            f"learn: the agent must be a text such as 'scal[span_bound=5]' or an agent with start(info, rng); got {agent!r}."
        )
    return agent


def _run_compiled(
    world: TableWorld,
    learner: Learner,
    rng: np.random.Generator,
    recorder: Recorder,
    tick: Callable[[int], None],
    simulating: list[float],
) -> None:
    """Play episodes in compiled code: Python is met at their ends, at measurement times and once a budget."""
    sampler, mean = world.env.sampler, world.env.mdp.reward
    table = sampler.out_ptr, sampler.reward, sampler.succ
    tally = np.zeros(sampler.succ.size, dtype=np.int64)
    state = world.reset(rng)
    words, batch, before = get_state(rng), None, (0.0, 0.0)
    while learner.t < recorder.horizon:
        learner.begin_episode(batch)
        recorder.begin(learner)
        plan, over = learner.plan, False
        assert plan is not None
        begun = perf_counter()
        while not over and learner.t < recorder.horizon:
            draws = get_state(learner.rng) if plan.mixes else _NOBODY
            steps = min(BUDGET, recorder.next_time - learner.t)
            done, state, over = interact(
                sampler, plan.pairs, plan.weight, plan.mixes, plan.left, tally, words, draws, state, steps
            )
            if plan.mixes:
                set_state(learner.rng, draws)
            learner.t += done
            if not over or learner.t == recorder.next_time:
                paid, expected = add_up(*table[:2], mean, plan.pairs, tally)
                recorder.reach(learner.t, before[0] + paid, before[1] + expected)
                tick(learner.t)
        paid, expected, *seen = harvest(*table, mean, plan.pairs, tally)
        before, batch = (before[0] + paid, before[1] + expected), Batch(*seen)
        recorder.reach(learner.t, *before)
        simulating[0] += perf_counter() - begun


def _run_by_hand(
    world: TableWorld | GymWorld,
    learner: Any,
    info: ProblemInfo,
    rng: np.random.Generator,
    recorder: Recorder,
    tick: Callable[[int], None],
    simulating: list[float],
) -> None:
    """Play step by step, for environments and agents that are not compiled."""
    begun = perf_counter()
    mdp, state, paid, expected, episodes = world.mdp, world.reset(rng), 0.0, 0.0, 0
    available = set(zip(info.pair_state.tolist(), info.action.tolist(), strict=True))
    for t in range(1, recorder.horizon + 1):
        chosen = learner.act(state)
        action = int(chosen) if isinstance(chosen, Integral) else -1
        if isinstance(learner, Learner) and learner.n_episodes > episodes:
            episodes = learner.n_episodes
            recorder.begin(learner)
        if (state, action) not in available:
            raise OptionError(
                f"learn: the agent played action {chosen!r} in state {state} at step {t}, where it is not available."
            )
        reward, succ, onwards = world.step(state, action, t)
        learner.observe(reward, succ)
        paid += reward
        expected = expected + mdp.reward[mdp.pair(state, action)] if mdp is not None else nan
        state = onwards
        recorder.reach(t, paid, expected)
        if t % 1024 == 0:
            tick(t)
            simulating[0] = perf_counter() - begun - getattr(learner, "seconds", 0.0)
    simulating[0] = perf_counter() - begun - getattr(learner, "seconds", 0.0)


@contextmanager
def _bar(total: int, what: str, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error; yield the function that moves it."""
    if not wanted:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[speed]}", markup=False), TimeRemainingColumn(),
    )  # fmt: skip
    begun = perf_counter()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(str(Text(what)), total=total, speed="")

        def tick(done: int) -> None:
            speed = done / max(perf_counter() - begun, 1e-9)
            bar.update(task, completed=done, speed=f"{speed:,.0f} steps/s")

        yield tick
