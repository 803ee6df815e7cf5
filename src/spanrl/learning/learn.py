"""Run an agent in an environment and measure its regret.

::

    seed → SeedSequence(seed, spawn_key=(0,)) for the environment, (1,) for the agent
    each episode: counts → set → solve → compiled interaction until the episode rule fires → record

The regret at t is t·g* − Σ rewards received, the pseudo-regret t·g* − Σ r(s_u, a_u). Agents see states, actions and rewards alone; g* and
the model belong to the measuring side. The same seed gives the same bits, whoever runs the loop.

Where a Gymnasium environment cuts its episodes (``TimeLimit``), g* is still that of its table, without the limit: an agent may never reach
it, or exceed it. The regret is then not exact; ``run.meta["regret_exact"]`` is False, and the summary says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from numbers import Real
from time import perf_counter
from typing import Any

from spanrl.agents.registry import Agent, agent_id, make_agent
from spanrl.errors import OptionError
from spanrl.learning.notes import notes
from spanrl.learning.optimum import find_optimum
from spanrl.learning.run import Run
from spanrl.learning.session import Session
from spanrl.learning.worlds import about, as_world
from spanrl.models.costs import flip
from spanrl.options import whole_number
from spanrl.seeding import check_seed
from spanrl.terminal import error_console, visible

_REDRAW = 0.05  # seconds


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
        env: a text such as "three-state[delta=0.005]" or "gym:FrozenLake-v1[is_slippery=false]", the path of a model file, an ``Env``, an
            ``MDP`` (pays its mean rewards), or a Gymnasium environment with Discrete spaces (rewards in its ``reward_range``, else in the
            range of its table P, else in [0, 1]). Gymnasium's are played from their table, where :meth:`Env.from_gymnasium` takes it,
            otherwise step by step; ``run.meta["played"]`` and the summary say which.
        agent: a text such as "scal[span_bound=5]", or an agent.
        horizon: number of steps.
        seed: a whole number ≥ 0.
        points: measurement times per decade of t; the horizon is one, too.
        gain: g* (a cost, in a model with costs), where it cannot be computed (a Gymnasium environment without a table); regrets are NaN
            without it. For an environment that cuts its episodes, give the best average reward under its limit, if you know it.
        audit: also record, per episode, whether the true model lies in the confidence set, and the gain bracket.
        progress: show a bar on standard error.

    Agents see rewards, −costs in a model with costs, and are told their range: declare it (r_min, r_max) when you make a model. One that
    was found from the data is used with a note, since it tells an agent more than it should know.

    Ctrl-C ends the run within half a second; what was done so far is returned with ``run.interrupted`` true.

    Returns:
        A :class:`Run`.

    Raises:
        InputError: an option is out of its range, a name is not known, or a file is no model.
        NotConvergedError: a plan could not be made to its tolerance.

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
    world, chosen = as_world(env), _agent(agent)
    name = agent_id(agent if isinstance(agent, str) else chosen)
    session = Session(world, chosen, name, horizon=steps, seed=whole, points=per_decade, audit=bool(audit))
    meta, interrupted, optimum = session.meta, False, None
    said: list[str] = []
    try:
        if gain is None:
            optimum = find_optimum(session.mdp)
            best = None if optimum is None else optimum.gain
        else:
            best = flip("costs" in meta, float(gain))
        with _bar(steps, f"{meta['agent']} on {meta['env']}", progress) as tick:
            session.run(best, tick)
        said = notes(session.learner, optimum, session.mdp)
    except (KeyboardInterrupt, SystemError, RuntimeError) as error:
        if not _is_interrupt(error):
            raise
        interrupted = True
    run = session.result(interrupted).keep(session.learned())
    run.meta["notes"] = said
    run.meta.update(about(world, gain_given=gain is not None))
    return run


def _is_interrupt(error: BaseException | None) -> bool:
    """Tell whether an error is Ctrl-C; numba makes another error of it where it comes while code is compiled or results handed over."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _agent(agent: Any) -> Agent:
    """Return the agent of a text, or the agent itself."""
    if isinstance(agent, str):
        return make_agent(agent)
    if isinstance(agent, type) or not isinstance(agent, Agent):
        raise OptionError(
            f"learn: the agent must be a text such as 'scal[span_bound=5]' or an agent with start(info, rng); got {agent!r}."
        )
    return agent


@contextmanager
def _bar(total: int, what: str, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error; yield the function that moves it."""
    if not wanted:
        yield lambda done: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[speed]}", markup=False), TimeRemainingColumn(),
    )  # fmt: skip
    begun = shown = perf_counter()
    with Progress(*columns, console=error_console(), transient=True) as bar:
        task = bar.add_task(visible(what), total=total, speed="")

        def tick(done: int) -> None:
            nonlocal shown
            now = perf_counter()
            if now - shown < _REDRAW:
                return
            shown = now
            speed = done / max(now - begun, 1e-9)
            bar.update(task, completed=done, speed=f"{speed:,.0f} steps/s")

        yield tick
