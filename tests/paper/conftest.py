"""Make ``tests/strategies.py`` importable, and give every test the same systems."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spanrl.paper.slow import slow_system
from spanrl.paper.slow_learning import slow_learners
from spanrl.paper.system import System

sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture(scope="session")
def real():
    """The public functions of spanrl."""
    return System.real()


@pytest.fixture(scope="session")
def slow(real):
    """The slow planner, unbroken."""
    return slow_system(real)


@pytest.fixture(scope="session")
def slow_learning(real):
    """Slow learners, unbroken, with our planner: the slow one is checked without them."""
    return slow_learners(real)
