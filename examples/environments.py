"""Draw every environment of spanrl and write the pages about them, docs/environments.md and docs/environments/, from their docstrings.

Usage: python examples/environments.py [DOCS] [NAME …]      all of them where no name is given
"""

import re
import sys
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
from environment_pictures import bars, circle, graph, grid, policy_map, row

from spanrl import list_envs
from spanrl.axes import image
from spanrl.envs.docstrings import sections
from spanrl.envs.frozen_lake import LAKES
from spanrl.envs.knight_quest import DRAGON_CELLS, MINE, PRINCESS, TOWN
from spanrl.envs.lattice import cells_of
from spanrl.envs.rooms import FOUR_ROOMS, TWO_ROOMS
from spanrl.envs.taxi import STOPS, WALLS

HUB = np.vstack([(0.0, 0.0), 2.1 * circle(6)])
CHAIN = np.column_stack([np.linspace(4.4, 8.4, 5), np.zeros(5)])
LOWS = ((0, 0), (-2.2, -1.5), (0, -1.5), (2.2, -1.5), (-2.2, -3.0))  # a tree, and the high states around it
HIGHS = ((0, 1.4), (-3.7, -1.5), (0, -2.9), (3.7, -1.5), (-3.7, -3.0))
COPIES = np.array([place for copy in zip(LOWS, HIGHS, strict=True) for place in copy], dtype=float)
LOOPS = np.array([(0, 0), (-1.6, 0), (-3.1, 0.9), (-3.1, -0.9), (1.6, 0), (3.1, -0.9), (3.1, 0.9)])
TRIANGLE = np.array([(0, 0), (2.9, 1.35), (2.9, -1.35)])
MARKS = dict.fromkeys(DRAGON_CELLS, "D") | {PRINCESS: "P", TOWN: "T", MINE: "G"}


def letters(rows):
    """Return what stands in the cells of a map, free cells left out."""
    return {cell: letter for cell, letter in cells_of(rows).items() if letter in "SGH"}


PICTURES = {
    "The paper's": {
        "two-state": partial(graph, places=row(2, 2.2)),
        "three-state": partial(graph, places=TRIANGLE),
        "knight-quest": partial(
            grid,
            panels={
                "with nothing, the dragon at (1, 1)": "({},{}) dragon=(1,1)",
                "with the key": "({},{}) dragon=(1,1) key",
            },
            marks=MARKS,
        ),
        "counterexample-nonfeasible": partial(graph, places=row(2, 2.2)),
        "counterexample-fixed-point": partial(graph, places=row(3, 2.0)),
        "counterexample-cycle": partial(graph, places=TRIANGLE),
    },
    "Hard to explore": {
        "riverswim": partial(graph, places=row(6, 1.7)),
        "ergodic-riverswim": partial(graph, places=row(6, 2.2)),
        "six-arms": partial(graph, places=HUB, loops="paid"),
        "nasty-7": partial(graph, places=LOOPS),
        "deep-sea": partial(
            grid,
            marks={(0, 0): "S", (7, 7): "T"},
            never={(i, j) for i in range(8) for j in range(8) if j > i},
            moves={"left": (1, -1), "right": (1, 1)},
        ),
        "jaksch-lower-bound": partial(graph, places=COPIES, loops="none"),
        "focus-pair": partial(graph, places=row(2, 2.2), others=("focus-pair[model=returns]",)),
    },
    "Worlds on a grid": {
        "4-rooms": partial(grid, marks=letters(FOUR_ROOMS)),
        "2-rooms": partial(grid, marks=letters(TWO_ROOMS)),
        "frozen-lake": partial(grid, marks=letters(LAKES["4x4"].split("-"))),
        "taxi": partial(
            grid,
            panels={"to the passenger at Y": "({}, {}) Y to G", "to his hotel, G": "({}, {}) taxi to G"},
            marks={cell: stop for stop, cell in STOPS.items()},
            walls=WALLS,
        ),
    },
    "Operations research": {
        "queue-admission": partial(bars, label="customers"),
        "two-queues": policy_map,
        "inventory": partial(bars, label="stock"),
        "machine-replacement": partial(bars, label="wear"),
    },
    "Random": {
        "garnet": partial(graph, places=3.2 * circle(20), loops="none", best_only=True),
        "garnet-chain": partial(graph, places=np.vstack([3.2 * circle(20), CHAIN]), loops="none", best_only=True),
    },
}
INTRODUCTION = """# Environments

Everything that `make` knows, a page each, with its constants: S states, A actions, optimal gain g\\*, span of the optimal bias
sp(h\\*), diameter D, all for the defaults. These pages are made from the docstrings of the factories by `examples/environments.py`; the
tests compare the constants with `analyse`, with policy iteration, linear programs and shortest paths, and with the literature.
"""
LEGENDS = {
    "graph": "An arrow is labelled with its probability, unless that is 1, and its reward, unless that is 0.",
    "grid": "Colours are optimal biases h\\*, pale in the worst state; arrows are the best moves (a dot: any other action).",
}
CROWDED = (
    " Staying is not drawn where it would crowd the picture; of the Garnets only what the best policy does is drawn."
)
CONSTANTS = re.compile(r"S = (\S+), A = (\S+), g\* = (\S+), sp\(h\*\) = (\S+), D = (\S+)\.(?: |$)")


def index() -> str:
    """Return the text of docs/environments.md: all constants in one table, by family."""
    factories = {entry.name: entry for entry in list_envs()}
    parts = [INTRODUCTION]
    for family, pictures in PICTURES.items():
        rows = ["| environment | what it is | S | A | g\\* | sp(h\\*) | D |", "|---|---|--:|--:|--:|--:|--:|"]
        for name in pictures:
            constants = " | ".join(_constants(factories[name]).groups())
            rows.append(f"| [`{name}`](environments/{name}.md) | {factories[name].summary} | {constants} |")
        parts += [f"## {family}", "\n".join(rows)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def pages() -> dict[str, str]:
    """Return the text of docs/environments/NAME.md by name."""
    return {entry.name: _page(entry) for entry in list_envs()}


def _constants(entry):
    return CONSTANTS.match(" ".join(sections(entry.load())["Constants"].split()))


def _page(entry) -> str:
    found = sections(entry.load())
    numbers = _constants(entry)
    lines = [
        f"# {entry.name}",
        entry.summary,
        f"![{entry.name}](../figures/envs/{entry.name}.png)",
        f"**{numbers[0].strip()}** {numbers.string[numbers.end() :]}".strip()
        .replace("h*", "h\\*")
        .replace("g*", "g\\*"),
    ]
    free = re.sub(r"(?ms)^::\n\n.*?(?=^\S|\Z)", "", found[""]).strip()  # maps are in the pictures
    if free:
        lines.insert(2, " ".join(free.split()))
    described = [
        f"- **{h}.** {' '.join(found[h].split())}" for h in ("States", "Actions", "Transitions", "Rewards", "Start")
    ]
    described += [f"- `{name}`: {text}" for name, text in _arguments(found.get("Args", ""))]
    described.append(f"- **Source.** {' '.join(found['Source'].split())}")
    legend = _legend(entry.name)
    example = f'```python\n>>> import spanrl\n>>> spanrl.make("{entry.name}").mdp.n_states\n{numbers[1]}\n\n```'
    return "\n\n".join([*lines, "\n".join(described), *([f"*{legend}*"] if legend else []), example]) + "\n"


def _legend(name: str) -> str:
    """Return how to read the picture of an environment; bars and maps say it themselves."""
    drawn = next(family[name] for family in PICTURES.values() if name in family)
    kind = getattr(drawn, "func", drawn).__name__
    crowded = CROWDED if getattr(drawn, "keywords", {}).get("loops") else ""
    return LEGENDS.get(kind, "") + crowded


def _arguments(text: str):
    """Yield (names, description) of each line of parameters."""
    for name, described in re.findall(r"^([\w, ]+): (.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL):
        yield name.replace(", ", "`, `"), " ".join(described.split())


def draw(name: str):
    """Return the figure of one environment."""
    return next(family[name] for family in PICTURES.values() if name in family)(name)


def _compressed(png: bytes) -> bytes:
    """Return a large picture in 64 colours: a quarter of the bytes."""
    from PIL import Image

    if len(png) < 30_000:
        return png
    small = BytesIO()
    picture = Image.open(BytesIO(png)).convert("RGB")
    picture.quantize(64, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()


def main(docs: Path, *names: str) -> None:
    folder = docs / "figures" / "envs"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or [name for family in PICTURES.values() for name in family]:
        (folder / f"{name}.png").write_bytes(_compressed(image(draw(name), "png")))
    (docs / "environments.md").write_text(index(), encoding="utf-8")
    (docs / "environments").mkdir(exist_ok=True)
    for name, text in pages().items():
        (docs / "environments" / f"{name}.md").write_text(text, encoding="utf-8")
    print(f"{docs / 'environments.md'}, {docs / 'environments'} and their pictures are written")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"), *sys.argv[2:])
