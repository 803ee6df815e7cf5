"""What does a bound on the bias span cost? Solve three models for a range of bounds and draw g⁺(c).

Usage: python examples/gain_curve.py [FILE.png]
"""

import sys
from pathlib import Path

import numpy as np

import spanrl
from spanrl.report.figures import plot_gain_curve


def main(path: Path) -> None:
    from matplotlib.figure import Figure

    names = ("two-state", "three-state[delta=0.005]", "knight-quest")
    figure = Figure(figsize=(12, 3.6), dpi=160, layout="constrained")
    for ax, name in zip(figure.subplots(1, len(names)), names, strict=True):
        mdp = spanrl.make(name).mdp
        exact = spanrl.analyse(mdp, diameter=False)
        bounds = np.linspace(0.0, 1.5 * exact.span, 61)
        plot_gain_curve(bounds, spanrl.gain_curve(mdp, bounds), gain=exact.gain, span=exact.span, ax=ax)
        ax.set_title(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"figure written to {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "gain_curve.png"))
