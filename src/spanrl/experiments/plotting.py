"""What the quantities of an experiment are called and on which scales they are drawn, and one chart of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl import names
from spanrl.axes import DARK_GREY, draw_mean, literal, new_axes, set_scales, tidy
from spanrl.errors import OptionError
from spanrl.experiments.coincidence import coinciding
from spanrl.experiments.spec_entry import SpecEntry
from spanrl.models.costs import flip, flip_ends
from spanrl.options import one_of

if TYPE_CHECKING:
    from spanrl.experiments.results import Results

TITLES = {
    "regret": "regret",
    "pseudo_regret": "pseudo-regret",
    "reward": "cumulative reward",
    "span": "span of the optimistic bias",
    "n_episodes": "episodes",
}
"""The quantities that are shown over time, and what stands at their axes."""

SCALES = ("linear", "log")


class MeanCurve(NamedTuple):
    """The mean over runs at the times ``t``, and the ends of its interval."""

    t: NDArray[np.int64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def scales_of(value: str, scale: str) -> tuple[str, str]:
    """Return the scales of the time axis and of the values: ``scale`` for all that is summed over time.

    On linear ones a steady loss looks steady. Spans change, and episodes begin, mostly early on: their time is logarithmic either way.
    """
    return ("log", "linear") if value in ("span", "n_episodes") else (scale, scale)


def plot_means(results: Results, ax: Any, env: str | None, value: str, scale: str) -> Any:
    """Draw the means of all agents in an environment; see :meth:`Results.plot`."""
    one_of("plot", "scale", scale, SCALES)
    if value not in TITLES:
        raise names.unknown("plot", "value", str(value), TITLES)
    chosen = _chosen(results, env)
    shown, curves = _curves(results, chosen, value)
    costs = shown == "reward" and any(group.cells[0].problem.costs for group in results.groups if group.env == chosen)
    ax = ax if ax is not None else new_axes()
    labels = {agent.id: agent.label for agent in results.agents}
    places = {agent: i for i, agent in enumerate(labels)}
    _, y = scales_of(shown, scale)
    together = {group[0]: group for group in coinciding(curves, y)}
    hidden = {agent for group in together.values() for agent in group[1:]}
    for agent, curve in curves.items():
        if agent not in hidden:
            named = " = ".join(labels[one] for one in together.get(agent, [agent]))
            mean, (low, high) = flip(costs, curve.mean), flip_ends(costs, curve.low, curve.high)
            draw_mean(ax, curve.t, mean, low, high, places[agent]).set_label(literal(named))
    set_scales(ax, *scales_of(shown, scale))
    ax.set_xlabel("step t")
    title = "cumulative cost" if costs else TITLES[shown]
    ax.set_ylabel(title + (" (gain unknown)" if shown != value else ""))
    ax.set_title(literal(chosen.label), fontsize="medium", color=DARK_GREY)
    ax.margins(x=0.02)
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def _chosen(results: Results, env: str | None) -> SpecEntry:
    """Return the environment with this id, or the only one."""
    known = {entry.id: entry for entry in results.envs}
    if env is None and len(known) > 1:
        raise OptionError(f"plot: env must be one of the {len(known)} environments, {', '.join(known)}; got none.")
    chosen = next(iter(known)) if env is None else env
    if chosen not in known:
        raise names.unknown("plot", "environment", str(env), known)
    if all(group.env.id != chosen for group in results.groups):
        raise OptionError(f"plot: no cell on {chosen} is finished. Run the experiment first.")
    return known[chosen]


def _curves(results: Results, env: SpecEntry, value: str) -> tuple[str, dict[str, MeanCurve]]:
    """Return what can be shown, the reward in place of an unknown regret, and its curve for each agent."""
    frame = results.mean(value)
    rows = frame.filter(frame["env"] == env.id).partition_by("agent", as_dict=True, maintain_order=True)
    curves = {
        agent: MeanCurve(*(part[name].to_numpy() for name in MeanCurve._fields)) for (agent,), part in rows.items()
    }
    if "regret" in value and all(np.isnan(curve.mean).all() for curve in curves.values()):
        return _curves(results, env, "reward")
    return value, curves
