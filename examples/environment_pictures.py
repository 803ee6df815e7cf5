"""Pictures of models: graphs of small ones, grids, bars, and a map of a policy. Each function takes a text and returns a figure."""

from collections import Counter
from math import cos, hypot, pi, sin

import numpy as np

import spanrl
from spanrl.axes import DARK_GREY, GREY, PALETTE, new_figure, tidy

RADIUS = 0.34  # of a state
PALE, DARK = "#f4f8fc", "#4d8fcc"
WALL, NEVER, MARK, INK = "#6b7280", "#e5e7eb", "#c2410c", "#1f2937"
ARROWS = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}


def row(n, distance):
    """Return n places in a row."""
    return np.column_stack([distance * np.arange(n), np.zeros(n)])


def circle(n):
    """Return n places on the unit circle, clockwise from the top."""
    angle = pi / 2 - 2 * pi * np.arange(n) / n
    return np.column_stack([np.cos(angle), np.sin(angle)])


def sized(columns, width, height):
    """Return a figure of this size in inches."""
    figure = new_figure(columns)
    figure.set_size_inches(width, height)
    return figure


# --- graphs ---------------------------------------------------------------------------------------------------------


def graph(text, places, others=(), loops="all", best_only=False):
    """Draw states as circles and transitions as arrows, coloured by action.

    ``loops``: which arrows from a state to itself are drawn: all, paid ones, or none. ``best_only``: the arrows of an optimal policy alone,
    without labels.
    """
    names = (text, *others)
    wide, high = np.ptp(places, axis=0) + np.array([1.7, 2.1 if np.ptp(places[:, 1]) == 0 else 1.4])
    scale = min(0.85, 7.4 / (len(names) * wide), (2.5 if best_only else 3.6) / high)
    figure = sized(len(names), max(3.2, len(names) * wide * scale), high * scale + 0.35)
    colors = {}
    for ax, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
        colors |= _draw_graph(ax, name, places, loops, best_only)
        if others:
            ax.set_title(name, fontsize=9)
    if len(colors) > 1:
        _legend(figure, colors)
    return figure


def _draw_graph(ax, text, places, loops, best_only):
    mdp = spanrl.make(text).mdp
    chosen = spanrl.analyse(mdp, diameter=False).policy.actions if best_only else None
    ax.set_aspect("equal")
    ax.axis("off")
    circles = [_state(ax, place, mdp.state_label(s)) for s, place in enumerate(places)]
    used, reach, bends = {}, [*(places - 1.15 * RADIUS), *(places + 1.15 * RADIUS)], Counter()
    for s in range(mdp.n_states):
        for actions in _alike(mdp, s):
            if best_only and chosen[s] not in actions:
                continue
            alone = len(actions) == 1 and not best_only
            color = PALETTE[actions[0] % len(PALETTE)] if alone else GREY
            reward = mdp.reward[mdp.pair(s, actions[0])]
            for t, p in mdp.successors(s, actions[0]):
                words = "" if best_only else _label(p, reward)
                if s == t and (loops == "none" or (loops == "paid" and not reward)):
                    continue
                used[mdp.action_names[actions[0]] if alone else "several actions alike"] = color
                draw = _loop if s == t else _arrow
                reach.append(draw(ax, circles, s, t, bends[s, t], color, words, p))
                bends[s, t] += 1
    low, high = np.min(reach, axis=0) - 0.12, np.max(reach, axis=0) + 0.12
    ax.set(xlim=(low[0] - 0.1, high[0] + 0.1), ylim=(low[1], high[1]))
    return used


def _alike(mdp, s):
    """Group the actions of a state that do and pay the same."""
    groups = {}
    for i in range(mdp.pair_ptr[s], mdp.pair_ptr[s + 1]):
        a = int(mdp.action[i])
        groups.setdefault((tuple(mdp.successors(s, a)), mdp.reward[i]), []).append(a)
    return groups.values()


def _label(p, reward):
    """Return what stands at an arrow: the probability unless it is 1, the reward unless it is 0."""
    parts = [f"{p:.4g}".removeprefix("0")] if p < 1 else []
    return ", ".join(parts + ([f"{reward:+.3g}".replace("+0.", "+.")] if reward else []))


def _state(ax, place, name):
    from matplotlib.patches import Circle

    disc = ax.add_patch(Circle(place, RADIUS, facecolor="white", edgecolor=DARK_GREY, linewidth=1.2, zorder=3))
    ax.text(*place, name.replace(" ", "\n"), ha="center", va="center", fontsize=8, zorder=4, linespacing=1.05)
    return disc


def _arrow(ax, circles, s, t, n, color, words, p):
    """Draw the n-th arrow between two states, each bent more than the one before; return where its words stand."""
    from matplotlib.patches import FancyArrowPatch

    (x, y), (u, v) = circles[s].center, circles[t].center
    bend = 0.2 + 0.28 * n
    curve = {"connectionstyle": f"arc3,rad={bend}", "patchA": circles[s], "patchB": circles[t]}
    tip = {"arrowstyle": "-|>", "mutation_scale": 9, "color": color, "linewidth": 0.7 + 0.8 * p, "zorder": 2}
    ax.add_patch(FancyArrowPatch((x, y), (u, v), **curve, **tip))
    length = hypot(u - x, v - y)
    side = np.array([v - y, x - u]) / length  # to the right of the arrow, where it bends to
    middle = np.array([(x + u) / 2, (y + v) / 2]) + side * (
        bend * length / 2 + 0.15 + 0.045 * len(words) * abs(side[0])
    )
    _words(ax, middle, words, color)
    return middle


def _loop(ax, circles, s, _, n, color, words, p):
    """Draw the n-th arrow from a state to itself: the first one away from the centre, the next ones on the other sides."""
    from matplotlib.patches import FancyArrowPatch, Path

    places = np.array([disc.center for disc in circles])
    place, away = places[s], places[s] - places.mean(axis=0)
    upright = np.ptp(places[:, 1]) == 0 or hypot(*away) < 1e-9
    angle = pi / 2 if upright else round(np.arctan2(away[1], away[0]) / (pi / 4)) * pi / 4
    angle += (0, pi, pi / 2, -pi / 2)[n % 4]
    ends, far = (
        [place + d * RADIUS * np.array([cos(angle + turn), sin(angle + turn)]) for turn in (wide, -wide)]
        for d, wide in ((1.0, 0.5), (2.9, 0.55))
    )
    path = Path([ends[0], *far, ends[1]], [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    tip = {"arrowstyle": "-|>", "mutation_scale": 9, "color": color, "linewidth": 0.7 + 0.8 * p, "zorder": 2}
    ax.add_patch(FancyArrowPatch(path=path, **tip))
    there = place + 2.65 * RADIUS * np.array([1.25 * cos(angle), sin(angle)])
    _words(ax, there, words, color)
    return there


def _words(ax, place, words, color):
    if words:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
        ax.text(*place, words, ha="center", va="center", fontsize=7, color=color, zorder=5, bbox=box)


def _legend(figure, colors):
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=color, label=label) for label, color in colors.items()]
    columns = min(len(lines), int(figure.get_figwidth() / 1.2))
    figure.legend(handles=lines, frameon=False, fontsize=8, loc="outside lower center", ncols=columns)


# --- grids ----------------------------------------------------------------------------------------------------------


def grid(text, panels=None, marks=None, walls=(), never=(), moves=ARROWS):
    """Draw cells coloured by the optimal bias, with arrows of the optimal policy and the letters of ``marks``.

    A panel shows the states whose names fit one pattern. ``walls`` are cells with a wall on their right side, ``never`` cells that cannot
    be entered, ``moves`` where an action leads (row, column).
    """
    mdp = spanrl.make(text).mdp
    best = spanrl.analyse(mdp, diameter=False)
    panels = panels or {"": "({}, {})"}
    index = {mdp.state_label(s): s for s in range(mdp.n_states)}
    shown = {
        title: {
            (i, j): index[pattern.format(i, j)] for i in range(20) for j in range(20) if pattern.format(i, j) in index
        }
        for title, pattern in panels.items()
    }
    biases = best.bias[[s for cells in shown.values() for s in cells.values()]]
    colors = {
        s: shade((best.bias[s] - biases.min()) / np.ptp(biases)) for cells in shown.values() for s in cells.values()
    }
    n_rows, n_cols = (1 + max(cell[axis] for cells in shown.values() for cell in cells) for axis in (0, 1))
    size = min(0.5, 3.4 / n_cols) if len(panels) > 1 else min(0.5, 5.2 / n_cols)
    figure = sized(len(panels), len(panels) * (n_cols * size + 0.5) + 0.5, n_rows * size + 0.7)
    for ax, (title, cells) in zip(np.atleast_1d(figure.subplots(1, len(panels))), shown.items(), strict=True):
        _draw_cells(ax, cells, colors, never)
        for (i, j), s in cells.items():
            if (i, j) not in never and len(_alike(mdp, s)) > 1:
                _draw_action(ax, i, j, moves.get(mdp.action_names[best.policy.actions[s]]))
        for (i, j), letter in (marks or {}).items():
            color = MARK if (i, j) in cells else "white"
            ax.text(j - 0.44, i - 0.42, letter, ha="left", va="top", fontsize=8, weight="bold", color=color)
        for i, j in walls:
            ax.plot([j + 0.5, j + 0.5], [i - 0.5, i + 0.5], color=WALL, linewidth=4, solid_capstyle="butt")
        ax.set_title(title, fontsize=9)
    return figure


def _draw_cells(ax, cells, colors, never):
    from matplotlib.patches import Rectangle

    rows, cols = (sorted({cell[axis] for cell in cells}) for axis in (0, 1))
    ax.set(xlim=(cols[0] - 0.62, cols[-1] + 0.62), ylim=(rows[-1] + 0.62, rows[0] - 0.62), aspect="equal")
    ax.axis("off")
    width, height = cols[-1] - cols[0] + 1.2, rows[-1] - rows[0] + 1.2
    ax.add_patch(Rectangle((cols[0] - 0.6, rows[0] - 0.6), width, height, color=WALL))
    for (i, j), s in cells.items():
        color = NEVER if (i, j) in never else colors[s]
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=color, edgecolor="white", linewidth=1))


def _draw_action(ax, i, j, move):
    """Draw a move as an arrow, any other action (None) as a dot."""
    if move is None:
        ax.plot(j, i, "o", color=INK, markersize=5)
        return
    down, right = 0.3 * np.array(move) / hypot(*move)
    tip = {"arrowstyle": "-|>", "color": INK, "lw": 1.1, "mutation_scale": 8, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (j + right, i + down), (j - right, i - down), arrowprops=tip)


def shade(share):
    """Return the colour of a share in [0, 1], pale to dark."""
    ends = [np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255 for color in (PALE, DARK)]
    return tuple(ends[0] + share * (ends[1] - ends[0]))


# --- bars and maps --------------------------------------------------------------------------------------------------


def bars(text, label):
    """Draw the optimal bias over a line of states, coloured by the optimal action."""
    mdp = spanrl.make(text).mdp
    best = spanrl.analyse(mdp, diameter=False)
    figure = sized(1, 5.6, 2.6)
    ax = figure.add_subplot()
    foot = 0.05 * np.ptp(best.bias)  # so that the worst states have a colour, too
    heights = best.bias - best.bias.min() + foot
    for k, a in enumerate(sorted(set(best.policy.actions.tolist()))):
        states = np.flatnonzero(best.policy.actions == a)
        ax.bar(states, heights[states], bottom=-foot, color=PALETTE[k], label=mdp.action_names[a], width=0.72)
    ax.set(xlabel=label, ylabel="h* − min h*", xticks=range(mdp.n_states), ylim=(-foot, None))
    tidy(ax)
    ax.grid(axis="x", visible=False)
    ax.legend(frameon=False, fontsize=8, title="the best action", title_fontsize=8)
    return figure


def policy_map(text):
    """Draw the best action in two dimensions, with lines of equal bias."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    mdp = spanrl.make(text).mdp
    best = spanrl.analyse(mdp, diameter=False)
    n = round(mdp.n_states**0.5)
    figure = sized(1, 5.0, 3.6)
    ax = figure.add_subplot()
    colors = ["#d7e6f5", "#f9dcc4"]
    ax.pcolormesh(best.policy.actions.reshape(n, n).T, cmap=ListedColormap(colors), edgecolors="white", linewidth=0.4)
    bias = best.bias - best.bias.max()
    middle = np.arange(n) + 0.5
    lines = ax.contour(middle, middle, bias.reshape(n, n).T, 8, colors=DARK_GREY, linewidths=0.8, linestyles="solid")
    ax.clabel(lines, fontsize=7, fmt="%d")
    ax.set(xlabel="x", ylabel="y", xticks=np.arange(0, n, 4) + 0.5, yticks=np.arange(0, n, 4) + 0.5, aspect="equal")
    ax.set_xticklabels(range(0, n, 4))
    ax.set_yticklabels(range(0, n, 4))
    ax.spines[["top", "right"]].set_visible(False)
    patches = [Patch(color=color, label=name) for color, name in zip(colors, mdp.action_names, strict=True)]
    ax.legend(handles=patches, fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
