"""list, analyse and plan: the right numbers for people and for programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spanrl
from spanrl import MDP, BoundedMDP, cli
from spanrl.names import format_value

ANALYSIS = {
    "n_states", "n_actions", "n_pairs", "max_support", "classification", "gain", "gains", "bias", "span", "diameter",
    "policy",
}  # fmt: skip
NAMES = {"state_names", "action_names"}
"""Where a model has them."""
SOLUTION = {
    "policy", "gain", "gain_bounds", "bias", "span", "sweeps", "residual", "converged", "feasible", "truncated",
    "method", "factor_size", "optimistic",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether kernels are compiled already is not what is tested here; wide, plain output is."""
    monkeypatch.setattr("spanrl.kernels.cache.is_compiled", lambda task: True)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*argv: str) -> str:
        """Run the command; it must succeed and say nothing on standard error."""
        code = cli.main(list(argv))
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return call


def row(text: str, label: str) -> str:
    """Return what stands behind ``label`` in a two-column table."""
    found = re.search(rf"^\s*{re.escape(label)}\s\s+(.*?)\s*$", text, re.MULTILINE)
    assert found, f"no row {label!r} in\n{text}"
    return found[1]


def only_json(text: str) -> dict[str, Any]:
    """Return the one JSON object on one line that ``text`` is."""
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    value = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert isinstance(value, dict)
    return value


def multichain() -> MDP:
    return MDP.from_dense(np.eye(2)[:, None, :], [[0.25], [1.0]], state_names=["[red]x[/red]", "<b>&amp;"])


# --- list -----------------------------------------------------------------------------------------------------------


def test_list(run: Any) -> None:
    out = run("list")
    for entry in spanrl.list_envs():
        assert entry.name in out
        for key, value in entry.defaults.items():
            assert f"{key}={format_value(value)}" in out
    for entry in spanrl.list_agents():
        assert entry.name in out
    assert run("list", "envs") + run("list", "agents") + run("list", "experiments") == out


def test_list_json(run: Any) -> None:
    found = only_json(run("list", "--json"))
    assert found.keys() == {"envs", "agents", "experiments"}
    assert [entry["name"] for entry in found["envs"]] == [entry.name for entry in spanrl.list_envs()]
    three = next(entry for entry in found["envs"] if entry["name"] == "three-state")
    assert three.keys() == {"name", "summary", "source", "parameters"}
    assert three["parameters"] == {"delta": 0.005}


# --- analyse --------------------------------------------------------------------------------------------------------


def test_analyse(run: Any) -> None:
    out = run("analyse", "three-state[delta=0.005]")
    assert row(out, "states") == "3"
    assert row(out, "class") == "communicating"
    assert float(row(out, "optimal gain g*")) == pytest.approx(2 / 3, abs=1e-8)
    assert float(row(out, "span of the optimal bias sp(h*)")) == pytest.approx(1.005025, abs=1e-6)
    assert float(row(out, "diameter D")) == pytest.approx(200)


def test_analyse_shows_names_and_actions(run: Any) -> None:
    out = run("analyse", "two-state")
    assert re.search(r"s0\s+a0\s+-1\b", out)
    assert re.search(r"s1\s+a1\s+0\b", out)


def test_analyse_json(run: Any) -> None:
    found = only_json(run("analyse", "two-state", "--json"))
    assert found.keys() == ANALYSIS | NAMES
    assert (found["n_states"], found["n_actions"], found["n_pairs"], found["max_support"]) == (2, 2, 4, 1)
    assert found["classification"] == "communicating"
    assert found["gain"] == pytest.approx(1)
    assert found["gains"] == pytest.approx([1, 1])
    assert found["bias"][1] - found["bias"][0] == pytest.approx(1)
    assert found["span"] == pytest.approx(1)
    assert found["diameter"] == pytest.approx(1)
    assert found["policy"] == [[1.0, 0.0], [0.0, 1.0]]


def test_analyse_knight_quest(run: Any) -> None:
    found = only_json(run("analyse", "knight-quest", "--json"))
    assert (found["n_states"], found["n_actions"]) == (360, 8)
    assert found["gain"] == pytest.approx(0.50, abs=0.005)
    assert found["span"] == pytest.approx(3.28, abs=0.01)
    assert found["diameter"] == pytest.approx(250, abs=5)
    assert len(found["policy"]) == 360


def test_infinity_is_a_word_in_json(run: Any) -> None:
    assert only_json(run("analyse", "counterexample-fixed-point", "--json"))["diameter"] == "inf"
    assert row(run("analyse", "counterexample-fixed-point"), "diameter D") == "∞"


def test_analyse_without_diameter(run: Any) -> None:
    assert only_json(run("analyse", "two-state", "--diameter", "no", "--json"))["diameter"] is None
    assert "not computed" in row(run("analyse", "two-state", "--diameter", "no"), "diameter D")
    assert row(run("analyse", "two-state", "--diameter", "yes"), "diameter D") == "1"


def test_analyse_a_saved_multichain_model(run: Any, tmp_path: Path) -> None:
    multichain().save(tmp_path / "m.npz")
    out = run("analyse", str(tmp_path / "m.npz"))
    assert row(out, "class") == "multichain"
    assert row(out, "optimal gain g*") == "differs between states"
    assert row(out, "diameter D") == "∞"
    found = only_json(run("analyse", str(tmp_path / "m.npz"), "--json"))
    assert (found["gain"], found["span"], found["gains"]) == (None, None, [0.25, 1.0])


# --- plan -----------------------------------------------------------------------------------------------------------


def test_plan(run: Any) -> None:
    out = run("plan", "two-state", "--span-bound", "0.75")
    assert row(out, "span bound c") == "0.75"
    assert float(row(out, "gain g⁺")) == pytest.approx(0.75, abs=1e-6)
    assert float(row(out, "span of the bias")) == pytest.approx(0.75, abs=1e-6)
    assert row(out, "truncated states") == "1 of 2"
    assert row(out, "feasible") == "yes"
    assert row(out, "policy") == "randomised"
    assert "a0 (0.1429), a1 (0.8571)" in out
    low, high = map(float, re.findall(r"[\d.]+", row(out, "certified in")))
    assert low - 1e-9 <= 0.75 <= high + 1e-9


def test_plan_without_a_bound(run: Any) -> None:
    out = run("plan", "two-state")
    assert row(out, "span bound c") == "∞"
    assert float(row(out, "gain g⁺")) == pytest.approx(1)
    assert row(out, "policy") == "deterministic"


def test_plan_says_when_it_is_not_feasible(run: Any) -> None:
    out = run("plan", "counterexample-fixed-point", "--span-bound", "0.7")
    assert row(out, "feasible").startswith("no: the gain is an upper bound")
    assert only_json(run("plan", "counterexample-fixed-point", "--span-bound", "0.7", "--json"))["feasible"] is False


def test_plan_json(run: Any) -> None:
    found = only_json(run("plan", "two-state", "--span-bound", "0.75", "--json"))
    assert found.keys() == SOLUTION | NAMES
    assert found["gain"] == pytest.approx(0.75, abs=1e-6)
    low, high = found["gain_bounds"]
    assert low - 1e-12 <= 0.75 <= high + 1e-12
    assert found["residual"] == pytest.approx(high - low)
    assert high - low <= 1e-6
    assert found["bias"] == pytest.approx([0, 0.75], abs=1e-6)
    assert found["span"] == pytest.approx(0.75, abs=1e-6)
    assert found["policy"] == [[1.0, 0.0], pytest.approx([1 / 7, 6 / 7], abs=1e-5)]
    assert (found["converged"], found["feasible"], found["truncated"]) == (True, True, [False, True])
    assert isinstance(found["sweeps"], int)
    extended = found["optimistic"]
    P = np.zeros((2, 2))
    for s, target, p in extended["transitions"]:
        P[s, target] = p
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_allclose(np.array(extended["reward"]) + P @ [0, 0.75], np.array([0, 0.75]) + 0.75, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        ("--method", "value-iteration"),
        ("--method", "modified-policy-iteration"),
        ("--method", "policy-iteration"),
        ("--tol", "1e-9", "--max-sweeps", "1e7"),
        ("--max-sweeps", "1000.0"),
        ("--span-bound", "inf"),
        ("--span-bound", "1e7"),
        ("--policy", "greedy"),
        ("--sense", "pessimistic"),
    ],
)
def test_plan_options_and_numbers(run: Any, options: tuple[str, ...]) -> None:
    assert only_json(run("plan", "two-state", "--json", *options))["gain"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("model", ["riverswim[n_states=20]", "riverswim[n_states=500]"])
def test_plan_keeps_within_the_memory(run: Any, model: str) -> None:
    assert only_json(run("plan", model, "--json"))["factor_size"] > 0
    assert only_json(run("plan", model, "--json", "--memory", "0"))["factor_size"] == 0


def test_a_span_bound_of_zero_is_allowed(run: Any) -> None:
    assert only_json(run("plan", "two-state", "--span-bound", "0", "--json"))["gain"] == pytest.approx(0.5, abs=1e-6)


def test_plan_a_saved_model(run: Any, tmp_path: Path) -> None:
    spanrl.make("two-state").mdp.save(tmp_path / "m.npz")
    saved = run("plan", str(tmp_path / "m.npz"), "--span-bound", "0.75", "--json")
    assert saved == run("plan", "two-state", "--span-bound", "0.75", "--json")


def test_plan_a_saved_model_in_this_folder(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spanrl.make("two-state").mdp.save(tmp_path / "m.npz")
    monkeypatch.chdir(tmp_path)
    assert "m.npz" in run("plan", "m.npz")
    (tmp_path / "m.npz").rename("model")
    assert "gain" in run("plan", "./model")


@pytest.mark.parametrize(("sense", "gain"), [("optimistic", 0.9), ("pessimistic", 0.4)])
def test_plan_a_saved_bounded_model(run: Any, tmp_path: Path, sense: str, gain: float) -> None:
    """One state of reward in [0.4, 0.9] and one that is left at once: the gain is the end of the interval."""
    P = [[[1.0, 0.0]], [[1.0, 0.0]]]
    for name, bounded in {
        "box": BoundedMDP.from_dense(P, P, [[0.4], [0.0]], [[0.9], [0.0]]),
        "ball": BoundedMDP.l1_ball(P, 0.0, [[0.4], [0.0]], [[0.9], [0.0]]),
    }.items():
        path = str(tmp_path / f"{name}.npz")
        bounded.save(path)
        found = only_json(run("plan", path, "--sense", sense, "--json"))
        assert found.keys() == SOLUTION
        assert found["gain"] == pytest.approx(gain, abs=1e-6)
        assert float(row(run("plan", path, "--sense", sense), "gain g⁺")) == pytest.approx(gain, abs=1e-6)


def test_many_states_are_cut(run: Any) -> None:
    out = run("plan", "riverswim[n_states=50]")
    assert "… 10 more states; --json shows all." in out
    assert len(only_json(run("plan", "riverswim[n_states=50]", "--json"))["bias"]) == 50


# --- names are data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["[red]x[/red]", "[/]", "<b>&amp;</b>", "[link=http://x]y[/link]", ":smile:", "a\\[b]", "x" * 60]
)
@pytest.mark.parametrize("command", ["analyse", "plan"])
def test_names_are_printed_literally(run: Any, tmp_path: Path, command: str, name: str) -> None:
    path = str(tmp_path / "m.npz")
    MDP.from_dense([[[1.0]]], [[0.5]], state_names=[name], action_names=[name + "!"]).save(path)
    out = run(command, path)
    assert name in out
    assert name + "!" in out


def test_costs(run: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "m.npz")
    P = [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    MDP.from_dense(P, [[4.0, 3.0], [1.0, 9.0]], costs=True).save(path)
    assert float(row(run("plan", path), "average cost g⁺")) == pytest.approx(2.5)
    assert float(row(run("analyse", path), "lowest average cost g*")) == pytest.approx(2.5)
    for command, keys in (("plan", SOLUTION), ("analyse", ANALYSIS)):
        found = only_json(run(command, path, "--json"))
        assert found.keys() == keys | {"costs"}
        assert (found["costs"], found["gain"]) == (True, pytest.approx(2.5))
    assert float(row(run("plan", "two-state", "--costs"), "average cost g⁺")) == pytest.approx(-1.0)
    assert only_json(run("analyse", "two-state", "--costs", "--json"))["gain"] == pytest.approx(-1.0)
    bounded = str(tmp_path / "b.npz")
    BoundedMDP.from_dense(P, P, [[4.0, 3.0], [1.0, 9.0]], [[4.5, 3.5], [1.5, 9.5]], costs=True).save(bounded)
    assert only_json(run("plan", bounded, "--json"))["gain"] == pytest.approx(2.5)
    assert only_json(run("plan", bounded, "--sense", "pessimistic", "--json"))["gain"] == pytest.approx(3.0)


@pytest.mark.parametrize("command", ["analyse", "plan"])
def test_tuples_are_names(run: Any, tmp_path: Path, command: str) -> None:
    path = str(tmp_path / "m.npz")
    P = [[[0.0, 1.0]], [[1.0, 0.0]]]
    MDP.from_dense(P, [[0.5], [1.0]], state_names=[(0, 1), (3, ("x", 2))], action_names=[7]).save(path)
    assert re.search(r"\(3, \(x, 2\)\)\s+7\s", run(command, path))
    found = only_json(run(command, path, "--json"))
    assert found["state_names"] == [[0, 1], [3, ["x", 2]]]
    assert found["action_names"] == [7]


def test_the_model_is_printed_literally(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    MDP.from_dense([[[1.0]]], [[0.5]]).save("[red]m.npz")
    assert "[red]m.npz" in run("plan", "[red]m.npz")


# --- the options of all commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv", [("--quiet", "plan", "two-state"), ("plan", "--quiet", "two-state"), ("plan", "two-state", "--quiet")]
)
def test_quiet_stands_anywhere(run: Any, argv: tuple[str, ...]) -> None:
    assert "gain g⁺" in run(*argv)


def test_debug_changes_nothing_where_nothing_fails(run: Any) -> None:
    assert run("plan", "two-state", "--debug") == run("plan", "two-state")


def test_version(run: Any) -> None:
    assert run("--version") == f"spanrl {spanrl.__version__}\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--help",), ("list", "analyse", "plan", "--version", "--quiet", "--debug", "Exit codes")),
        (("list", "--help"), ("--json",)),
        (("analyse", "--help"), ("MODEL", "--diameter", "--json")),
        (
            ("plan", "--help"),
            ("MODEL", "--span-bound", "--tol", "--sense", "--method", "--policy", "--max-sweeps", "--json"),
        ),
        ((), ("Usage", "plan")),
    ],
)
def test_help(run: Any, argv: tuple[str, ...], words: tuple[str, ...]) -> None:
    out = run(*argv)
    assert "Usage: spanrl" in out
    for word in words:
        assert word in out


# --- the first run compiles -----------------------------------------------------------------------------------------


def test_the_first_run_announces_that_it_compiles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanrl.kernels.cache.is_compiled", lambda task: False)
    assert cli.main(["plan", "knight-quest", "--json"]) == 0
    out, err = capsys.readouterr()
    only_json(out)
    assert err.count("\n") == 1
    assert "compiling for first use" in err
    assert cli.main(["plan", "knight-quest", "--json", "--quiet"]) == 0
    assert capsys.readouterr() == (out, "")


def test_a_large_model_is_announced(capsys):
    from spanrl.cli import main

    assert main(["plan", "riverswim[n_states=12000]", "--max-sweeps", "1"]) == 1
    assert "riverswim[n_states=12000] has 12,000 states; this may take minutes" in capsys.readouterr().err
    assert main(["--quiet", "plan", "riverswim[n_states=12000]", "--max-sweeps", "1"]) == 1
    assert "minutes" not in capsys.readouterr().err
