"""Whole episodes in compiled code: the bits of an agent that is asked step by step, and of one that meets Python every episode."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loop_samples import Kept, assert_is_by_hand, both, by_hand, curves, known, new_session, random_env, stopped

from spanrl import PSRL, SCAL, UCRL, UCRL2, Env, ProblemInfo, learn, make
from spanrl.learning import session as module
from spanrl.learning.snapshot import unpack

HORIZON = 2000
SCALE = 0.002  # of the radii: plans take more than a sweep
SEEDS = range(4)


def narrow(c: float = 0.4, **options: Any) -> SCAL:
    return SCAL(c, p_scale=SCALE, r_scale=SCALE, **options)


AGENTS = {
    "scal": SCAL(0.5),
    "mixture": narrow(),
    "wide mixture": narrow(1.0),
    "bound 0": narrow(0.0),
    "greedy": narrow(policy="greedy"),
    "cold": narrow(warm_start=False),
    "rsqrt": narrow(delta="rsqrt"),
    "ucrl": UCRL(p_scale=SCALE, r_scale=SCALE),
    "cold ucrl": UCRL(p_scale=SCALE, r_scale=SCALE, warm_start=False),
    "ucrl2": UCRL2(),
    "cold ucrl2": UCRL2(warm_start=False),
    "kt": SCAL(0.4, bounds="kt"),
    "vm": narrow(episodes="vm"),
    "psrl": PSRL(),
    "cold psrl": PSRL(warm_start=False),
}


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_equals_the_agent_by_hand_and_every_episode(name, seed):
    env, agent = random_env(seed), AGENTS[name]
    run, learner = both(env, agent, HORIZON, seed)
    assert run.n_episodes[-1] > 10
    assert_is_by_hand(run, learner, env, agent, HORIZON, seed)


@pytest.mark.parametrize("agent", [UCRL(p_scale=1e-4, r_scale=1e-4), narrow(5.0), UCRL2(delta="rsqrt")])
def test_a_chain_that_takes_many_sweeps(agent):
    env = Env.from_mdp(make("riverswim").mdp, "bernoulli")
    run, learner = both(env, agent, 10_000, 7)
    assert_is_by_hand(run, learner, env, agent, 10_000, 7)
    assert run.episodes["sweeps"].max() > 8


def test_these_runs_are_of_all_kinds():
    """Mixing in some episodes and not in others, many of them with more than one sweep; otherwise the comparisons say nothing."""
    mixed = sweeps = 0
    for seed in SEEDS:
        run = learn(random_env(seed), AGENTS["mixture"], horizon=HORIZON, seed=seed)
        mixed += 0 < run.episodes["deterministic"].sum() < run.episodes["deterministic"].size
        other = learn(random_env(seed), AGENTS["wide mixture"], horizon=HORIZON, seed=seed)
        sweeps += int((run.episodes["sweeps"] > 1).sum() + (other.episodes["sweeps"] > 1).sum())
    assert mixed == 4
    assert sweeps > 50
    assert {random_env(seed).mdp.r_min for seed in SEEDS} == {0.0, -2.0, 1.0}
    assert any(np.unique(np.diff(random_env(seed).mdp.pair_ptr)).size > 1 for seed in SEEDS)


@pytest.mark.parametrize("name", ["mixture", "ucrl2", "cold"])
def test_horizons_that_end_with_an_episode(name):
    """The next one is neither planned nor recorded: the pair that would end this one is not played any more."""
    env, agent = random_env(1), AGENTS[name]
    whole = learn(env, agent, horizon=2000, seed=1)
    starts = whole.episodes["start"]
    assert starts.size > 10
    for k in (1, 2, 5, starts.size // 2, starts.size - 1):
        for horizon in (int(starts[k]) - 1, int(starts[k])):
            run, learner = both(env, agent, horizon, 1)
            assert_is_by_hand(run, learner, env, agent, horizon, 1)
            assert run.t[-1] == horizon
            assert run.episodes["start"].tolist() == starts[starts <= horizon].tolist()


@pytest.mark.parametrize("points", [1, 1000])
@pytest.mark.parametrize("name", ["mixture", "ucrl2"])
def test_few_and_many_measurements(name, points):
    """A thousand a decade are more than compiled code takes at once."""
    env, agent = random_env(4), AGENTS[name]
    run, learner = both(env, agent, 8000, 4, points)
    assert_is_by_hand(run, learner, env, agent, 8000, 4)
    assert run.t.size > module._RECORDS if points == 1000 else run.t.tolist() == [1, 10, 100, 1000, 8000]


@pytest.mark.parametrize("name", ["mixture", "cold", "ucrl2"])
@pytest.mark.parametrize("records", [1, 2, 7])
def test_how_much_is_done_at_once_changes_nothing(name, records, monkeypatch):
    env, agent = random_env(2), AGENTS[name]
    wanted = curves(learn(env, agent, horizon=1500, seed=2))
    monkeypatch.setattr(module, "_RECORDS", records)
    kept = Kept(agent)
    for budget in (1, 5, 1 << 20):
        monkeypatch.setattr(module, "BUDGET", budget)
        assert curves(learn(env, kept, horizon=1500, seed=2)) == wanted
    assert known(kept.learners[0]) == known(kept.learners[1]) == known(kept.learners[2])


def test_a_planner_that_runs_out_of_its_budget_goes_on(monkeypatch):
    """One sweep over actions per call: most plans are left in the middle, and nothing else happens until they are done."""
    env, agent = random_env(3), AGENTS["wide mixture"]
    wanted = curves(learn(env, agent, horizon=1500, seed=1, points=30))
    start, ticks = Kept.start, []

    def start_slowly(self: Kept, info: ProblemInfo, rng: Any) -> Any:
        learner = start(self, info, rng)
        learner._planner._budget = 1
        return learner

    monkeypatch.setattr(Kept, "start", start_slowly)
    session = new_session(env, Kept(agent), 1500, 1)
    reach, reached = session._recorder.reach, []

    def reach_and_tell(t: int, reward: float, expected: float) -> None:
        reached.append((t, reward))
        reach(t, reward, expected)

    monkeypatch.setattr(session._recorder, "reach", reach_and_tell)
    session.run(None, ticks.append)
    paid = np.cumsum([0.0, *by_hand(env, agent, 1500, 1)[1]])
    assert all(reward == paid[t] for t, reward in reached), "also in the middle of a plan, where Ctrl-C may come"
    assert len(reached) > 10
    found = session.result(interrupted=False)
    named = {name: part for name, part in curves(found).items() if "regret" not in name}
    assert named == {name: part for name, part in wanted.items() if "regret" not in name}
    assert found.episodes["sweeps"].max() > 10
    assert ticks == sorted(ticks)


class TestUninitialised:
    """Memory that was never written must not matter."""

    @staticmethod
    def digest() -> str:
        total = hashlib.sha256()
        for seed in (1, 2, 5):
            for name in ("mixture", "cold", "ucrl", "ucrl2"):
                for watched in (False, True):
                    kept = Kept(AGENTS[name], watched)
                    run = learn(random_env(seed), kept, horizon=1500, seed=seed)
                    total.update(repr(curves(run)).encode())
                    total.update(repr(known(kept.learners[0])).encode())
        return total.hexdigest()

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="MALLOC_PERTURB_ is of the GNU C library")
    def test_perturbed_memory_gives_the_same_bits(self):
        code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_loop as t; print(t.TestUninitialised.digest())"
        found = {self.digest()}
        for byte in ("1", "255"):  # fills with 254 and 0, and with the byte itself what is given back
            environ = os.environ | {"MALLOC_PERTURB_": byte}
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300, env=environ
            )
            found.add(done.stdout.strip())
        assert len(found) == 1


class TestCheckpoints:
    @pytest.mark.parametrize("then", ["alone", "watched"])
    @pytest.mark.parametrize("name", ["mixture", "cold", "ucrl2", "psrl"])
    def test_go_on_with_the_same_bits(self, name, then, monkeypatch):
        """In the middle of episodes, of both kinds where the agent has both; whoever begins the episodes after it."""
        env, agent, horizon, seed = random_env(1), AGENTS[name], 3000, 1
        whole = Kept(agent)
        session = new_session(env, whole, horizon, seed)
        session.run(0.5, lambda t: None)
        wanted, learned = curves(session.result(interrupted=False)), known(whole.learners[0])
        monkeypatch.setattr(module, "BUDGET", 40)
        kinds, within = set(), 0
        for look in (0, 1, 2, 5, 9, 14, 20, 27, 35, 44, 54, 65):
            before, after = Kept(agent), Kept(agent, watched=then == "watched")
            blob = stopped(new_session(env, before, horizon, seed), look)
            if blob is None:
                continue
            session = new_session(env, after, horizon, seed)
            session.restore(unpack(blob))
            plan = after.learners[0].plan
            if plan is not None:
                kinds.add(plan.mixes)
                within += bool((plan.left < plan.allowed).any())
            session.run(0.5, lambda t: None)
            assert curves(session.result(interrupted=False)) == wanted, look
            assert known(after.learners[0]) == learned, look
        assert within > 3
        assert kinds == ({False} if name in ("ucrl2", "psrl") else {False, True})

    def test_many_stops_in_one_run(self, monkeypatch):
        env, agent, horizon, seed = random_env(1), AGENTS["mixture"], 3000, 1
        session = new_session(env, agent, horizon, seed)
        session.run(0.5, lambda t: None)
        wanted = curves(session.result(interrupted=False))
        monkeypatch.setattr(module, "BUDGET", 40)
        blob, stops = stopped(new_session(env, agent, horizon, seed), 3), 0
        while blob is not None:
            session, stops = new_session(env, agent, horizon, seed), stops + 1
            session.restore(unpack(blob))
            blob = stopped(session, 3)
        assert curves(session.result(interrupted=False)) == wanted
        assert stops > 10
