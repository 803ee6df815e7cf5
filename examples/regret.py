"""Does a bound on the span help? UCRL and SCAL on the paper's three-state domain, with a large and with an infinite diameter.

Usage: python examples/regret.py [FILE.png] [HORIZON] [SEEDS]
"""

import sys
from pathlib import Path

import numpy as np

import spanrl
from spanrl.axes import new_figure, tidy
from spanrl.experiments.statistics import mean_interval

AGENTS = {"UCRL": "#444444", "SCAL c = 10": "#c2410c", "SCAL c = 5": "#1f5fa8", "SCAL c = 2": "#0f8a5f"}


def agent(label: str) -> str:
    return "ucrl" if label == "UCRL" else f"scal[span_bound={label.rsplit(maxsplit=1)[-1]}]"


def draw(horizon: float, seeds: int):
    """Return the figure: mean pseudo-regrets with the 95 % t intervals that spanrl uses everywhere."""
    figure = new_figure(columns=2)
    for ax, delta in zip(figure.subplots(1, 2), (0.005, 0), strict=True):
        for label, color in AGENTS.items():
            runs = [
                spanrl.learn(f"three-state[delta={delta}]", agent(label), horizon=horizon, seed=seed)
                for seed in range(seeds)
            ]
            mean, low, high = mean_interval(np.array([run.pseudo_regret for run in runs]))
            ax.loglog(runs[0].t, mean, color=color, label=label)
            ax.fill_between(runs[0].t, np.maximum(low, 1e-1), high, color=color, alpha=0.2, linewidth=0)
        ax.set(title=f"three-state, δ = {delta}: diameter {'∞' if delta == 0 else round(1 / delta)}", xlabel="step t")
        ax.set(ylabel="pseudo-regret", ylim=(1, None))
        tidy(ax)
    ax.legend(frameon=False)
    return figure


def main(path: Path, horizon: float, seeds: int) -> None:
    figure = draw(horizon, seeds)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"figure written to {path}: {seeds} runs of {int(horizon):,} steps each")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        Path(given[0] if given else "regret.png"),
        float(given[1]) if len(given) > 1 else 2.5e7,
        int(given[2]) if len(given) > 2 else 10,
    )
