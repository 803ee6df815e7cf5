"""Several threads of one process learn at once: each gets the bits it would get alone."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import numpy as np

from spanrl import learn, make, make_agent
from spanrl.agents import registry
from spanrl.agents.registry import agent_id
from spanrl.learning import optimum as module
from spanrl.learning.optimum import find_optimum


class Forgetful(WeakKeyDictionary):
    """Loses each entry right after it was asked whether it has it, as where another thread drops the last equal model."""

    def __contains__(self, key: object) -> bool:
        found = super().__contains__(key)
        self.clear()
        return found

    def __setitem__(self, key, value) -> None:
        super().__setitem__(key, value)
        self.clear()


def test_the_gain_of_a_model_that_is_dropped_meanwhile(monkeypatch):
    mdp = make("two-state").mdp
    best = find_optimum(mdp)
    monkeypatch.setattr(module, "_OPTIMA", Forgetful({mdp: best}))
    assert find_optimum(mdp) is best


def test_many_threads_ask_for_the_gain_of_equal_models(monkeypatch):
    """Each thread makes, asks and drops its own copy; the entry of the gain lives and dies with one of them."""
    monkeypatch.setattr(module, "_OPTIMA", WeakKeyDictionary())
    found = SimpleNamespace(gains=np.full(2, 0.5), bias=np.zeros(2), span=0.0)
    monkeypatch.setattr(module, "analyse", lambda mdp, diameter: found)

    env = make("two-state")

    def ask(_: int) -> set[float | None]:
        return {find_optimum(replace(env.mdp)).gain for _ in range(300)}

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert set().union(*pool.map(ask, range(8))) == {0.5}
    finally:
        sys.setswitchinterval(before)


def test_learning_in_many_threads_has_the_bits_of_learning_alone(monkeypatch):
    monkeypatch.setattr(module, "_OPTIMA", WeakKeyDictionary())
    jobs = [
        (env, agent, seed)
        for env in ("two-state", "three-state")
        for agent in ("ucrl", "scal[span_bound=2]")
        for seed in range(6)
    ]

    def bits(job: tuple[str, str, int]) -> tuple[bytes, bytes]:
        env, agent, seed = job
        run = learn(env, agent, horizon=3000, seed=seed)
        return run.regret.tobytes(), run.episodes["gain"].tobytes()

    alone = [bits(job) for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(bits, jobs)) == alone
    assert gc.isenabled()


def test_an_agent_is_named_while_another_thread_registers_one(monkeypatch):
    class Registering(type(registry._ENTRIES["scal"])):
        def load(self):
            registry._ENTRIES[f"new-{len(registry._ENTRIES)}"] = registry._ENTRIES["scal"]
            return super().load()

    entries = {name: Registering(e.name, e.factory, e.description) for name, e in registry._ENTRIES.items()}
    monkeypatch.setattr(registry, "_ENTRIES", entries)
    assert agent_id(make_agent("ucrl2")) == "ucrl2"
