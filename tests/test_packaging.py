"""Version, citation, changelog and table of versions agree; ``make lowest`` tries the wheel, ``make docs`` builds the site."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import spanrl

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CITATION = (ROOT / "CITATION.cff").read_text("utf-8")
RELEASES = re.findall(r"(?m)^## (\S+) \(([^)]+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"))


def test_one_version():
    assert PROJECT["version"] == spanrl.__version__
    assert f"\nversion: {PROJECT['version']}\n" in CITATION


def test_the_changelog_has_a_date_for_every_release():
    sections = re.findall(r"(?m)^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    assert len(RELEASES) == len(sections)
    for version, date in RELEASES:
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date) or (date == "unreleased" and version == RELEASES[0][0])


def test_the_citation_has_the_date_of_its_release():
    date = dict(RELEASES)[PROJECT["version"]]
    assert date == "unreleased" or f"\ndate-released: {date}\n" in CITATION


def test_python_versions_are_those_that_are_tried():
    tried = set(re.findall(r"(?m)^\| (3\.\d+) \|", (ROOT / "docs" / "compat.md").read_text("utf-8")))
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if "Python :: 3." in one}
    assert named == tried
    assert f">={min(tried, key=lambda text: int(text[2:]))}" == PROJECT["requires-python"]


def test_the_table_of_versions_has_no_failure():
    outcomes = re.findall(r"(?m)^\| 3\.\d+ \|.*\| ([^|]+) \|$", (ROOT / "docs" / "compat.md").read_text("utf-8"))
    assert outcomes
    assert set(outcomes) == {"works"}


@pytest.mark.parametrize(
    "step", ["make demo", "make test", "make lowest", "make lint", "make dist", "make docs", "make notebooks-check"]
)
def test_continuous_integration_runs_it(step):
    assert step in (ROOT / ".ci" / "run").read_text("utf-8")
