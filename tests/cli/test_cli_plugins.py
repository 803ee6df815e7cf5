"""``--plugin`` of learn, plan, analyse and list, Gymnasium's names and ``--scale``: what they print and refuse."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spanrl import cli
from spanrl.agents import registry as agent_registry
from spanrl.envs import registry as env_registry

Call = Callable[..., tuple[int, str, str]]
PLUGIN = """
import spanrl
from spanrl import UCRL

spanrl.register_env("my-two-states", lambda: spanrl.make("two-state"), summary="Two of mine.")
spanrl.register_agent("my-ucrl", UCRL, summary="UCRL under another name.")
"""


@pytest.fixture(autouse=True)
def _restore(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget plugins after each test."""
    monkeypatch.setattr("spanrl.kernels.cache.is_compiled", lambda task: True)
    monkeypatch.setattr(env_registry, "_ENTRIES", dict(env_registry._ENTRIES))
    monkeypatch.setattr(agent_registry, "_ENTRIES", dict(agent_registry._ENTRIES))
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("cli_plugin", None)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cli_plugin.py"
    path.write_text(PLUGIN)
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*argv: str) -> tuple[int, str, str]:
        code = cli.main(list(argv))
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("given", ["{path}", "cli_plugin.py", "cli_plugin"], ids=["a path", "a file", "a module"])
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("list", "envs"), "Two of mine."),
        (("list", "agents"), "UCRL under another name."),
        (("analyse", "my-two-states"), "communicating"),
        (("plan", "my-two-states"), "deterministic"),
        (("learn", "my-two-states", "my-ucrl", "--horizon", "100"), "ucrl on my-two-states"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_plugin(plugin: Path, call: Call, given: str, command: tuple[str, ...], words: str) -> None:
    code, out, err = call(*command, "--plugin", given.format(path=plugin))
    assert (code, err) == (0, "")
    assert words in out


@pytest.mark.parametrize(
    "command", [("list",), ("analyse", "x"), ("plan", "x"), ("learn", "x", "y")], ids=lambda c: c[0]
)
def test_refused(plugin: Path, call: Call, command: tuple[str, ...]) -> None:
    plugin.with_name("breaks.py").write_text("raise RuntimeError('no\nsuch luck')".replace("\n", "\\n"))
    plugin.with_name("json.py").write_text("")
    who = command[0]
    for given, words in {
        "nowhere.py": f"{who}: --plugin must be a Python file or the name of a module; there is no file 'nowhere.py'.",
        "9 lives": f"{who}: --plugin must be a Python file or the name of a module, such as my_agents.py; got '9 lives'.",
        "nowhere": "plugins: 'nowhere' cannot be imported (ModuleNotFoundError: No module named 'nowhere').",
        "breaks": "plugins: 'breaks' cannot be imported (RuntimeError: no such luck).",
        "./json.py": f"{who}: the module 'json' of --plugin ./json.py is already that of {json.__file__}. Rename the file.",
    }.items():
        code, out, err = call(*command, "--plugin", given)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert words in err


def test_gymnasiums_names(call: Call) -> None:
    code, out, err = call("learn", "gym:FrozenLake-v1[is_slippery=true]", "ucrl", "--horizon", "200")
    words = " ".join(out.split())
    assert (code, err) == (0, "")
    assert "ucrl on gym:FrozenLake-v1 " in words
    assert "played from its table" in words
    assert "not exact: g* ignores the limit of 100 steps per episode" in words
    code, out, _ = call("analyse", "gym:FrozenLake-v1[is_slippery=false]", "--json")
    assert json.loads(out)["gain"] == pytest.approx(1 / 6)
    code, out, _ = call("plan", "gym:spanrl/TwoState-v0", "--span-bound", "0.75", "--json")
    assert json.loads(out)["gain"] == pytest.approx(0.75, abs=1e-5)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("analyse", "gym:FrozenLak-v1"), "Did you mean 'FrozenLake-v1'?"),
        (("plan", "gym:CartPole-v1"), "CartPoleEnv has no transition table P"),
        (("learn", "gym:CartPole-v1", "ucrl"), "only Discrete spaces are supported"),
        (("learn", "two-state", "ucrl", "--scale", "cubic"), "learn: --scale must be linear or log; got 'cubic'."),
        (("report", "nowhere", "--scale", "cubic"), "report: --scale must be linear or log; got 'cubic'."),
    ],
)
def test_wrong_input(call: Call, command: tuple[str, ...], words: str) -> None:
    code, out, err = call(*command)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_the_scale_of_a_figure(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("spanrl.report.figures.set_scales", lambda ax, x, y: seen.append((x, y)))
    code, _, err = call(
        "learn", "two-state", "ucrl", "--horizon", "100", "--plot", str(tmp_path / "x.png"), "--scale", "log"
    )
    assert (code, err) == (0, "")
    assert seen == [("log", "log")]
