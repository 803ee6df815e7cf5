"""The README and the docs are run: Python examples as doctests, commands through the command line."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from spanrl.agents import reference
from spanrl.agents import registry as agents
from spanrl.cli import main
from spanrl.cli.paper import DURATIONS
from spanrl.envs import registry as envs
from spanrl.paper.reproduce import reproduce

README = Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"
SLIPS, EXPERIMENTS, PROCESSES, AGENTS, FAMILY, SOLVER, REFERENCE = (
    DOCS / f"{name}.md" for name in ("slips", "experiments", "processes", "agents", "family", "solver", "reference")
)


def commands():
    """Return (command, the lines shown under it) for every spanrl command of the README."""
    blocks = re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            if command.startswith("spanrl"):
                yield command, [line.strip() for line in shown.splitlines() if line.strip() not in ("", "…")]


@pytest.mark.parametrize(
    ("page", "least"),
    [
        (README, 11),
        (SLIPS, 11),
        (EXPERIMENTS, 11),
        (PROCESSES, 4),
        (AGENTS, 36),
        (FAMILY, 10),
        (SOLVER, 3),
        (REFERENCE, 8),
    ],
)
def test_python_examples(page, least, monkeypatch):
    for registry in (agents, envs):  # an example registers its own
        monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    failed, attempted = doctest.testfile(str(page), module_relative=False)
    assert failed == 0
    assert attempted >= least


def test_the_page_of_the_reference_shows_its_code():
    """What stands beside the figures is what runs; docstrings are left out there."""
    source = re.sub(r'\n    """.*?"""\n', "\n", Path(reference.__file__).read_text("utf-8"), flags=re.DOTALL)
    blocks = re.findall(r"```python\n(.*?)\n```", REFERENCE.read_text("utf-8"), re.DOTALL)
    shown = [block for block in blocks if not block.startswith(">>>")]
    assert len(shown) == 4
    for block in shown:
        assert block in source


def test_readme_help_and_docstring_give_the_same_durations(capsys):
    assert main(["reproduce", "--help"]) == 0
    for text in (README.read_text(encoding="utf-8"), reproduce.__doc__, capsys.readouterr().out):
        assert DURATIONS in " ".join(text.replace("`", "").split())


def test_commands_print_what_is_shown(capsys, tmp_path, monkeypatch):
    """In their order, in an empty directory, as a newcomer would type them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spanrl.paper.page.write.write_pages", lambda found: {})  # tests/paper look at the page
    for command, shown in commands():
        assert main(shlex.split(command)[1:]) == 0, command
        printed = {line.strip() for line in capsys.readouterr().out.splitlines()}
        assert set(shown) <= printed, command
    assert (tmp_path / "results" / "report.html").is_file()
