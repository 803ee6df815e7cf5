"""spanrl bench: what it measures, at tiny sizes, and how the command shows it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spanrl import bench, cli

FOUND = [
    bench.Measurement("pure simulation", 6.25, 6.125, "ns per step"),
    bench.Measurement("SCAL", 5.5, 5.25, "million steps/s"),
]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(**options: object) -> list[bench.Measurement]:
        options["tell"]("everything")  # type: ignore[operator]
        return FOUND

    monkeypatch.setattr(bench, "measure", measure)


def test_tiny() -> None:
    told: list[str] = []
    found = bench.measure(scale=1e-4, repeats=3, tell=told.append)
    assert len(told) == 3
    assert len({one.name for one in found}) == len(found) == 6
    assert all(0 < one.least <= one.value for one in found)


def test_turns() -> None:
    """The first round is not counted; a number that comes back is the time."""
    seen: list[str] = []
    numbers = iter([99.0, 3.0, 1.0, 2.0])

    def first() -> float:
        seen.append("first")
        return next(numbers)

    times = bench.interleaved({"first": first, "second": lambda: seen.append("second")}, repeats=3)
    assert seen == ["first", "second"] * 4
    assert times["first"].seconds == (3.0, 1.0, 2.0)
    assert (times["first"].median, times["first"].least) == (2.0, 1.0)
    assert len(times["second"].seconds) == 3


def test_garnet() -> None:
    mdp = bench.garnet(50, 3, 4, stay=0.9)
    assert (mdp.n_states, mdp.n_pairs, mdp.max_support) == (50, 150, 5)
    P, _, _ = mdp.to_dense()
    own = P[np.arange(50), :, np.arange(50)]
    assert (own >= 0.9).all()
    assert (own < 1).any()


def test_machine() -> None:
    here = bench.machine()
    assert here["processor"]
    assert here["cores"] >= 1
    assert set(here) == {"processor", "cores", "memory", "load", "python", "spanrl", "numpy", "numba", "scipy"}


@pytest.mark.usefixtures("measured")
def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench"]) == 0
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines() if "pure" in line] == [
        ["pure", "simulation", "6.25", "6.12", "ns", "per", "step"]
    ]
    assert bench.machine()["processor"] in " ".join(out.split())
    assert "measuring everything" in err


@pytest.mark.usefixtures("measured")
def test_json_and_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    shown = json.loads(out)
    assert err == ""
    assert shown["machine"]["cores"] == bench.machine()["cores"]
    assert shown["measurements"][1] == {"name": "SCAL", "value": 5.5, "least": 5.25, "unit": "million steps/s"}
