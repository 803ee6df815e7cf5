"""Try the lowest versions that pyproject.toml allows: ``python tests/lowest.py FOLDER`` makes an environment of them and tries all.

What is tried is the wheel, from an empty folder: everything that spanrl does works without its sources.

The pins are derived from the bounds, so the two cannot drift apart. Kernels are compiled into the same folder: the first time takes about
two minutes, later ones half a minute.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet")
TESTS = (
    "tests/test_tables.py",
    "tests/learning/test_run.py",
    "tests/models/test_models_files.py",
    "tests/planning/test_planning_accuracy.py",
    "tests/kernels/test_kernels_jit.py",
)

SPEC = """
name = "lowest"
horizon = 1000
seeds = 2
[[env]]
id = "two-state"
[[agent]]
id = "ucrl2"
[[agent]]
id = "scal"
span_bound = [1, 2]
[[agent]]
id = "psrl"
[[agent]]
id = "qlearning"
[[agent]]
id = "ucrl"
bounds = "kt"
episodes = "vm"
"""

GYMNASIUM = """
import gymnasium, spanrl
run = spanrl.learn(gymnasium.make("FrozenLake-v1"), "ucrl", horizon=1000, seed=0)
gymnasium.make("spanrl/KnightQuest-v0", render_mode="ansi").reset(seed=0)
print(run, run.plot())
"""

COMMANDS = (
    (("--version",), "spanrl "),
    *(
        ((name, "--help"), f"Usage: spanrl {name} ")
        for name in ("list", "analyse", "plan", "learn", "run", "status", "report", "reproduce", "bench")
    ),
    (("list",), "scal"),
    (("analyse", "three-state"), "communicating"),
    (("plan", "two-state", "--span-bound", "0.75"), "[0.75, 0.75]"),
    (("plan", "riverswim[n_states=40]"), "deterministic"),
    (("learn", "three-state", "scal[span_bound=5]", "--horizon", "1e4", "--out", "run", "--plot", "run.png"), "regret"),
    (("run", "spec.toml", "--out", "results"), "12 of 12 cells finished"),
    (("status", "results"), "two-state"),
    (("report", "results"), "report.html"),
    (("reproduce", "--only", "L2", "--scale", "smoke", "--out", "reproduction"), "1 of 1 verdicts are as expected"),
)
"""Arguments of the command line, and what must stand in the output."""


def pins(pyproject: Path) -> list[str]:
    """Return ``name==version`` for every lower bound; a dependency without one is refused."""
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    out = []
    for requirement in sorted({one for group in groups for one in group if not one.startswith("spanrl[")}):
        bound = re.fullmatch(r"([A-Za-z0-9-]+)>=([0-9.]+)", requirement)
        if bound is None:
            raise SystemExit(
                f"lowest: {requirement!r} must read name>=version, so that its lowest version can be tried."
            )
        out.append(f"{bound[1]}=={bound[2]}")
    return out


def install(folder: Path) -> Path:
    """Make the environment unless it is there with the same pins, install the wheel of these sources; return its Python."""
    python, constraints = folder / "bin" / "python", folder / "constraints.txt"
    wanted = "\n".join(pins(ROOT / "pyproject.toml")) + "\n"
    if not constraints.exists() or constraints.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        trial = folder / "trial.txt"
        trial.write_text(wanted)
        wheel = build_wheel(python, folder / "dist")
        subprocess.run([python, *PIP, "-c", trial, f"{wheel}[all]", "pytest", "hypothesis"], check=True)
        trial.rename(constraints)  # only what is whole is used again
        return python
    subprocess.run([python, *PIP, "--force-reinstall", "--no-deps", build_wheel(python, folder / "dist")], check=True)
    return python


def build_wheel(python: Path, folder: Path) -> Path:
    """Build the wheel of these sources into a folder, which holds no other; return its path."""
    shutil.rmtree(folder, ignore_errors=True)
    pip = (python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps")
    subprocess.run([*pip, "-w", folder, ROOT], check=True)
    return next(folder.glob("spanrl-*.whl"))


def smoke(python: Path, cache: Path) -> None:
    """Run every command once in an empty folder, an environment of Gymnasium, and a few tests."""
    env = os.environ | {"XDG_CACHE_HOME": str(cache), "NO_COLOR": "1", "COLUMNS": "100"}
    env.pop("NUMBA_CACHE_DIR", None)
    with tempfile.TemporaryDirectory() as where:
        Path(where, "spec.toml").write_text(SPEC)
        for arguments, words in COMMANDS:
            expect([python, "-m", "spanrl.cli", *arguments], words, where, env)
        expect([python, "-c", GYMNASIUM], "the limit of 100 steps per episode", where, env)
    # old packages beside new ones warn of each other
    quick = ["-m", "pytest", "-q", "-o", "filterwarnings=default", "-p", "no:cacheprovider", *TESTS]
    expect([python, *quick], " passed", ROOT, env)


def expect(command: list[str | Path], words: str, where: str | Path, env: dict[str, str]) -> None:
    """Run a command; stop unless it succeeds and prints these words."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=where, env=env)
    if done.returncode != 0 or words not in done.stdout:
        raise SystemExit(
            f"lowest: {command[1:]} must end with 0 and print {words!r}; it ended with {done.returncode}:\n"
            f"{done.stdout}{done.stderr}"
        )
    print(*(part for part in command[1:] if "\n" not in str(part)), "… as it should", flush=True)


if __name__ == "__main__":
    target = Path(sys.argv[1]).absolute()
    smoke(install(target), target / "cache")
