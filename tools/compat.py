"""Try everything with the lowest and the newest versions on every Python that is here: ``python tools/compat.py FOLDER docs/compat.md``.

A wheel is built once and installed in environments of their own, whose versions uv resolves: the lowest that pyproject.toml allows and that
have wheels for the Python, or the newest. Then every command is run once, elsewhere, and a few tests (tests/lowest.py).
"""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import lowest  # noqa: E402

SHOWN = ("numpy", "scipy", "numba", "typer", "rich", "msgspec", "polars", "gymnasium", "matplotlib", "plotly")
KINDS = {"lowest": "lowest-direct", "newest": "highest"}
HEAD = """# Versions that work

`make compat` installs spanrl's wheel with the lowest versions that `pyproject.toml` allows (those that have wheels for the Python in
question) and with the newest ones, on every Python from 3.11 up that it finds on the machine, runs every command once in an empty
folder, learns in a Gymnasium environment and runs some tests. Continuous integration does the same for the lowest versions on one Python
(`make lowest`).
"""


def pythons() -> dict[str, Path]:
    """Return an interpreter per minor version from 3.11 up: those on the path, and pyenv's."""
    found: dict[str, Path] = {}
    places = [*Path.home().glob(".pyenv/versions/*/bin"), *(Path(folder) for folder in ("/usr/local/bin", "/usr/bin"))]
    for candidate in sorted(path for place in places for path in place.glob("python3.*")):
        name = re.fullmatch(r"python(3\.(\d+))", candidate.name)
        if name and int(name[2]) >= 11 and _runs(candidate):
            found.setdefault(name[1], candidate)
    return dict(sorted(found.items(), key=lambda one: int(one[0].split(".")[1])))


def _runs(python: Path) -> bool:
    return subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0


def try_out(uv: Path, wheel: Path, python: Path, kind: str, folder: Path) -> tuple[dict[str, str], str]:
    """Return the versions of one environment, and what became of it: "works", or the first line that says why not."""
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", python, folder], check=True)
    made, listed = folder / "bin" / "python", folder / "versions.txt"
    options = ("--quiet", "--python", made, "--resolution", KINDS[kind])
    source = ("--only-binary", ":all:", "--extra", "all", ROOT / "pyproject.toml")
    subprocess.run([uv, "pip", "compile", *options, *source, "--no-header", "--no-annotate", "-o", listed], check=True)
    install = (uv, "pip", "install", "--quiet", "--python", made)
    subprocess.run([*install, "-r", listed, wheel, "pytest", "hypothesis"], check=True)
    versions = dict(re.findall(r"(?m)^([\w-]+)==([\w.]+)", listed.read_text()))
    try:
        lowest.smoke(made, folder / "cache")
    except SystemExit as error:
        print(error, flush=True)
        return versions, "fails: " + str(error).splitlines()[0].replace("|", "\\|")
    return versions, "works"


def table(rows: list[tuple[str, str, dict[str, str], str]]) -> str:
    """Return the page: a row per environment."""
    lines = [f"| Python | versions | {' | '.join(SHOWN)} | outcome |", "|---|---|" + "--:|" * len(SHOWN) + "---|"]
    for python, kind, versions, outcome in rows:
        shown = " | ".join(versions.get(name, "–") for name in SHOWN)
        lines.append(f"| {python} | {kind} | {shown} | {outcome} |")
    lines += [
        "",
        f"On {datetime.now(UTC).date()}, Linux, x86-64. A Python that is not in the table was not on the machine.",
    ]
    return f"{HEAD}\n" + "\n".join(lines) + "\n"


def main(folder: Path, page: Path) -> int:
    folder.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", folder / "uv"], check=True)
    subprocess.run([folder / "uv" / "bin" / "python", *lowest.PIP, "uv"], check=True)
    wheel = lowest.build_wheel(folder / "uv" / "bin" / "python", folder / "dist")
    rows = []
    for name, python in pythons().items():
        for kind in KINDS:
            print(f"\n== Python {name}, {kind} versions", flush=True)
            versions, outcome = try_out(folder / "uv" / "bin" / "uv", wheel, python, kind, folder / f"{name}-{kind}")
            print(outcome, flush=True)
            rows.append((name, kind, versions, outcome))
    page.write_text(table(rows), encoding="utf-8")
    return int(any(outcome != "works" for *_, outcome in rows))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), Path(sys.argv[2])))
