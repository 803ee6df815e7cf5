"""The constants of the standard environments, by independent methods; their transitions are tested beside this file."""

from __future__ import annotations

import numpy as np
import pytest
from env_oracles import diameter, gain_by_lp, optimum

from spanrl import analyse, make

LITERATURE = {  # g*, sp(h*), D with the digits that were published or agreed on
    "4-rooms": ("0.075626", "0.92437", "12.22"),
    "2-rooms": ("0.047306", "0.95269", "21.14"),
    "frozen-lake": ("0.017555", "1.0102", "57.5"),
    "queue-admission": ("0.912367", "11.807", "2004.8"),
    "inventory": ("0.756843", "0.87154", "5.839"),
    "deep-sea": ("0.125", "1.68", "inf"),
    "nasty-7": ("0.791205", "1.1928", "11.01"),
    "six-arms": ("1.000000", "101.000000", "101.000000"),
    "riverswim[variant=statisticalrl]": ("0.916667", "8.1818", "8.926"),
}
OTHERS = (
    "ergodic-riverswim",
    "ergodic-riverswim[slip=0.2]",
    "jaksch-lower-bound",
    "focus-pair",
    "focus-pair[model=returns]",
    "frozen-lake[slippery=false]",
    "machine-replacement",
    "garnet",
    "garnet-chain",
    "two-queues[places=4]",
)


@pytest.mark.parametrize("text", [*LITERATURE, *OTHERS])
def test_constants_by_independent_methods(text):
    """Policy iteration, a linear program and shortest paths, all dense; the digits of the literature where there are any."""
    mdp = make(text).mdp
    result, (gain, h, _) = analyse(mdp), optimum(mdp)
    found = gain, np.ptp(h), diameter(mdp)[0]
    assert gain_by_lp(mdp) == pytest.approx(gain, abs=1e-8)
    assert (result.gains[0], result.span, result.diameter) == pytest.approx(found, rel=1e-7)
    if text in LITERATURE:
        assert (
            tuple(f"{x:.{len(y.partition('.')[2])}f}" for x, y in zip(found, LITERATURE[text], strict=True))
            == LITERATURE[text]
        )
