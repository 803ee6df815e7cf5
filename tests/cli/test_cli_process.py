"""The command as a process of its own: streams, exit codes, pipes, and what it imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest


def spanrl(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spanrl.cli", *argv], capture_output=True, text=True, encoding="utf-8", timeout=300,
        check=False, **options,
    )  # fmt: skip


def test_plan() -> None:
    done = spanrl("plan", "two-state", "--span-bound", "0.75", "--json", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["gain"] == pytest.approx(0.75, abs=1e-6)


def test_wrong_input() -> None:
    done = spanrl("plan", "two-stat")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "spanrl: make: unknown environment 'two-stat'. Did you mean 'two-state'?\n"


def test_not_converged() -> None:
    done = spanrl("plan", "counterexample-cycle", "--span-bound", "0.4", "--max-sweeps", "5", "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1


def test_debug_shows_the_traceback() -> None:
    done = spanrl("plan", "two-stat", "--debug")
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert "UnknownNameError" in done.stderr


@pytest.mark.parametrize("argv", [("list",), ("list", "--json"), ("--help",)])
def test_a_closed_pipe_is_no_error(argv: tuple[str, ...]) -> None:
    """As in `spanrl list | head -0`: the reader is gone before anything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "spanrl.cli", *argv], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60,
            check=False,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 0


def test_help_does_not_import_the_compiler_and_has_no_colours_without_a_terminal() -> None:
    code = (
        "import sys; from spanrl.cli import main\n"
        "for line in sys.argv[1:]:\n"
        "    assert main(line.split()) == 0, line\n"
        "    found = [m for m in ('numba', 'scipy', 'gymnasium', 'matplotlib') if m in sys.modules]\n"
        "    assert not found, (line, found)\n"
        "    print('-- end', flush=True)\n"
    )
    argv = ["--help", "--version", "plan --help", "analyse --help", "list"]
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    shown = done.stdout.split("-- end\n")
    assert len(shown) == len(argv) + 1
    assert all(text.strip() for text in shown[:-1])


def test_output_that_cannot_be_encoded_is_no_traceback() -> None:
    """A terminal or file of another encoding gets a replacement, not a stack of frames."""
    done = spanrl("plan", "two-state", "--quiet", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "truncated states" in done.stdout
