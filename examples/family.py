"""The regret curves of the family: each agent among all others, on three standard problems.

Usage: python examples/family.py [FOLDER] [HORIZON] [SEEDS]
"""

import sys
from math import ceil
from pathlib import Path

import numpy as np

import spanrl
from spanrl.axes import new_figure, tidy
from spanrl.experiments.statistics import mean_interval

PROBLEMS = ("three-state", "riverswim[variant=osband]", "4-rooms")
AGENTS = {
    "scal": "scal[span_bound={c}]",
    "scal-kt": "scal[span_bound={c},bounds=kt]",
    "ucrl": "ucrl",
    "ucrl-kt": "ucrl[bounds=kt]",
    "ucrl2": "ucrl2",
    "ucrl2b": "ucrl2b",
    "ucrl3": "ucrl3",
    "ucrl3-noss": "ucrl3[noss=true]",
    "ucrl3-sole": "ucrl3[noss=true,sole_successors=true]",
    "kl-ucrl": "kl-ucrl",
    "tucrl": "tucrl",
    "tucrl-kt": "tucrl[bounds=kt]",
    "scal-plus": "scal-plus[span_bound={c}]",
    "focus": "focus[span_bound={c}]",
    "psrl": "psrl",
    "tsde": "tsde",
    "imed-rl": "imed-rl",
    "qlearning": "qlearning",
}
SHORTER = {"imed-rl": 10}  # it plans at every step
LEAST = 1.0
COLOR, OTHERS = "#1f5fa8", "#c9ced6"


def curves(horizon: float, seeds: int):
    """Return (t, mean, low, high) of the pseudo-regret of every problem and agent; c is sp(h*), rounded up."""
    found = {}
    for problem in PROBLEMS:
        c = ceil(spanrl.analyse(spanrl.make(problem).mdp, diameter=False).span)
        for name, text in AGENTS.items():
            T = horizon / SHORTER.get(name, 1)
            runs = [spanrl.learn(problem, text.format(c=c), horizon=T, seed=seed) for seed in range(seeds)]
            found[problem, name] = runs[0].t, *mean_interval(np.array([run.pseudo_regret for run in runs]))
    return found


def draw(found, name: str):
    """Return the figure of one agent: its mean with the 95 % interval, the others behind it."""
    figure = new_figure(columns=3)
    for ax, problem in zip(figure.subplots(1, 3), PROBLEMS, strict=True):
        for other in AGENTS:
            t, mean, low, high = (np.asarray(part) for part in found[problem, other])
            mine = other == name
            ax.loglog(
                t, np.maximum(mean, LEAST), color=COLOR if mine else OTHERS, linewidth=2 if mine else 1, zorder=2 + mine
            )
            if mine:
                ends = np.maximum(low, LEAST), np.maximum(high, LEAST)
                ax.fill_between(t, *ends, color=COLOR, alpha=0.2, linewidth=0, zorder=2)
        ax.set(title=problem, xlabel="step t", ylim=(LEAST, None), xlim=(10, None))
        tidy(ax)
    figure.axes[0].set_ylabel("pseudo-regret")
    figure.suptitle(f"{name} (blue) among the other agents", fontsize="medium")
    return figure


def main(folder: Path, horizon: float, seeds: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    found = curves(horizon, seeds)
    for name in AGENTS:
        draw(found, name).savefig(folder / f"{name}.png", dpi=90)
    for name in AGENTS:
        print(name, *(f"{float(np.asarray(found[problem, name][1])[-1]):,.0f}" for problem in PROBLEMS))
    print(f"{len(AGENTS)} figures written to {folder}: {seeds} runs of {int(horizon):,} steps each")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        Path(given[0] if given else "family"),
        float(given[1]) if len(given) > 1 else 1e6,
        int(given[2]) if len(given) > 2 else 10,
    )
