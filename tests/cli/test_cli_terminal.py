"""What reaches the terminal: nothing that acts there, nothing cut on a narrow one; help, completion and paths as people type them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spanrl import MDP, analyse, cli, evaluate, learn, load_results, make, run_experiment, solve
from spanrl.agents.registry import list_agents
from spanrl.envs.registry import list_envs
from spanrl.errors import CellsFailedError
from spanrl.experiments.progress import Lines, Tally, _panel
from spanrl.experiments.spec import read_spec
from spanrl.experiments.store import Store
from spanrl.terminal import visible

HOSTILE = "a\x1b[2J\x1b]0;title\x07b\b\u202ec\x9b31m"
SHOWN = r"a\x1b[2J\x1b]0;title\x07b\x08\u202ec\x9b31m"
SPEC = """
name = "wide"
horizon = 1e9
seeds = 3
[[env]]
id = "riverswim"
n_states = [20, 40]
variant = "osband"
[[agent]]
id = "scal"
span_bound = [2, 5]
p_scale = 0.0625
r_scale = 0.03125
"""


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*argv: str | Path, columns: int = 300, code: int = 0) -> str:
        """Run the command; return what it printed on the stream that its exit code promises."""
        monkeypatch.setenv("COLUMNS", str(columns))
        found = cli.main([str(word) for word in argv])
        out, err = capsys.readouterr()
        assert found == code, err
        return err if code else out

    return run


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return an experiment of which one cell has failed, with an error that would clear the screen."""
    (tmp_path / "spec.toml").write_text(SPEC)
    spec, store = read_spec(tmp_path / "spec.toml"), Store(tmp_path / "out")
    store.open(spec)
    store.write(f"failed/{spec.cells()[0].folder}.txt", f"{HOSTILE}\n\nTraceback\n".encode())
    store.close()
    return store


def squeezed(text: str) -> str:
    return "".join(text.split())


# --- narrow terminals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [120, 80, 40])
def test_status_loses_nothing_on_a_narrow_terminal(call: Any, store: Store, columns: int) -> None:
    out = call("status", store.dir, columns=columns)
    assert max(len(line) for line in out.splitlines()) <= columns
    spec = read_spec(store.dir / "spec.toml")
    for env in spec.envs:
        for agent in spec.agents:
            failed = (env.id, agent.id) == (spec.cells()[0].env.id, spec.cells()[0].agent.id)
            counts = ["waiting:2", "failed:1"] if failed else ["waiting:3"]
            found = squeezed(out).partition(f"{env.id}/{agent.id}")[2]
            if columns == 120:
                counts = ["21"] if failed else ["3"]
            assert found.startswith("".join(counts)), (env.id, agent.id, out)


@pytest.mark.parametrize("columns", [80, 40])
def test_list_cuts_no_word(call: Any, columns: int) -> None:
    out = call("list", columns=columns)
    assert max(len(line) for line in out.splitlines()) <= columns
    words = set(out.replace(",", " ").split())
    for entry in (*list_envs(), *list_agents()):
        assert entry.name in words
        assert set(entry.parameters) <= {word.partition("=")[0] for word in words}
        assert set(entry.summary.replace(",", " ").split()) <= words


# --- nothing acts on the terminal -----------------------------------------------------------------------------------


def assert_harmless(text: str) -> None:
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)
    assert SHOWN in squeezed(text)


@pytest.mark.parametrize("command", ["analyse", "plan"])
def test_names_of_a_model(call: Any, tmp_path: Path, command: str) -> None:
    path = tmp_path / "m.npz"
    MDP.from_dense([[[1.0]]], [[0.5]], state_names=[HOSTILE], action_names=[HOSTILE]).save(path)
    assert_harmless(call(command, path))


def test_names_in_the_summaries_of_results() -> None:
    mdp = MDP.from_dense([[[1.0]]], [[0.5]], state_names=[HOSTILE], action_names=[HOSTILE])
    run = learn(mdp, "ucrl", horizon=10, seed=0)
    hostile = replace(run, meta=run.meta | {"env": HOSTILE})
    for text in (str(mdp), str(solve(mdp)), str(solve(mdp).policy), str(hostile), repr(hostile)):
        assert_harmless(text)


def test_errors_of_plugins(call: Any, store: Store) -> None:
    assert_harmless(call("status", store.dir))


def test_errors_of_plugins_that_python_raises(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = SimpleNamespace(interrupted=False, cells=12, failed={"a cell": HOSTILE})
    monkeypatch.setattr("spanrl.experiments.run.drive", lambda *_, **__: done)
    with pytest.raises(CellsFailedError) as caught:
        run_experiment(tmp_path / "spec.toml", out=store.dir)
    assert_harmless(str(caught.value))


def test_usage_and_errors(call: Any, tmp_path: Path) -> None:
    assert SHOWN in call("plan", "two-state", f"--{HOSTILE}", code=2).replace(" ", "")
    assert_harmless(call("status", tmp_path / HOSTILE, code=2))


def test_lines_and_tables_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    Lines().say(f"one\n{HOSTILE}")
    err = capsys.readouterr().err
    assert_harmless(err)
    assert err.startswith("spanrl: one\n")
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as drawn:
        console.print(_panel(Tally(HOSTILE, note=HOSTILE, running={HOSTILE: (1, 2)})))
    assert_harmless(drawn.get())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ∞ Ünïcødé 城 \u00a0", "plain ∞ Ünïcødé 城 \u00a0"),
        ("क्\u200dष 👩\u200d💻", "क्\u200dष 👩\u200d💻"),
        ("\r\x00\x7f\x85\ud800", r"\r\x00\x7f\x85\ud800"),
        ("\u2028\u2066\ufeff\t", r"\u2028\u2066\ufeff\t"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_files_keep_the_names_as_they_are(tmp_path: Path) -> None:
    MDP.from_dense([[[1.0]]], [[0.5]], state_names=[HOSTILE]).save(tmp_path / "m.npz")
    assert MDP.load(tmp_path / "m.npz").state_names == (HOSTILE,)


# --- summaries ------------------------------------------------------------------------------------------------------


def test_an_analysis_is_a_few_lines_however_many_states() -> None:
    mdp = make("riverswim[n_states=400]").mdp
    result = analyse(mdp, diameter=False)
    assert str(result).count("\n") == 4
    for words in ("400 states", "communicating", "diameter: not computed", f"{result.gain:.9g}", "(P*h = 0)"):
        assert words in str(result)
    assert "\n" not in repr(result)
    assert len(repr(evaluate(mdp, result.policy))) < 100


def test_both_commands_say_which_bias_they_show(call: Any) -> None:
    assert "The bias is the one with P*h = 0" in call("analyse", "three-state")
    assert "The bias is 0 in the first state" in call("plan", "three-state")


# --- help and completion --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "where"),
    [
        (("plan",), "spanrl plan"),
        (("plan", "two-state", "--frob"), "spanrl plan"),
        (("run", "small"), "spanrl run"),
        (("frobnicate",), "spanrl"),
        (("plan", "two-state", "--span-bound", "wide"), "spanrl plan"),
        (("learn", "two-state", "ucrl", "--horizon", "long"), "spanrl learn"),
        (("--quiet", "analyse", "two-state", "--diameter", "perhaps"), "spanrl analyse"),
    ],
)
def test_an_error_about_the_command_points_to_its_help(call: Any, argv: tuple[str, ...], where: str) -> None:
    assert call(*argv, code=2).endswith(f". Try '{where} -h'.\n")


def test_a_suggestion_is_one_sentence(call: Any) -> None:
    assert call("pln", code=2).endswith("? Try 'spanrl -h'.\n")


@pytest.mark.parametrize("command", [(), ("plan",), ("reproduce",)])
def test_help_has_a_short_form(call: Any, command: tuple[str, ...]) -> None:
    assert call(*command, "-h") == call(*command, "--help")


@pytest.mark.parametrize(("typed", "found"), [("spanrl le", "learn\n"), ("spanrl plan --span", "--span-bound\n")])
def test_shells_complete_commands_and_options(
    call: Any, monkeypatch: pytest.MonkeyPatch, typed: str, found: str
) -> None:
    monkeypatch.setenv("_SPANRL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    assert call() == found


def test_the_completion_of_a_shell_can_be_shown(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda *_: ("bash", "/bin/bash"))  # tests may run without any
    assert "_SPANRL_COMPLETE=complete_bash" in call("--show-completion", "bash")


# --- paths ----------------------------------------------------------------------------------------------------------


def test_a_roundabout_folder_of_an_experiment(
    call: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = SimpleNamespace(interrupted=False, finished=0, cells=12, failed={}, waiting=0)
    monkeypatch.setattr("spanrl.experiments.run.drive", lambda *_, **__: done)
    roundabout = os.path.join(tmp_path, "none", "..", "out")
    assert f"0 of 12 cells finished in {store.dir}. " in call("run", tmp_path / "spec.toml", "--out", roundabout)
    assert load_results(roundabout).dir == store.dir


def test_a_roundabout_folder_of_a_run(call: Any, tmp_path: Path) -> None:
    out = call("learn", "two-state", "ucrl", "--horizon", "10", "--out", os.path.join(tmp_path, "none", "..", "run"))
    assert str(tmp_path / "run") in out
    assert (tmp_path / "run" / "meta.json").is_file()
    assert not (tmp_path / "none").exists()
