"""Make ``tests/strategies.py`` importable, and give every test the same systems."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest
from slow_learning import slow_learners
from slow_planning import slow_system

from spanrl.agents.scal import SCAL
from spanrl.agents.ucrl import UCRL
from spanrl.paper.page import html
from spanrl.paper.system import System

LONG = 10**7
"""Steps of a run that is worth keeping."""

sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture(scope="session", autouse=True)
def _domains_once():
    """Let the page's section about the domains, the same on every page, be written once: to analyse Knight Quest takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "domains_section", functools.cache(html.domains_section))
        yield


@pytest.fixture(scope="session")
def real():
    """The public functions of spanrl; long runs of plain agents are made once, for claims and mutants compare the same ones."""
    system, runs = System.real(), {}
    make = functools.cache(system.make)

    def learn(env, agent, **options):
        if not isinstance(agent, SCAL | UCRL) or options["horizon"] < LONG:
            return system.learn(env, agent, **options)
        key = (id(env), agent, *sorted(options.items()))  # environments made by ``make`` live as long as it
        if key not in runs:
            runs[key] = env, system.learn(env, agent, **options)
        return runs[key][1]

    return system.changed(make=make, learn=learn)


@pytest.fixture(scope="session")
def slow(real):
    """The slow planner, unbroken."""
    return slow_system(real)


@pytest.fixture(scope="session")
def slow_learning(real):
    """Slow learners, unbroken, with our planner: the slow one is checked without them."""
    return slow_learners(real)
