"""What the quantities of an experiment are called and on which scales they are drawn, and one chart of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl import names
from spanrl.axes import DARK_GREY, draw_mean, literal, new_axes, set_scales, tidy
from spanrl.errors import OptionError
from spanrl.experiments.coincidence import coinciding
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
    chosen, shown, curves = _curves(results, env, value)
    ax = ax if ax is not None else new_axes()
    labels = {agent.id: agent.label for agent in results.agents}
    places = {agent: i for i, agent in enumerate(labels)}
    _, y = scales_of(shown, scale)
    together = {group[0]: group for group in coinciding(curves, y)}
    hidden = {agent for group in together.values() for agent in group[1:]}
    for agent, curve in curves.items():
        if agent not in hidden:
            named = " = ".join(labels[one] for one in together.get(agent, [agent]))
            draw_mean(ax, *curve, places[agent]).set_label(literal(named))
    set_scales(ax, *scales_of(shown, scale))
    ax.set_xlabel("step t")
    ax.set_ylabel(TITLES[shown] + (" (gain unknown)" if shown != value else ""))
    ax.set_title(literal(chosen), fontsize="medium", color=DARK_GREY)
    ax.margins(x=0.02)
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def _curves(results: Results, env: str | None, value: str) -> tuple[str, str, dict[str, MeanCurve]]:
    """Return the label of the environment, what can be shown of it, and the curve of each agent."""
    labels = {entry.id: entry.label for entry in results.envs}
    if env is None and len(labels) > 1:
        raise OptionError(f"plot: env must be one of the {len(labels)} environments, {', '.join(labels)}; got none.")
    chosen = next(iter(labels)) if env is None else env
    if chosen not in labels:
        raise names.unknown("plot", "environment", str(env), labels)
    found = {group.agent.id for group in results.groups if group.env.id == chosen}
    if not found:
        raise OptionError(f"plot: no cell on {chosen} is finished. Run the experiment first.")
    for shown in (value, "reward"):
        frame = results.mean(shown)
        rows = frame.filter(frame["env"] == chosen).partition_by("agent", as_dict=True, maintain_order=True)
        curves: dict[str, MeanCurve] = {
            agent: MeanCurve(*(part[name].to_numpy() for name in MeanCurve._fields)) for (agent,), part in rows.items()
        }
        if "regret" not in value or any(np.isfinite(curve.mean).any() for curve in curves.values()):
            break
    return labels[chosen], shown, curves
