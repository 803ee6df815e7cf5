"""plan --policy-out: the policy as a table, as JSON, as a picture; and what is refused before anything is solved."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars
import pytest

from spanrl import MDP, cli, make, solve

ROWS = [(0, "order 4", 1.0), (1, "order 3", 1.0), *((s, "order 0", 1.0) for s in range(2, 7))]


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanrl.kernels.cache.is_compiled", lambda task: True)


def test_tables_hold_the_policy(tmp_path: Path, capsys) -> None:
    csv, parquet, file = (tmp_path / f"policy.{kind}" for kind in ("csv", "parquet", "json"))
    for path in (csv, parquet, file):
        assert cli.main(["plan", "inventory", "--policy-out", str(path)]) == 0
        assert capsys.readouterr().out.endswith(f"The policy is in {path}.\n")
    assert polars.read_csv(csv).rows() == ROWS
    assert polars.read_parquet(parquet).rows() == ROWS
    assert [tuple(row.values()) for row in json.loads(file.read_text("utf-8"))["policy"]] == ROWS
    assert solve(make("inventory").mdp).policy.to_frame().rows() == ROWS


def test_json_keeps_tuples_and_mixtures(tmp_path: Path, capsys) -> None:
    mdp = make("two-state").mdp
    P, r, _ = mdp.to_dense()
    model, out = tmp_path / "m.npz", tmp_path / "policy.json"
    MDP.from_dense(P, r, state_names=[(0, "ä"), (1, ("b", 2))], action_names=[7, "x"]).save(model)
    assert cli.main(["plan", str(model), "--span-bound", "0.75", "--policy-out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gain"] == pytest.approx(0.75, abs=1e-6)
    rows = json.loads(out.read_text("utf-8"))["policy"]
    assert [(row["state"], row["action"]) for row in rows] == [([0, "ä"], 7), ([1, ["b", 2]], 7), ([1, ["b", 2]], "x")]
    assert [row["probability"] for row in rows] == pytest.approx([1.0, 1 / 7, 6 / 7], abs=1e-5)


def test_a_picture(tmp_path: Path, capsys) -> None:
    out = tmp_path / "policy.PNG"
    assert cli.main(["plan", "inventory", "--policy-out", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")


def model_of_three_coordinates(tmp_path: Path) -> str:
    names = [(i, j, k) for i in range(2) for j in range(2) for k in range(2)]
    MDP.from_dense(np.full((8, 1, 8), 0.125), np.zeros((8, 1)), state_names=names).save(tmp_path / "m.npz")
    return str(tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("policy.txt", "plan: --policy-out must end in .csv, .parquet, .json or .png; got "),
        ("there.csv", "exists, and nothing is overwritten unasked. Give --policy-out a new name."),
        ("no/policy.csv", "plan: --policy-out must be a file in a folder that exists; got "),
        ("policy.png", "plan: a .png shows two coordinates alone. Policy.plot: state names have 3 coordinates"),
    ],
)
def test_refused_before_the_work(name: str, words: str, tmp_path: Path, capsys, monkeypatch) -> None:
    model = model_of_three_coordinates(tmp_path)
    monkeypatch.setattr("spanrl.planning.small.solve_small", lambda *args, **options: pytest.fail("it was solved"))
    (tmp_path / "there.csv").write_text("mine")
    assert cli.main(["plan", model, "--policy-out", str(tmp_path / name)]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert (out, err.count("\n")) == ("", 1)
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_what_cannot_be_written_can_be_read(tmp_path: Path, capsys, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    out = tmp_path / "policy.json"
    assert cli.main(["plan", "two-state", "--policy-out", str(out)]) == 1
    shown, err = capsys.readouterr()
    assert "certified in" in shown
    assert "cannot be written (No space left on device). Give another --policy-out." in err
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_there_though_nobody_reads_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("spanrl.cli.models._show_plan", closed)
    out = tmp_path / "policy.csv"
    cli.main(["plan", "inventory", "--policy-out", str(out)])
    assert polars.read_csv(out).rows() == ROWS
