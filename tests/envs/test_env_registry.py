"""Environments by name: text form, types, errors, one's own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from spanrl import Env, list_envs, make, register_env
from spanrl.envs import registry
from spanrl.envs.two_state import two_state
from spanrl.errors import OptionError, UnknownNameError

NAMES = [
    "2-rooms",
    "4-rooms",
    "counterexample-cycle",
    "counterexample-fixed-point",
    "counterexample-nonfeasible",
    "deep-sea",
    "ergodic-riverswim",
    "focus-pair",
    "frozen-lake",
    "garnet",
    "garnet-chain",
    "inventory",
    "jaksch-lower-bound",
    "knight-quest",
    "machine-replacement",
    "nasty-7",
    "queue-admission",
    "riverswim",
    "six-arms",
    "taxi",
    "three-state",
    "two-queues",
    "two-state",
]


@pytest.fixture(autouse=True)
def _restore(monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))


class TestMake:
    def test_text_and_keywords_agree(self):
        assert make("three-state[delta=0.01]") == make("three-state", delta=0.01)
        assert make("riverswim[variant=osband]", n_states=8) == make("riverswim", n_states=8, variant="osband")

    @pytest.mark.parametrize(
        "text, canonical",
        [
            ("three-state", "three-state"),
            ("three-state[]", "three-state"),
            ("three-state[delta=0.0050]", "three-state"),
            ("three-state[delta=1e-2]", "three-state[delta=0.01]"),
            ("three-state[delta=0]", "three-state[delta=0]"),
            ("three-state[delta=-0.0]", "three-state[delta=0]"),
            (" riverswim[n_states=1e1, variant=ucrl3] ", "riverswim[variant=ucrl3,n_states=10]"),
            ("knight-quest[rewards=outcome]", "knight-quest"),
            ("counterexample-cycle[duplicate=false]", "counterexample-cycle"),
            ("counterexample-cycle[duplicate=true, delta=0.1]", "counterexample-cycle[delta=0.1,duplicate=true]"),
        ],
    )
    def test_canonical_id(self, text, canonical):
        env = make(text)
        assert env.info.id == canonical
        assert make(canonical) == env
        assert make(canonical).info == env.info

    def test_numpy_scalars_are_numbers(self):
        env = make("riverswim", n_states=np.int64(7))
        assert env.info.id == "riverswim[n_states=7]"
        assert type(env.info.parameters["n_states"]) is int
        assert make("three-state", delta=np.float64(0.1)).info.id == "three-state[delta=0.1]"
        assert make("counterexample-cycle", duplicate=np.True_).info.id == "counterexample-cycle[duplicate=true]"

    @pytest.mark.parametrize(
        "text, words",
        [
            ("tree-state", r"make: unknown environment 'tree-state'\. Did you mean 'three-state'\?"),
            ("xyzzy", r"make: unknown environment 'xyzzy'\. Known: 2-rooms, .*two-state\."),
            ("three-state[delt=0.1]", r"three-state: unknown parameter 'delt'\. Did you mean 'delta'\?"),
            ("two-state[delta=0.1]", r"two-state: unknown parameter 'delta'\. Known: none\."),
        ],
    )
    def test_unknown_names(self, text, words):
        with pytest.raises(UnknownNameError, match=words):
            make(text)

    @pytest.mark.parametrize(
        "text, words",
        [
            ("three-state[delta=small]", r"three-state: delta must be a number; got 'small'\. Give delta as float\."),
            ("three-state[delta=true]", "delta must be a number; got True"),
            ("riverswim[n_states=6.5]", r"riverswim: n_states must be a whole number; got 6\.5"),
            ("riverswim[n_states=inf]", "n_states must be a whole number; got inf"),
            ("riverswim[n_states=true]", "n_states must be a whole number; got True"),
            ("riverswim[variant=3]", "variant must be a word of .*; got 3"),
            ("counterexample-cycle[duplicate=1]", "duplicate must be true or false; got 1"),
            (
                "knight-quest[rewards=mode]",
                r"knight-quest: rewards must be outcome or mean; got 'mode'\. Leave it out for",
            ),
            ("three-state[delta=0.1,delta=0.2]", "'delta' is given twice"),
            ("three-state[delta]", "must read key=value"),
            ("three state", "must read name or name"),
        ],
    )
    def test_wrong_values(self, text, words):
        with pytest.raises(OptionError, match=words):
            make(text)

    def test_wrong_keywords(self):
        with pytest.raises(OptionError, match=r"make: 'delta' is given in the text .* and as a keyword\. Give it once"):
            make("three-state[delta=0.1]", delta=0.1)
        with pytest.raises(OptionError, match="delta must be a number; got None"):
            make("three-state", delta=None)
        with pytest.raises(OptionError, match="variant must be a word"):
            make("riverswim", variant="a b")
        with pytest.raises(OptionError, match="make: takes a text such as name\\[key=value\\]; got 3"):
            make(3)


class TestListEnvs:
    def test_names_defaults_and_sources(self):
        entries = list_envs()
        assert [entry.name for entry in entries] == NAMES
        assert all(entry.summary and entry.source for entry in entries)
        defaults = {entry.name: entry.defaults for entry in entries}
        assert defaults["riverswim"] == {"variant": "strehl", "n_states": 6}
        assert defaults["three-state"] == {"delta": 0.005}
        assert list(defaults["counterexample-fixed-point"]) == ["alpha", "beta", "delta", "extra_action"]

    def test_modules_of_environments_are_imported_when_used(self):
        code = (
            "import sys, spanrl; spanrl.make('two-state');"
            "loaded = [m for m in sys.modules if m.startswith('spanrl.')];"
            "assert 'spanrl.envs.knight_quest' not in loaded, loaded;"
            "assert not [m for m in loaded if m.split('.')[1] in ('planning', 'kernels')], loaded;"
            "assert not [m for m in loaded if m.startswith('spanrl.agents.')], loaded"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


class TestRegisterEnv:
    def test_ones_own_environment(self):
        def ring(n: int = 3, reward: float = 1, *, label="x", reverse: bool = False) -> Env:
            step = -1 if reverse else 1
            return Env.from_outcomes({(s, 0): [(1.0, (s + step) % n, reward if s == 0 else 0.0)] for s in range(n)})

        register_env("ring", ring, summary="A ring.", source="here")
        env = make("ring[n=5,reward=0.5,reverse=true]")
        assert env.info.id == "ring[n=5,reward=0.5,reverse=true]"
        assert env.mdp.n_states == 5
        assert env.info.parameters == {"n": 5, "reward": 0.5, "label": "x", "reverse": True}
        assert make("ring[reward=1.0]").info.id == "ring"
        assert (make("ring").info.summary, make("ring").info.source) == ("A ring.", "here")
        assert "ring" in [entry.name for entry in list_envs()]
        with pytest.raises(UnknownNameError, match="Did you mean 'reverse'"):
            make("ring[revers=true]")

    def test_an_existing_name_is_refused(self):
        with pytest.raises(OptionError, match=r"register_env: 'two-state' is registered already\. Choose another name"):
            register_env("two-state", two_state, summary="Again.")

    @pytest.mark.parametrize("name", ["a b", "a[b=1]", ""])
    def test_a_name_must_be_a_word(self, name):
        with pytest.raises(OptionError, match=r"must be a word|must read name"):
            register_env(name, two_state, summary="No.")

    @pytest.mark.parametrize(
        "factory",
        [
            lambda n: n,
            lambda *n: n,
            lambda **n: n,
            lambda n=None: n,
            lambda n=(1, 2): n,
            lambda n=1, /: n,
        ],
    )
    def test_every_parameter_needs_a_plain_default(self, factory):
        with pytest.raises(OptionError, match=r"mine: every parameter must be a keyword .*'n' is not"):
            register_env("mine", factory, summary="No.")
        assert "mine" not in [entry.name for entry in list_envs()]

    def test_a_declared_type_without_a_default_is_refused(self):
        def factory(n: int) -> Env:
            raise AssertionError(n)

        with pytest.raises(OptionError, match="mine: every parameter of an environment has a default; 'n' has none"):
            register_env("mine", factory, summary="No.")

    def test_a_factory_must_return_an_env(self):
        register_env("mine", lambda: two_state().mdp, summary="Forgets to wrap.")
        with pytest.raises(OptionError, match=r"mine: the factory must return an Env; got MDP\. Try Env.from_mdp"):
            make("mine")
