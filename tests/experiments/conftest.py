"""Fixtures of the tests of experiments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spanrl import cli
from spanrl.agents import registry as agents
from spanrl.envs import registry as envs


@pytest.fixture
def clean_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers, imports and puts on the path."""
    monkeypatch.setattr(agents, "_ENTRIES", dict(agents._ENTRIES))
    monkeypatch.setattr(envs, "_ENTRIES", dict(envs._ENTRIES))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the command in this process: its exit code, standard output and standard error."""

    def call(*argv: object) -> tuple[int, str, str]:
        code = cli.main([str(word) for word in argv])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a spec file."""

    def to_file(text: str) -> Path:
        path = tmp_path / "spec.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Return a function that writes a module beside the spec file and returns its name."""
    written = []

    def to_file(text: str) -> str:
        name = f"plugin_of_a_test_{len(written)}"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        written.append(name)
        return name

    yield to_file
    for name in written:
        sys.modules.pop(name, None)
