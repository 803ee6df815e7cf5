"""What is compiled before workers start follows from the agents of the experiment, whoever wrote them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import spanrl
from spanrl.agents import registry
from spanrl.experiments import warming
from spanrl.kernels import cache


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return the (environment, agent) that are run, with nothing compiled before."""
    done, marks = list[tuple[str, str]](), set[str]()
    monkeypatch.setattr(warming, "learn", lambda env, agent, **_: done.append((env, agent)))
    monkeypatch.setattr(warming, "is_compiled", marks.__contains__)
    monkeypatch.setattr(warming, "mark_compiled", marks.add)
    return done


def test_every_kind_of_agent_is_run_once(runs):
    agents = ["scal[span_bound=2]", "scal[span_bound=5]", "scal[span_bound=5,bounds=kt]", "psrl"]
    assert not warming.is_warm(agents)
    warming.warm_up(agents)
    assert warming.is_warm(agents)
    assert {agent for _, agent in runs} == {"scal[span_bound=5]", "scal[span_bound=5,bounds=kt]", "psrl"}
    assert warming.is_warm(["scal[span_bound=77,p_scale=0.5]"]), "numbers select no code"
    assert not warming.is_warm(["scal[span_bound=5,policy=greedy]"])
    assert not warming.is_warm(["qlearning"])


def test_an_agent_that_fails_is_left_to_its_cells(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "find_cache", lambda: (tmp_path, ""))

    @dataclass(frozen=True)
    class Broken:
        def start(self, info: spanrl.ProblemInfo, rng: Any) -> Any:
            raise RuntimeError("no")

    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    spanrl.register_agent("broken", Broken, summary="Fails.")
    warming.warm_up(["broken"])
    assert warming.is_warm(["broken"])


def test_no_agent_is_named_where_cells_are_computed():
    names = set(registry._ENTRIES)
    for path in sorted(Path(warming.__file__).parent.glob("*.py")):
        words = {node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)}
        named = {word for word in words if isinstance(word, str) and word.partition("[")[0] in names}
        assert not named, path.name
