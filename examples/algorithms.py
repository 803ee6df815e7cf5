"""Write what the pages of docs/algorithms say of each agent's file: its docstring, its options, its regrets.

Usage: python examples/algorithms.py [DOCS]

Each page has a part between two marks that is made from the module's docstring, so that pseudo-code and guarantee cannot drift from the
file, and from the table of docs/family.md. What stands after it, where each line is and when to take the agent, is written by hand.
"""

import re
import sys
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path

from spanrl import list_agents

BEGIN, END = (
    "<!-- written by examples/algorithms.py from the docstring of the file -->",
    "<!-- by hand from here on -->",
)
SOURCES = "../../src/spanrl"
VARIANTS = {
    "scal-kt": ("scal", "KT"),
    "ucrl-kt": ("ucrl", "KT"),
    "ucrl3-noss": ("ucrl3", "NOSS"),
    "ucrl3-sole": ("ucrl3", "NOSS and sole successors"),
    "tucrl-kt": ("tucrl", "KT"),
}
"""Curves of agents with options: the agent, and how the table calls it."""


def as_markdown(text: str) -> str:
    """Return a docstring as Markdown: literal blocks fenced, roles and double quotes as code, single stars escaped."""
    parts = []
    for block in re.split(r"\n{2,}(?=\S)|(?<=::)\n{2,}", text.strip()):
        if block.startswith("    "):
            parts.append(
                "```text\n" + "\n".join(line.removeprefix("    ") for line in block.rstrip().split("\n")) + "\n```"
            )
        else:
            parts.append(_prose(re.sub(r"(?<=\w)::$|\s*::$", ":", block)))
    return "\n\n".join(parts)


def _prose(text: str) -> str:
    """Return a paragraph or a list as Markdown, one line each."""
    text = re.sub(r"\n(?![*-] ) *", " ", text)
    text = re.sub(r":(?:mod|class|func|data|attr|meth):`~?([^`]+)`", _role, text)
    pieces = re.split(r"(``.+?``|\[?`[^`]+`(?:\]\([^)]*\))?)", text)
    pieces = [re.sub(r"docs/([\w/-]+\.md)", r"[\1](../\1)", one) for one in pieces]
    return "".join(f"`{one[2:-2]}`" if one.startswith("``") else one if "`" in one else _stars(one) for one in pieces)


def _role(found: re.Match[str]) -> str:
    """Return a name of the package as code, a module of it as a link to its file."""
    name = found[1]
    path = Path(name.removeprefix("spanrl.").replace(".", "/") + ".py")
    there = name.startswith("spanrl.") and (Path(__file__).parents[1] / "src" / "spanrl" / path).exists()
    return f"[`{name}`]({SOURCES}/{path.as_posix()})" if there else f"`{name}`"


def _stars(text: str) -> str:
    """Escape the stars of h* and g*, which no second one may answer."""
    return re.sub(
        r"\*\*.+?\*\*|(?<![\w)])\*\w[^*]*\w\*|^\* |(?<=[\w)])\*", lambda m: r"\*" if m[0] == "*" else m[0], text
    )


def signature(kind: type) -> str:
    """Return how an agent is made, with its defaults."""
    options = [f.name if f.default is MISSING else f"{f.name}={f.default!r}" for f in fields(kind) if f.init]
    return f"{kind.__name__}({', '.join(options)})"


def row_of(name: str, label: str, table: str) -> str:
    """Return the regrets that the table of docs/family.md has of an agent, as a row of its page."""
    start = f"| [`{name}`](algorithms/{name}.md){', ' + label if label else ''} |"
    (line,) = (line for line in table.splitlines() if line.startswith(start))
    return f"| {label or 'defaults'} |{line.removeprefix(start).rpartition('|')[0].rpartition('|')[0]}|"


def generated(name: str, table: str) -> str:
    """Return the part of a page that is not written by hand."""
    module, _, found = next(entry.factory for entry in list_agents() if entry.name == name).partition(":")
    kind = getattr(import_module(module), found)
    path = module.replace(".", "/")
    curves = {name: ""} | {curve: label for curve, (agent, label) in VARIANTS.items() if agent == name}
    steps = "10⁵" if name == "imed-rl" else "10⁶"
    rows = [row_of(name, label, table) for label in curves.values()]
    return "\n".join(
        [
            BEGIN, "",
            f"[`{path.removeprefix('spanrl/')}.py`](../../src/{path}.py) · {kind.source} · text `{name}`", "",
            f"`spanrl.{signature(kind)}`", "",
            "## Pseudo-code, and what is proved", "", as_markdown(import_module(module).__doc__ or ""), "",
            "## Regret", "",
            f"Mean pseudo-regret after {steps} steps, ten seeds ([all agents](../family.md)).", "",
            "| | three-state | RiverSwim (Osband) | 4-rooms |", "|---|--:|--:|--:|", *rows, "",
            *(f"![regret of {curve}](../figures/family/{curve}.png)\n" for curve in curves),
            END,
        ]
    )  # fmt: skip


def refreshed(page: str, name: str, table: str) -> str:
    """Return a page with its generated part made anew."""
    before, mark, rest = page.partition(BEGIN)
    _, other, after = rest.partition(END)
    assert mark, f"docs/algorithms/{name}.md: the marks are gone"
    assert other, f"docs/algorithms/{name}.md: the marks are gone"
    return before + generated(name, table) + after


def main(docs: Path) -> None:
    table = (docs / "family.md").read_text(encoding="utf-8")
    for entry in list_agents():
        path = docs / "algorithms" / f"{entry.name}.md"
        path.write_text(refreshed(path.read_text(encoding="utf-8"), entry.name, table), encoding="utf-8")
    print(f"{len(list_agents())} pages of {docs / 'algorithms'} written")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs")
