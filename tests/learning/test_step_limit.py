"""Environments that cut their episodes: g* of the table does not know it, and the run says so wherever it shows a regret."""

from __future__ import annotations

import json

import gymnasium
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from spanrl import Run, learn
from spanrl.cli import main

LAKE = "FrozenLake-v1"


def run_in(env, **options) -> Run:
    return learn(env, "ucrl", horizon=60, seed=0, **options)


@pytest.fixture(scope="module")
def limited() -> Run:
    return run_in(gymnasium.make(LAKE, max_episode_steps=5))


class CutsItself(gymnasium.Wrapper):
    """Named like a harmless wrapper, has no limit to read, and cuts every third step."""

    steps = 0

    def step(self, action):
        self.steps += 1
        seen, reward, terminated, _, info = self.env.step(action)
        return seen, reward, terminated, self.steps % 3 == 0, info


CutsItself.__name__ = "OrderEnforcing"


def test_the_summary_says_so(limited):
    assert "; not exact: g* ignores the limit of 5 steps per episode" in str(limited)
    assert repr(limited).endswith("(not exact)>")


def test_the_figure_says_so(limited):
    labels = [text.get_text() for text in limited.plot().get_legend().get_texts()]
    assert labels == ["regret (not exact)", "pseudo-regret"]


def test_the_command_line_says_so(limited, capsys, monkeypatch):
    monkeypatch.setattr("spanrl.learning.learn.learn", lambda *_, **__: limited)
    assert main(["learn", "two-state", "ucrl"]) == 0
    assert "not exact: g* ignores the limit of 5 steps per episode" in " ".join(capsys.readouterr().out.split())


def test_meta_json_says_so(limited, tmp_path):
    limited.save(tmp_path / "run")
    told = json.loads((tmp_path / "run" / "meta.json").read_text())["run"]
    assert (told["step_limit"], told["regret_exact"]) == (5, False)
    assert Run.load(tmp_path / "run").regret_note == limited.regret_note


@pytest.mark.parametrize(
    ("env", "limit"),
    [
        (lambda: gymnasium.make(LAKE), 100),
        (lambda: TimeLimit(gymnasium.make(LAKE).unwrapped, 7), 7),
        (lambda: TimeLimit(RecordEpisodeStatistics(gymnasium.make(LAKE, max_episode_steps=4)), 9), 4),
        (lambda: gymnasium.make(LAKE).unwrapped, None),
        (lambda: gymnasium.make(LAKE, max_episode_steps=-1), None),
        (lambda: "two-state", None),
    ],
    ids=["by default", "wrapped by hand", "the tightest of two", "unwrapped", "switched off", "ours"],
)
def test_a_limit_is_found_wherever_it_stands(env, limit):
    run = run_in(env())
    assert run.meta.get("step_limit") == limit
    assert run.meta.get("regret_exact", True) is (limit is None)
    assert (run.regret_note is None) == (limit is None)


def test_an_environment_that_cuts_by_itself():
    run = run_in(CutsItself(gymnasium.make(LAKE).unwrapped))
    assert run.meta["step_limit"] is None
    assert run.regret_note == "not exact: g* ignores that episodes are cut"


def test_whoever_gives_a_gain_knows_what_it_is():
    run = run_in(gymnasium.make(LAKE, max_episode_steps=5), gain=0.0)
    assert run.meta["step_limit"] == 5
    assert "regret_exact" not in run.meta
    assert run.regret_note is None


def test_an_unknown_gain_needs_no_note():
    run = run_in(gymnasium.wrappers.TransformReward(gymnasium.make(LAKE), lambda reward: reward))
    assert "regret_exact" not in run.meta
    assert "unknown" in str(run)
    assert run.regret_note is None
