"""A policy over one or two coordinates of the state names: where it switches from one action to another.

Over two coordinates each state is a cell in the colour of its action, a mixed state in a mixture of colours with a dot on it; over one
coordinate actions are steps. Where names are neither whole numbers nor tuples of them, the number of the state is the only coordinate.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spanrl.axes import BLUE, DARK_GREY, discrete_colours, legend_of_colours, new_axes, tidy, whole_ticks
from spanrl.errors import OptionError
from spanrl.models.checks import ROUNDING
from spanrl.models.labels import StateNames, text_of
from spanrl.models.policy_frame import are_whole
from spanrl.terminal import visible

if TYPE_CHECKING:
    from spanrl.models.policy import Policy

Coordinates = NDArray[np.int64]

_MOST_NAMES = 25  # names of states along an axis
_MOST_LABELS = 12  # actions in a legend
_LARGEST = 150.0  # of a dot, in square points


def plot_policy(policy: Policy, x: int | None, y: int | None, at: Mapping[int, int] | None, ax: Any) -> Any:
    """Draw as :meth:`spanrl.Policy.plot` says; return the axes."""
    named = policy.state_names.coordinates if policy.state_names is not None else None
    coordinates = np.arange(policy.n_states)[:, None] if named is None else named
    x, y = _shown(coordinates.shape[1], x, y)
    fixed, states = _chosen(coordinates, x, y, dict(at or {}))
    ax = new_axes() if ax is None else ax
    if y is None:
        _draw_steps(policy, coordinates[states, x], states, ax)
        if named is None:
            _name_states(policy, ax)
    else:
        _draw_cells(policy, coordinates[states][:, [x, y]], states, ax)
        ax.set_ylabel(f"x{y}")
    ax.set_xlabel("state" if coordinates.shape[1] == 1 else f"x{x}")
    ax.set_title(", ".join(f"x{i} = {value}" for i, value in fixed.items()), fontsize="medium")
    return ax


def check_plot(names: StateNames | None) -> None:
    """Raise where :func:`plot_policy` without options would not know what to draw of states of these names."""
    named = names.coordinates if names is not None else None
    if named is not None:
        _chosen(named, *_shown(named.shape[1], None, None), {})


def _shown(k: int, x: int | None, y: int | None) -> tuple[int, int | None]:
    """Return the coordinates of the axes: the first two unless told otherwise."""
    if x is None and y is None:
        return 0, 1 if k > 1 else None
    for name, value in (("x", x), ("y", y)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value < k):
            raise OptionError(
                f"Policy.plot: {name} must be a coordinate of the state names in 0..{k - 1}; got {value!r}."
            )
    if x is None or x == y:
        raise OptionError(
            f"Policy.plot: x and y must be two different coordinates; got x={x!r}, y={y!r}. Give x alone for one."
        )
    return int(x), None if y is None else int(y)


def _chosen(
    coordinates: Coordinates, x: int, y: int | None, at: dict[int, int]
) -> tuple[dict[int, int], NDArray[np.int64]]:
    """Return the values of the other coordinates, and the states that have them."""
    k = coordinates.shape[1]
    others = [i for i in range(k) if i not in (x, y)]
    odd = next((i for i in at if i not in others), None)
    if odd is not None:
        raise OptionError(
            f"Policy.plot: at must fix coordinates that are not drawn, of {others or 'which there are none'}; got {odd!r}."
        )
    free = [i for i in others if i not in at and np.ptp(coordinates[:, i]) > 0]
    if free:
        example = ", ".join(f"{i}: {coordinates[0, i]}" for i in free)
        raise OptionError(
            f"Policy.plot: state names have {k} coordinates, and those that are not drawn must be fixed. Give at={{{example}}}, say."
        )
    keep = np.ones(len(coordinates), dtype=bool)
    for i, value in at.items():
        keep &= coordinates[:, i] == value
        if not keep.any():
            raise OptionError(
                f"Policy.plot: no state has x{i} = {value!r}" + (" with the others of at" if len(at) > 1 else "")
                + f"; it runs from {coordinates[:, i].min()} to {coordinates[:, i].max()}."
            )  # fmt: skip
    return dict(sorted(at.items())), np.flatnonzero(keep)


def _action_labels(policy: Policy) -> list[str]:
    names = range(policy.n_actions) if policy.action_names is None else policy.action_names
    return [visible(text_of(name)) for name in names]


def _draw_cells(policy: Policy, cells: Coordinates, states: NDArray[np.int64], ax: Any) -> None:
    """Draw a cell per state, in the colours of its actions."""
    used = np.flatnonzero(policy.probs.max(axis=0) > 0)  # anywhere: an action keeps its colour, whatever is fixed
    colours, probs = discrete_colours(used.size), policy.probs[np.ix_(states, used)]
    (columns, i), (rows, j) = (np.unique(line, return_inverse=True) for line in cells.T)
    picture = np.ones((rows.size, columns.size, 4))
    picture[..., 3] = 0.0  # no state, no cell
    picture[j, i] = np.column_stack((probs @ colours, np.ones(states.size)))
    ax.imshow(picture, origin="lower", aspect="auto", interpolation="nearest")
    whole_ticks(ax.xaxis, columns)
    whole_ticks(ax.yaxis, rows)
    mixed = probs.max(axis=1) < 1.0 - ROUNDING
    if mixed.any():
        ax.scatter(i[mixed], j[mixed], s=16, color="white", edgecolors=DARK_GREY, linewidths=0.6, label="mixes")
    ax.spines[["top", "right"]].set_visible(False)
    names, played = _action_labels(policy), np.flatnonzero(probs.max(axis=0) > 0)
    if played.size > _MOST_LABELS:
        played = played[np.linspace(0, played.size - 1, _MOST_LABELS).round().astype(np.int64)]
    legend_of_colours(ax, {names[used[i]]: colours[i] for i in played})


def _draw_steps(policy: Policy, values: Coordinates, states: NDArray[np.int64], ax: Any) -> None:
    """Draw the likeliest action over one coordinate as steps, with dots as large as the probabilities."""
    order = np.argsort(values, kind="stable")
    values, probs = values[order], policy.probs[states[order]]
    names = policy.action_names
    whole = names is None or are_whole(names)
    played = np.flatnonzero(probs.max(axis=0) > 0)
    height = np.zeros(policy.n_actions, dtype=np.int64)
    height[played] = np.arange(played.size)
    if whole:
        height[:] = range(policy.n_actions) if names is None else names
    ax.step(values, height[probs.argmax(axis=1)], where="mid", color=BLUE, linewidth=1.5)
    state, action = np.nonzero(probs)
    ax.scatter(values[state], height[action], s=_dot(values.size) * probs[state, action], color=BLUE, zorder=3)
    tidy(ax)
    if whole:
        whole_ticks(ax.yaxis, None)
    else:
        labels = _action_labels(policy)
        ax.set_yticks(height[played], [labels[a].replace("$", r"\$") for a in played])
        ax.set_ylim(-0.5, played.size - 0.5)
    whole_ticks(ax.xaxis, None)
    ax.set_ylabel("action")


def _dot(count: int) -> float:
    """Return the size of a dot of probability one, smaller where there are many."""
    return min(_LARGEST / max(count, 1) * 8, 30.0)


def _name_states(policy: Policy, ax: Any) -> None:
    """Write the names of few states below the axis."""
    if policy.state_names is not None and policy.n_states <= _MOST_NAMES:
        names = [visible(policy.state_label(s)).replace("$", r"\$") for s in range(policy.n_states)]
        tilt = 90 if max(map(len, names)) * policy.n_states > 60 else 0
        ax.set_xticks(range(policy.n_states), names, rotation=tilt)
