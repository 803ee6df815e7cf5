"""The README and the docs are run: Python examples as doctests, commands through the command line."""

import doctest
import re
import runpy
import shlex
import tomllib
from pathlib import Path

import pytest

import spanrl
from spanrl.agents import reference
from spanrl.agents import registry as agents
from spanrl.cli import main
from spanrl.cli.paper import DURATIONS
from spanrl.envs import registry as envs
from spanrl.paper.reproduce import reproduce

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
FIRST = ("README.md", "getting-started.md", "experiments.md", "cli.md")  # what they write, later pages may use
NOT_RUN = ("make", "pip", "ray", "git")  # checked below: there is such a target or extra


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def commands(page: Path):
    """Yield (command, the lines shown under it) for every command of a page, without its comment."""
    for block in re.findall(r"```console\n(.*?)```", text_of(page), re.DOTALL):
        for part in re.split(r"^\w*\$ +", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            lines = [line.strip() for line in shown.splitlines() if line.strip() not in ("", "…")]
            yield shlex.split(command, comments=True), lines


@pytest.mark.parametrize("page", [page for page in PAGES if "\n>>> " in text_of(page)], ids=name_of)
def test_python_examples(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for registry in (agents, envs):  # an example registers its own
        monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    failed, attempted = doctest.testfile(str(page), module_relative=False)
    assert failed == 0
    assert attempted >= len(re.findall(r"^>>> ", text_of(page), re.MULTILINE)) * 0.8, "comments are no examples"


def test_python_without_prompts_is_the_code_of_the_reference_alone():
    """What stands beside the figures is what runs; docstrings are left out there. (Signatures are compared by tests/test_examples.py.)"""
    source = re.sub(r'\n    """.*?"""\n', "\n", Path(reference.__file__).read_text("utf-8"), flags=re.DOTALL)
    shown = []
    for page in PAGES:
        blocks = [
            block
            for block in re.findall(r"```python\n(.*?)\n```", text_of(page), re.DOTALL)
            if ">>>" not in block and not (page.parent.name == "algorithms" and block.startswith("spanrl."))
        ]
        assert not blocks or page.name == "reference.md", (
            f"{name_of(page)}: write examples with >>>, so that they are run"
        )
        shown += blocks
    assert len(shown) == 4
    for block in shown:
        assert block in source


def test_commands_print_what_is_shown(capsys, tmp_path, monkeypatch):
    """In their order, in an empty directory, as a newcomer would type them; a command that was run before is not run again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spanrl.paper.page.write.write_pages", lambda found: {})  # tests/paper look at the page
    done = set()
    for page in sorted(PAGES, key=lambda page: FIRST.index(page.name) if page.name in FIRST else len(FIRST)):
        for words, shown in commands(page):
            if words[0] != "spanrl" or "--ray" in words or (tuple(words) in done and not shown):
                continue
            assert main(words[1:]) == 0, (name_of(page), words)
            done.add(tuple(words))
            printed = {line.strip() for line in capsys.readouterr().out.splitlines()}
            assert set(shown) <= printed, (name_of(page), words)
    assert (tmp_path / "results" / "report.html").is_file()


def test_commands_that_are_not_run_name_what_exists():
    targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    extras = set(tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["optional-dependencies"])
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    for words, where in ((words, page) for page in pages for words, _ in commands(page)):
        assert words[0] in ("spanrl", *NOT_RUN), (name_of(where), words)
    for page in pages:
        for found in re.findall(r"(?:`|\$ )make ([a-z -]+)", text_of(page)):
            assert set(found.split()) <= targets, (name_of(page), found)
        for found in re.findall(r"pip install '\.\[([a-z,]+)\]'", text_of(page)):
            assert set(found.split(",")) <= extras, (name_of(page), found)


def test_specs_are_toml():
    for page in PAGES:
        for block in re.findall(r"```toml\n(.*?)```", text_of(page), re.DOTALL):
            tomllib.loads(block)


def test_the_readme_is_short_and_has_all_agents():
    assert len(text_of(README)) <= 7000
    table = text_of(README).partition("## Agents")[2].partition("## Speed")[0]
    for entry in spanrl.list_agents():
        assert f"`{entry.load().__name__}" in table, "a new agent has a row, too"


def test_one_truth_about_durations(capsys):
    assert main(["reproduce", "-h"]) == 0
    for text in (text_of(DOCS / "getting-started.md"), reproduce.__doc__, capsys.readouterr().out):
        assert DURATIONS in " ".join(text.replace("`", "").split())
    for page in (README, DOCS / "getting-started.md", ROOT / "Makefile"):
        assert "about five minutes the first time" in text_of(page)


def test_the_page_of_the_command_line_is_made_from_it():
    page = runpy.run_path(str(ROOT / "tools" / "cli_page.py"))["page"]
    assert text_of(DOCS / "cli.md") == page(), "make cli-page"


def test_every_public_name_is_in_the_reference_once():
    shown = [
        name for page in (DOCS / "api").iterdir() for name in re.findall(r"(?m)^::: spanrl\.(\w+)$", text_of(page))
    ]
    assert sorted(shown) == sorted(name for name in spanrl.__all__ if name != "__version__")


def test_links_lead_somewhere():
    """Files and headings, as they are read without the site, too."""
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target, anchor in re.findall(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]*))?\)", text_of(page)):
            path = (page.parent / target) if target else page
            made = target.startswith("notebooks/")  # from examples/notebooks, by the site
            assert path.exists() or made, (name_of(page), target)
            if anchor and path.suffix == ".md":
                assert anchor in anchors(path), (name_of(page), target, anchor)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?s)```.*?```", "", text_of(page)))
    plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {re.sub(r" ", "-", title) for title in plain} | {re.sub(r"[\s-]+", "-", title) for title in plain}
