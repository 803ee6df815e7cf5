"""The lowest versions: every bound of pyproject.toml becomes a pin, and every command is tried with them (``make lowest`` does it)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import lowest
from spanrl.cli import app

ROOT = Path(__file__).parents[1]


def test_every_bound_is_a_pin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    bounds = {one.replace(">=", "==") for group in groups for one in group if "[" not in one}
    assert set(lowest.pins(ROOT / "pyproject.toml")) == bounds


def test_known_traps_lie_below_the_bounds():
    """scipy 1.11 has no diags_array; typer up to 0.17 takes a current click's flags for set, or cannot print help."""
    pins = dict(pin.split("==") for pin in lowest.pins(ROOT / "pyproject.toml"))
    assert tuple(map(int, pins["scipy"].split("."))) >= (1, 12)
    assert tuple(map(int, pins["typer"].split("."))) >= (0, 18)


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy==2.0", "numpy>=1.26,<3"])
def test_a_dependency_without_a_plain_bound_is_refused(tmp_path, requirement):
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\ndependencies = ["{requirement}"]\n[project.optional-dependencies]\n'
    )
    with pytest.raises(SystemExit, match=r"must read name>=version"):
        lowest.pins(tmp_path / "pyproject.toml")


def test_every_command_is_tried():
    tried = {arguments[0] for arguments, _ in lowest.COMMANDS}
    assert {command.name for command in app.registered_commands} <= tried


def test_the_tests_that_run_with_them_exist():
    assert all((ROOT / path).is_file() for path in lowest.TESTS)


def test_continuous_integration_runs_it():
    assert "make lowest" in (ROOT / ".ci" / "run").read_text()
