"""What is shown while an experiment runs."""

from __future__ import annotations

import os

import pytest
from rich.console import Console

from spanrl.experiments import progress
from spanrl.experiments.progress import Lines, LiveTable, Silent, Tally, _panel, display


class Clock:
    """A clock that the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(progress, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_speed_and_time_left(clock: Clock) -> None:
    tally = Tally("small", cells=10, finished=2, waiting=7, steps_left=9000)
    tally.running["a"] = (0, 1000)
    assert (tally.speed, tally.seconds_left) == (0.0, None)
    tally.steps = 500
    tally.tick()
    assert (tally.speed, tally.seconds_left) == (0.0, None)
    clock.now += 2.0
    tally.steps = 1500
    tally.tick()
    assert (tally.speed, tally.seconds_left) == (500.0, 18.0)
    assert str(tally) == (
        "2 of 10 cells finished, 1 running, 7 waiting, 0 failed, 500 steps/s, 0:00:18 left"
    )  # fmt: skip


def test_the_speed_is_that_of_late(clock: Clock) -> None:
    tally = Tally("small")
    for second in range(100):
        tally.steps += 1000 if second < 50 else 10
        tally.tick()
        clock.now += 1.0
    assert tally.speed == pytest.approx(10.0)


def test_lines_come_every_few_seconds_and_only_when_something_changed(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, tally = Lines(), Tally("small", cells=3)
    lines.update(tally)
    assert capsys.readouterr().err == ""
    clock.now += 5.0
    lines.update(tally)
    lines.update(tally)
    assert capsys.readouterr().err == "spanrl: 0 of 3 cells finished, 0 running, 0 waiting, 0 failed\n"
    clock.now += 5.0
    lines.update(tally)
    assert capsys.readouterr().err == ""
    tally.finished = 1
    lines.update(tally)
    tally.finished = 2
    clock.now += 4.0
    lines.update(tally)
    assert capsys.readouterr().err == "spanrl: 1 of 3 cells finished, 0 running, 0 waiting, 0 failed\n"
    lines.say("a word [x=1]")
    lines.close()
    assert capsys.readouterr().err == "spanrl: a word [x=1]\n"


def rendered(tally: Tally) -> str:
    console = Console(record=True, width=60, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.file:
        console.print(_panel(tally))
        return console.export_text()


def test_the_table_without_cells() -> None:
    text = rendered(Tally("small"))
    assert "small" in text
    assert "0 of 0 cells finished" in text
    assert "0%" in text


def test_the_table_with_many_cells() -> None:
    tally = Tally("small", cells=80, finished=20, failed=1)
    tally.running = {f"riverswim/ucrl/{seed:03d}": (500, 1000) for seed in range(40)}
    text = rendered(tally)
    assert "50%" in text, "20 whole and 40 half cells of 80"
    assert "riverswim/ucrl/011" in text
    assert "riverswim/ucrl/012" not in text
    assert "… and 28 more" in text
    assert all(len(line) <= 60 for line in text.splitlines())


def test_ids_with_brackets_are_shown_as_they_are() -> None:
    tally = Tally("small", cells=1)
    tally.running["a[b=1]/[red]x[/red]/000"] = (1, 10)
    assert "a[b=1]/[red]x[/red]/000" in rendered(tally)


def test_which_display_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(display(False), Silent)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    assert isinstance(display(True)._inner, Lines)  # type: ignore[attr-defined]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    shown = display(True)
    try:
        assert isinstance(shown._inner, LiveTable)  # type: ignore[attr-defined]
        shown.update(Tally("small"))
    finally:
        shown.close()
