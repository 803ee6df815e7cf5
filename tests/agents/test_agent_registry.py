"""Agents by name: text form, canonical ids, errors, one's own."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from math import inf

import numpy as np
import pytest

import spanrl
from spanrl import SCAL, UCRL, UCRL2, learn, list_agents, make_agent, register_agent
from spanrl.agents import registry
from spanrl.agents.registry import Agent, AnyLearner, agent_id
from spanrl.errors import OptionError, UnknownNameError

NAMES = [
    "focus",
    "imed-rl",
    "kl-ucrl",
    "psrl",
    "qlearning",
    "scal",
    "scal-plus",
    "tsde",
    "tucrl",
    "ucrl",
    "ucrl2",
    "ucrl2b",
    "ucrl3",
]


@pytest.fixture(autouse=True)
def _restore(monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))


@dataclass(frozen=True)
class Lowest:
    """Plays the lowest action, or as the seed says; for tests."""

    offset: int = 0
    noisy: bool = False

    def start(self, info, rng):
        return _LowestLearner(self, info, rng)


class _LowestLearner:
    def __init__(self, agent, info, rng):
        self.agent, self.info, self.rng = agent, info, rng

    def act(self, state):
        first, end = self.info.pair_ptr[state], self.info.pair_ptr[state + 1]
        k = int(self.rng.integers(end - first)) if self.agent.noisy else min(self.agent.offset, end - first - 1)
        return int(self.info.action[first + k])

    def observe(self, reward, next_state):
        pass


class TestMake:
    def test_text_and_keywords_agree(self):
        assert make_agent("scal[span_bound=5]") == make_agent("scal", span_bound=5) == SCAL(5.0)
        assert make_agent("ucrl[delta=rsqrt]", p_scale=0.5) == UCRL("rsqrt", 0.5)
        assert make_agent(" ucrl2[ delta = 0.1 , warm_start=false ] ") == UCRL2(0.1, warm_start=False)

    @pytest.mark.parametrize(
        ("text", "canonical"),
        [
            ("scal[span_bound=5]", "scal[span_bound=5]"),
            ("scal[span_bound=5.0, delta=0.05, policy=mixture]", "scal[span_bound=5]"),
            ("scal[policy=greedy, span_bound=2.50]", "scal[span_bound=2.5,policy=greedy]"),
            (
                "scal[best_of_both=true,p_scale=0.05,span_bound=1e1]",
                "scal[span_bound=10,p_scale=0.05,best_of_both=true]",
            ),
            ("scal[span_bound=inf]", "scal[span_bound=inf]"),
            ("scal[span_bound=-0.0]", "scal[span_bound=0]"),
            ("ucrl", "ucrl"),
            ("ucrl[]", "ucrl"),
            ("ucrl[delta=rsqrt]", "ucrl[delta=rsqrt]"),
            ("ucrl[delta=5e-2,r_scale=1]", "ucrl"),
            ("ucrl2[warm_start=false]", "ucrl2[warm_start=false]"),
        ],
    )
    def test_canonical_id(self, text, canonical):
        agent = make_agent(text)
        assert agent_id(agent) == canonical
        assert make_agent(canonical) == agent
        assert learn("two-state", text, horizon=5, seed=0).meta["agent"] == canonical

    def test_ids_of_objects(self):
        assert agent_id(SCAL(np.float64(2.0), delta=0.05)) == "scal[span_bound=2]"
        assert agent_id(SCAL(inf)) == "scal[span_bound=inf]"
        assert agent_id(Lowest(3)) == "Lowest", "not registered: the class"

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("skal", r"make_agent: unknown agent 'skal'\. Did you mean 'scal'\?"),
            ("UCRL", r"make_agent: unknown agent 'UCRL'\."),
            (
                "xyzzy",
                rf"make_agent: unknown agent 'xyzzy'\. Known: {', '.join(NAMES)}\.",
            ),
            ("scal[spanbound=5]", r"scal: unknown parameter 'spanbound'\. Did you mean 'span_bound'\?"),
            ("ucrl[span_bound=5]", r"ucrl: unknown parameter 'span_bound'\."),
        ],
    )
    def test_unknown_names(self, text, words):
        with pytest.raises(UnknownNameError, match=words):
            make_agent(text)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("scal", r"scal: span_bound must be given\. Write scal\[span_bound=…\]"),
            ("scal[policy=greedy]", r"scal: span_bound must be given"),
            ("scal[span_bound=much]", r"scal: span_bound must be a number; got 'much'\. Give span_bound as float"),
            ("scal[span_bound=-1]", r"SCAL: span_bound must be a number ≥ 0; got -1\.0"),
            ("scal[span_bound=nan]", r"SCAL: span_bound must be a number ≥ 0; got nan"),
            ("scal[span_bound=2,perturb=1]", r"scal: perturb must be true or false; got 1"),
            ("scal[span_bound=2,warm_start=False]", r"scal: warm_start must be true or false; got 'False'"),
            ("scal[span_bound=2,policy=mixed]", r"SCAL: policy must be mixture or greedy; got 'mixed'"),
            ("ucrl[delta=1]", r"UCRL: delta must lie in \(0, 1\) or be 'rsqrt'; got 1\.0"),
            ("ucrl[delta=sqrt]", r"UCRL: delta must lie in \(0, 1\) or be 'rsqrt'; got 'sqrt'"),
            (
                "ucrl[delta=true]",
                r"ucrl: delta must be a number or a word of .*; got True\. Give delta as float or str",
            ),
            ("scal(5)", r"text form: must read name or name\[key=value,\.\.\.\]; got 'scal\(5\)'"),
        ],
    )
    def test_wrong_values(self, text, words):
        with pytest.raises(OptionError, match=words):
            make_agent(text)

    def test_given_twice(self):
        with pytest.raises(
            OptionError, match=r"make_agent: 'span_bound' is given in the text .* and as a keyword\. Give it once"
        ):
            make_agent("scal[span_bound=5]", span_bound=5)

    @pytest.mark.parametrize("value", [None, 5, SCAL(2.0)])
    def test_no_text(self, value):
        with pytest.raises(
            OptionError, match=r"make_agent: takes a text such as name\[key=value\]; got .*Give its name"
        ):
            make_agent(value)

    def test_an_agent_made_by_name_is_frozen(self):
        with pytest.raises(FrozenInstanceError):
            make_agent("scal[span_bound=5]").span_bound = 6.0

    def test_agents_and_learners_keep_the_protocols(self):
        for agent in (SCAL(2.0), UCRL(), UCRL2(), Lowest()):
            assert isinstance(agent, Agent)
        assert not isinstance(object(), Agent)
        assert not isinstance(Lowest(), AnyLearner)


class TestList:
    def test_all_are_there_with_summary_source_and_parameters(self):
        entries = {entry.name: entry for entry in list_agents()}
        assert list(entries) == NAMES
        for entry in entries.values():
            assert entry.summary.endswith(".")
            assert entry.source
            assert entry.load() is getattr(spanrl, entry.load().__name__)
        scal = entries["scal"].parameters
        assert list(scal) == [
            "span_bound",
            "delta",
            "p_scale",
            "r_scale",
            "policy",
            "perturb",
            "best_of_both",
            "warm_start",
            "bounds",
            "episodes",
            "intersect",
        ]
        assert scal["span_bound"].default is None
        assert scal["delta"].default == 0.05
        assert scal["perturb"].default is False
        assert list(entries["ucrl2"].parameters) == ["delta", "warm_start"]


class TestRegister:
    def test_ones_own(self):
        register_agent("lowest", Lowest, summary="Plays the lowest action.", source="here")
        assert make_agent("lowest[offset=1]") == Lowest(1)
        assert agent_id(Lowest(1)) == "lowest[offset=1]"
        assert [entry.name for entry in list_agents()] == sorted(["lowest", *NAMES])
        run = learn("three-state", "lowest[noisy=true]", horizon=100, seed=0)
        assert run.meta["agent"] == "lowest[noisy=true]"
        assert run.t[-1] == 100

    def test_a_function_that_returns_one(self):
        register_agent("careful", lambda factor=2.0: SCAL(factor), summary="SCAL.")
        assert make_agent("careful[factor=3]") == SCAL(3.0)

    @pytest.mark.parametrize("name", ["scal", "ucrl2"])
    def test_names_that_are_taken(self, name):
        with pytest.raises(OptionError, match=rf"register_agent: '{name}' is registered already\. Choose another name"):
            register_agent(name, Lowest, summary="")

    @pytest.mark.parametrize("name", ["my[agent]", "my[agent=1]", "a=b", "", 5])
    def test_names_that_are_none(self, name):
        with pytest.raises(OptionError, match=r"register_agent: a name must be a word of|text form: .*must read"):
            register_agent(name, Lowest, summary="")

    def test_what_is_no_factory(self):
        with pytest.raises(OptionError, match="register_agent: takes a name and a class or function; got 5"):
            register_agent("mine", 5, summary="")

    def test_parameters_must_be_words_and_numbers(self):
        with pytest.raises(
            OptionError,
            match=r"mine: every parameter must be a keyword of type bool, int, float or str.*'table' is not",
        ):
            register_agent("mine", lambda table=(): SCAL(1.0), summary="")

    def test_a_factory_that_returns_no_agent(self):
        register_agent("broken", lambda: 5, summary="")
        with pytest.raises(
            OptionError, match=r"broken: the factory must return an agent with start\(info, rng\); got int"
        ):
            make_agent("broken")

    def test_nothing_stays_after_a_refusal(self):
        with pytest.raises(OptionError, match="every parameter"):
            register_agent("mine", lambda table=(): SCAL(1.0), summary="")
        with pytest.raises(UnknownNameError, match="unknown agent 'mine'"):
            make_agent("mine")
