"""The claims of the family: for each agent the ingredients of its guarantee, each with a checker, and mutants that the checker must refuse.

The paper's own claims (UCRL, UCRL2's sets, SCAL) are in ``spanrl.paper`` and run by ``spanrl reproduce``. docs/family.md lists these here.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any, NamedTuple

import numpy as np
import test_focus as focus
import test_imed_rl as imed
import test_psrl as psrl
import test_scal_plus as scal_plus
import test_tsde as tsde
import test_tucrl as tucrl
from family_checks import (
    Coverage,
    Hasty,
    Planning,
    check_certificate,
    check_coverage,
    check_doubling,
    check_kl_coverage,
    check_optimism,
)
from imed_pseudo_code import MUTANTS as OTHER_INDICES
from imed_pseudo_code import PseudoCode
from scipy.stats import binom

from spanrl import FOCUS, KLUCRL, PSRL, SCAL, TSDE, TUCRL, UCRL, UCRL2B, UCRL3, ProblemInfo, SCALPlus
from spanrl.agents.scal_plus import BonusModel
from spanrl.confidence.kl import KLBall
from spanrl.confidence.ucrl2b import UCRL2BBox
from spanrl.confidence.ucrl3 import UCRL3Box

LEVEL = 1e-3


class Claim(NamedTuple):
    """What is claimed of an agent, how it is checked on a subject, the real one, and broken ones by what is wrong with them."""

    agent: str
    ingredient: str
    check: Callable[[Any], None]
    real: Any
    mutants: dict[str, Any]

    @property
    def id(self) -> str:
        return f"FAM-{self.agent}-{self.ingredient}"


def seldom(fails: Callable[[float], int], most: float = 0.5, n_runs: int = 400) -> Callable[[float], None]:
    """Return a checker of a good event: with its bonus times a factor it fails in no more runs than its probability allows."""

    def check(factor: float) -> None:
        assert fails(factor) <= binom.isf(LEVEL, n_runs, most)

    return check


def check_index(version: Any) -> None:
    """Assert that a version of the pseudo-code makes the agent's decisions on sixty random histories."""
    wrong, _ = imed.judge_all(version, imed.random_histories())
    assert wrong == 0


def of_sets(name: str, agent: Any, estimate: Any) -> list[Claim]:
    """Return what is claimed alike of all agents that are UCRL with sets of their own."""
    other_plans = {
        "plans on a sample": Planning(PSRL(), estimate),
        "values are cut": Planning(SCAL(0.5, bounds=agent.bounds), estimate),
    }
    hasty = {"ends ten times too early": Planning(Hasty(estimate), estimate)}
    if name == "ucrl3":
        hasty["NOSS"] = Planning(UCRL3(noss=True), estimate)
    return [
        Claim(name, "optimism", check_optimism, Planning(agent, estimate), other_plans),
        Claim(name, "certificate", check_certificate, Planning(agent, estimate), hasty),
        Claim(name, "episodes", check_doubling, agent, MORE_EPISODES),
    ]


MORE_EPISODES = {"one step longer than the last": TSDE(), "fifty steps": UCRL(bounds="kt", episodes="every-50")}
UCRL2B_MOST = 4 * pi**2 / 72 * (0.9 / 2) ** 2
UCRL3_MOST = 1 - (1 - 1.33 * 0.05) ** 2 * (1 - 2.22 * 0.05) ** 2
EIGHT_TIMES = UCRL3Box(0.9).settings(ProblemInfo(2, 1)) - np.log(8)

CLAIMS = [
    Claim(
        "ucrl2b", "coverage", check_coverage, Coverage(UCRL2BBox(0.9), 300, UCRL2B_MOST),
        {"a sixth of the width": Coverage(UCRL2BBox(0.9), 300, UCRL2B_MOST, (("narrower", 6.0),))},
    ),
    *of_sets("ucrl2b", UCRL2B(), UCRL2BBox(0.05)),
    Claim(
        "ucrl3", "coverage", check_coverage, Coverage(UCRL3Box(0.9), 120, UCRL3_MOST),
        {
            "two thirds of the width": Coverage(UCRL3Box(0.9), 120, UCRL3_MOST, (("narrower", 1.5),)),
            "level times 8": Coverage(UCRL3Box(0.9), 120, UCRL3_MOST, (("settings", lambda n: EIGHT_TIMES),)),
        },
    ),
    *of_sets("ucrl3", UCRL3(), UCRL3Box(0.05)),
    Claim(
        "kl-ucrl", "coverage", check_kl_coverage, {},
        {"level times 4": {"factor": 4.0}, "no excess": {"excess": False}, "choices are free": {"choices": False}},
    ),
    *of_sets("kl-ucrl", KLUCRL(), KLBall(0.05)),
    Claim("tucrl", "coverage", tucrl.check_coverage, 1.0, {"a millionth inside the radii": 1e-6}),
    Claim(
        "tucrl", "optimism", tucrl.check_optimism, TUCRL(**tucrl.SMALL), {"gives up what was never seen": tucrl.Hasty()}
    ),
    Claim(
        "tucrl", "truncation", tucrl.check_truncation, TUCRL(**tucrl.SMALL),
        {"gives up at once": tucrl.Hasty(), "never gives up": UCRL(**tucrl.SMALL)},
    ),
    Claim("tucrl", "new-states", tucrl.check_new_states_begin_episodes, TUCRL(), {"new states end nothing": UCRL()}),
    Claim("tucrl", "episodes", check_doubling, TUCRL(), MORE_EPISODES),
    Claim("scal-plus", "good-event", seldom(scal_plus.misses), 1.0, {"a tenth of the bonus": 0.1}),
    Claim(
        "scal-plus", "optimism", scal_plus.check_optimism,
        lambda counts, info, c, delta: scal_plus.dense_model(BonusModel(c, delta), counts, info), scal_plus.MUTANTS,
    ),
    Claim("scal-plus", "episodes", check_doubling, SCALPlus(5.0), MORE_EPISODES),
    Claim("focus", "good-event", seldom(focus.bonus_fails), 1.0, {"a tenth of the bonus": 0.1}),
    Claim("focus", "optimism", focus.check_optimism, 1.0, {"a fifth of the bonus": 0.2}),
    Claim("focus", "episodes", focus.check_count, FOCUS(span_bound=2, c1=1, c2=1), MORE_EPISODES),
    Claim("psrl", "posterior", psrl.check_posterior, 1, {"visits count twice": 2, "visits do not count": 0}),
    Claim("psrl", "episodes", check_doubling, PSRL(), MORE_EPISODES),
    Claim("tsde", "growth", tsde.check_episodes, TSDE(), {"doubling alone": PSRL(), "five steps": tsde.FIVE_STEPS}),
    Claim("tsde", "episodes", tsde.check_count, TSDE(), {"doubling alone": PSRL(), "five steps": tsde.FIVE_STEPS}),
    Claim("imed-rl", "index", check_index, PseudoCode, {one.__name__: one for one in OTHER_INDICES}),
    Claim("imed-rl", "exploration", imed.check_exploration, 0.0, {"the index of the authors' program": 1.0}),
]  # fmt: skip
