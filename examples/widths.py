"""How wide are the confidence bounds? The interval of one transition probability against the visits of its pair, for all bounds.

Usage: python examples/widths.py [FILE.png]
"""

import sys
from pathlib import Path

import numpy as np

import spanrl
from spanrl.axes import DASHES, PALETTE, new_figure, tidy
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.confidence.hoeffding import HoeffdingBall
from spanrl.confidence.kl import KLBall
from spanrl.confidence.kt import KT
from spanrl.confidence.ucrl2b import UCRL2BBox
from spanrl.confidence.ucrl3 import UCRL3Box
from spanrl.models.counts import Counts
from spanrl.planning.problem import prepare

BOUNDS = {
    "UCRL2 (L1 ball)": HoeffdingBall(),
    "bernstein (SCAL's paper)": BernsteinBox(),
    "ucrl2b": UCRL2BBox(),
    "ucrl3": UCRL3Box(),
    "kt": KT(),
    "kl": KLBall(),
}
N_STATES, N_ACTIONS, TIME = 20, 4, 10**6
SHARES = 0.0, 0.1, 0.5


def widths(bound, share: float, visits) -> np.ndarray:
    """Return max − min of p(s') over the set of each of S·A pairs: a ``share`` of its ``visits`` led to s' = 0, the others elsewhere."""
    info = spanrl.ProblemInfo(N_STATES, N_ACTIONS)
    times = np.empty((visits.size, N_STATES), dtype=np.int64)
    times[:, 0] = np.rint(share * visits)
    times[:, 1:] = (visits - times[:, 0])[:, None] // (N_STATES - 1)
    times[:, 1] += visits - times.sum(axis=1)
    listed = times > 0
    ptr = np.concatenate(([0], np.cumsum(listed.sum(axis=1))))
    succ = np.nonzero(listed)[1].astype(np.uint32)
    nothing = np.zeros(info.n_pairs)
    bounded = bound.bounded(Counts(visits, nothing, nothing.copy(), ptr, succ, times[listed]), TIME, info)
    v = np.zeros(N_STATES)
    v[0] = 1.0
    greatest = prepare(bounded, "optimistic").values(v) - bounded.r_high
    least = prepare(bounded, "pessimistic").values(v) - bounded.r_low
    return greatest - least


def draw():
    """Return the figure: one panel per frequency, one line per bound."""
    visits = 10 * np.rint(np.geomspace(1, 10**5, N_STATES * N_ACTIONS)).astype(np.int64)
    figure = new_figure(columns=3)
    panels = figure.subplots(1, len(SHARES), sharey=True)
    for ax, share in zip(panels, SHARES, strict=True):
        for i, (label, bound) in enumerate(BOUNDS.items()):
            ax.loglog(
                visits, widths(bound, share, visits), color=PALETTE[i], dashes=DASHES[i], linewidth=1.8, label=label
            )
        ax.set(title=f"p̂ = {share:g}", xlabel="visits n")
        tidy(ax)
    panels[0].set_ylabel("width: max p − min p")
    panels[0].legend(frameon=False, loc="lower left")
    figure.suptitle(f"S = {N_STATES}, A = {N_ACTIONS}, δ = 0.05; t = 10⁶ for the two with t in them", fontsize="medium")
    return figure


def main(path: Path) -> None:
    figure = draw()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"figure written to {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "widths.png"))
