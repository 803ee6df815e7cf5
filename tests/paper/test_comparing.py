"""How SCAL is compared with UCRL: what simultaneous intervals call better, the same, worse, or leave open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from page_by_hand import curves
from scipy import stats

from spanrl.paper.claims import experiments
from spanrl.paper.claims.base import Ledger
from spanrl.paper.claims.comparing import SAME, SIGNIFICANT, sides
from spanrl.paper.claims.experiments import judge_G5, judge_G6, judge_G7
from spanrl.paper.curves import Curves, Experiment

UCRL = curves(level=5.0)
N = len(UCRL.seeds)
WIDE = 9.0
"""Half the width of an interval, as a fraction of UCRL's mean, with which nothing can be told."""


def scal(c: float, offsets: np.ndarray | float) -> Curves:
    """Return SCAL with UCRL's pseudo-regret but for ``offsets`` at the end, as fractions of UCRL's mean."""
    pseudo = UCRL.pseudo_regret.copy()
    pseudo[:, -1] += np.broadcast_to(offsets, N) * pseudo[:, -1].mean()
    return replace(UCRL, span_bound=c, agent=f"scal[span_bound={c:g}]", pseudo_regret=pseudo)


def spread(half: float, centre: float, groups: int) -> np.ndarray:
    """Return offsets whose simultaneous interval over so many groups is ``centre`` ± ``half``."""
    x = np.linspace(-1.0, 1.0, N)
    quantile = stats.t.ppf(1 - SIGNIFICANT / groups / 2, N - 1)
    return centre + x * half / (quantile * stats.sem(x))


@pytest.mark.parametrize(
    ("half", "centre", "side"),
    [
        (0.1, -0.11, "better"),
        (0.1, -0.09, "unclear"),
        (0.01, -0.02, "better"),  # however little better
        (0.9 * SAME, 0.0, "no_better"),
        (1.1 * SAME, 0.0, "unclear"),
        (0.6 * SAME, 0.5 * SAME, "unclear"),
        (0.1, 0.11, "no_better"),
    ],
)
def test_an_interval_decides(half: float, centre: float, side: str) -> None:
    ledger, groups = Ledger(), [scal(2.0, spread(half, centre, 2)), scal(5.0, -0.5)]
    found = sides(ledger, UCRL, groups)
    assert getattr(found, side) == ["c = 2", *(["c = 5"] if side == "better" else [])]
    mean = UCRL.pseudo_regret[:, -1].mean()
    told = ledger.numbers["SCAL c = 2: difference to UCRL with its simultaneous 99 % interval"]
    assert told == pytest.approx([mean * centre, mean * (centre - half), mean * (centre + half)])


def test_runs_that_are_ucrl_s_are_counted() -> None:
    ledger, one_run_differs = Ledger(), UCRL.reward + np.eye(1, UCRL.t.size) * (np.arange(N) == 0)[:, None]
    sides(ledger, UCRL, [scal(2.0, 0.0), replace(scal(5.0, 0.0), reward=one_run_differs)])
    assert ledger.numbers["SCAL c = 2: runs with UCRL's rewards at every measurement"] == N
    assert ledger.numbers["SCAL c = 5: runs with UCRL's rewards at every measurement"] == N - 1


@pytest.mark.parametrize(
    ("judge", "offsets", "verdict", "key", "words"),
    [
        (judge_G5, (-0.5, -0.4), "holds", "better than UCRL with", "c = 2, c = 5"),
        (judge_G5, (-0.5, 0.0), "fails", "broken", "SCAL is no better than UCRL with c = 5"),
        (judge_G5, (-0.5, WIDE), "vacuous", "no conclusion", "too few runs for c = 5"),
        (judge_G6, (-0.5, -0.4), "holds", "the smaller c is better with", "c = 2 against c = 5"),
        (judge_G6, (-0.4, -0.4), "fails", "broken", "the smaller c is no better with c = 2 against c = 5"),
        (judge_G6, (-0.4, -0.5), "fails", "broken", "the smaller c is no better with c = 2 against c = 5"),
        (judge_G6, (-0.5, WIDE), "vacuous", "no conclusion", "too few runs for c = 2 against c = 5"),
        (judge_G7, (-0.5, -0.49), "holds", "too few runs to tell with", "no c"),
        (judge_G7, (-0.5, -0.4), "fails", "broken", "with c = 5 the regret is another than with c = 2"),
        (judge_G7, (-0.4, -0.5), "fails", "broken", "with c = 5 the regret is another than with c = 2"),
        (judge_G7, (-0.5, WIDE), "vacuous", "no conclusion", "too few runs for c = 5"),
    ],
)
def test_what_the_judges_make_of_it(judge, offsets, verdict, key, words, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    groups = [scal(c, spread(WIDE, 0.0, 2) if one == WIDE else one) for c, one in zip((2.0, 5.0), offsets, strict=True)]
    found = Experiment("three-state", int(UCRL.t[-1]), (UCRL, *groups))
    monkeypatch.setattr(experiments, "measured_honestly", lambda *_: None)
    outcome = judge(None, found)
    assert outcome.verdict == verdict
    assert outcome.numbers[key] == words


@pytest.mark.parametrize("judge", [judge_G5, judge_G6, judge_G7])
def test_no_conclusion_is_drawn_from_what_was_measured_wrongly(judge, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def broken(ledger: Ledger, *_: object) -> None:
        ledger.true("three states: D = 1/δ", False)

    monkeypatch.setattr(experiments, "measured_honestly", broken)
    outcome = judge(None, Experiment("three-state", 1, (UCRL, scal(2.0, 0.0), scal(5.0, 0.0))))
    assert outcome.verdict == "vacuous"
    assert outcome.numbers["no conclusion"] == "three states: D = 1/δ"
