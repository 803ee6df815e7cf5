"""Gymnasium's environments by name: text form, canonical form, folders, and one sentence for what is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium
import pytest

from spanrl import learn, make, names
from spanrl.envs.gym_ids import read_gym_id
from spanrl.errors import MissingExtraError, ModelError, OptionError, SpanrlError, UnknownNameError
from spanrl.experiments.spec_entry import SpecEntry

PLUGIN = """
import gymnasium
from gymnasium import spaces

class Coin(gymnasium.Env):
    observation_space, action_space = spaces.Discrete(1), spaces.Discrete(2)

    def __init__(self, edge=1, name="any coin", **rest):
        self.edge, self.rest = edge, rest

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, float(action) * min(self.edge, 1.0), False, False, {}

gymnasium.register("toys/Coin-v3", Coin, max_episode_steps=10)
"""


@pytest.fixture
def coins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a module that registers an environment; return its name."""
    (tmp_path / "some_coins.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "some_coins", raising=False)
    yield "some_coins"
    gymnasium.registry.pop("toys/Coin-v3", None)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("gym:FrozenLake-v1", "gym:FrozenLake-v1"),
        (" gym:FrozenLake-v1[] ", "gym:FrozenLake-v1"),
        ("gym:FrozenLake-v1[is_slippery=true]", "gym:FrozenLake-v1"),
        ("gym:FrozenLake-v1[is_slippery=false]", "gym:FrozenLake-v1[is_slippery=false]"),
        ("gym:FrozenLake-v1[map_name=4x4,max_episode_steps=100]", "gym:FrozenLake-v1"),
        ("gym:FrozenLake8x8-v1[map_name=8x8]", "gym:FrozenLake8x8-v1"),
        (
            "gym:FrozenLake-v1[time_in_state=true,max_episode_steps=2e1,is_slippery=false]",
            "gym:FrozenLake-v1[is_slippery=false,max_episode_steps=20,time_in_state=true]",
        ),
        ("gym:spanrl/ThreeState-v0[delta=0.01]", "gym:spanrl/ThreeState-v0[delta=0.01]"),
    ],
)
def test_the_canonical_form(text: str, canonical: str) -> None:
    assert make(text).info.id == canonical
    assert make(canonical) == make(text)


def test_keywords_and_texts_agree() -> None:
    env = make("gym:FrozenLake-v1", is_slippery=False)
    assert env == make("gym:FrozenLake-v1[is_slippery=false]")
    assert env.mdp.prob.tolist() == [1.0] * 64
    assert env.info.parameters["is_slippery"] is False
    assert make("gym:FrozenLake-v1[max_episode_steps=-1]").step_limit is None


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("gym:FrozenLak-v1", UnknownNameError, "unknown Gymnasium environment 'FrozenLak-v1'. Did you mean 'FrozenLake-v1'?"),
        ("gym:Taxi-v3", UnknownNameError, "Did you mean 'Taxi-v4'?"),
        ("gym:zzzzzzzzzzzz", UnknownNameError, "gymnasium.pprint_registry() lists them."),
        ("gym:FrozenLake-v1[slippery=true]", UnknownNameError, "unknown parameter 'slippery'. Did you mean 'is_slippery'?"),
        ("gym:FrozenLake-v1[is_slippery=3]", OptionError, "gym:FrozenLake-v1: is_slippery must be true or false; got 3"),
        ("gym:FrozenLake-v1[map_name=9x9]", OptionError, "gym:FrozenLake-v1: cannot be made (KeyError: '9x9')"),
        ("gym:no_such_module:Env-v0", OptionError, "'no_such_module' cannot be imported (ModuleNotFoundError"),
        ("gym:", OptionError, "text form: must read name or name[key=value,...]; got 'gym:'"),
        ("gym:a/b/c", OptionError, "text form: must read name or name[key=value,...]"),
        ("gym:CartPole-v1", ModelError, "CartPoleEnv has no transition table P"),
    ],
)  # fmt: skip
def test_refused(text: str, kind: type[SpanrlError], words: str) -> None:
    with pytest.raises(kind) as caught:
        make(text)
    assert words in str(caught.value)


def test_a_space_that_is_not_discrete() -> None:
    with pytest.raises(OptionError, match="learn: gym:CartPole-v1 has the observation space Box"):
        learn("gym:CartPole-v1", "ucrl", horizon=10, seed=0)


def test_a_module_before_the_id(coins: str) -> None:
    text = f"gym:{coins}:toys/Coin-v3[edge=0.5,colour=red]"
    run = learn(text, "ucrl", horizon=20, seed=0)
    assert run.meta["env"] == text
    assert (run.meta["played"], run.meta["step_limit"]) == ("step by step", 10)
    read = read_gym_id(f"gym:{coins}:toys/Coin-v3[edge=2.0,b=1,a=true]", {})
    assert read.text == f"gym:{coins}:toys/Coin-v3[edge=2,a=true,b=1]", "others follow by name"
    assert read.values["name"] == "any coin"
    with pytest.raises(ModelError, match="Coin has no transition table P"):
        learn(f"gym:{coins}:toys/Coin-v3[time_in_state=true]", "ucrl", horizon=20, seed=0)


def test_without_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    import spanrl.envs

    monkeypatch.delattr(spanrl.envs, "gym", raising=False)
    monkeypatch.delitem(sys.modules, "spanrl.envs.gym", raising=False)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingExtraError, match=r"gymnasium is not installed\. Run: pip install gymnasium"):
        make("gym:FrozenLake-v1")


def test_nobody_registers_such_a_name() -> None:
    from spanrl import register_env

    with pytest.raises(OptionError, match=r"a name must be a word of \[A-Za-z0-9_.-\]; got 'gym:mine'"):
        register_env("gym:mine", lambda: make("two-state"), summary="Mine.")


def test_folders_tell_names_apart() -> None:
    ids = ["gym:a:b/C-v0", "gym:a/b-C-v0", "gym:a:b-C-v0", "gym:a.b:C-v0", "gym:ab/C-v0", "gym:b/C-v0"]
    folders = {SpecEntry(text, text).folder for text in ids}
    assert len(folders) == len(ids)
    for text in ids:
        assert names.parse(text) == (text, {})
        assert not set(SpecEntry(text, text).folder) & set('/:\\*?"<>|[]=,')
