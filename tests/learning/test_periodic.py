"""Where the plausible models are all but periodic, planning converges because damping sets in by itself."""

import numpy as np
import pytest

from spanrl import MDP, SCAL, UCRL, learn


def cycle() -> MDP:
    """Return two states that follow each other for ever: undamped value iteration never settles."""
    P = np.zeros((2, 1, 2))
    P[0, 0, 1] = P[1, 0, 0] = 1.0
    return MDP.from_dense(P, np.array([[1.0], [0.0]]))


NARROW = {"p_scale": 1e-9, "r_scale": 1e-9}
AGENTS = {"cold": UCRL(warm_start=False, **NARROW), "warm": UCRL(**NARROW), "bounded": SCAL(3.0, **NARROW)}


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_a_cycle_is_planned_in_a_few_sweeps(agent, monkeypatch):
    monkeypatch.setattr("spanrl.agents.planner._MOST_ROUNDS", 500)
    run = learn(cycle(), agent, horizon=100_000, seed=0)
    assert run.episodes["sweeps"].max() < 100
    assert run.regret[-1] == pytest.approx(0.0, abs=1.0)
