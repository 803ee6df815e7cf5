"""StatisticalRL on its own problems: ``python statisticalrl_learner.py TABLES.npz LEARNER HORIZON [PROBLEM]``.

The tables of the environment are written first. A turn is one run from one seed, in a loop that does nothing but play: the package's
own keeps lists of sums besides and is slower.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import gymnasium
import numpy as np
from statisticalrl_environments import register
from statisticalrl_learners.MDPs_discrete.IMED_RL import IMEDRL
from statisticalrl_learners.MDPs_discrete.KLUCRL import KLUCRL
from statisticalrl_learners.MDPs_discrete.PSRL import PSRL
from statisticalrl_learners.MDPs_discrete.UCRL2B import UCRL2B
from statisticalrl_learners.MDPs_discrete.UCRL3 import UCRL3
from turns import serve

DELTA = 0.05
LEARNERS = {"UCRL2B": UCRL2B, "UCRL3": UCRL3, "KL-UCRL": KLUCRL, "PSRL": PSRL, "IMED-RL": lambda S, A, _: IMEDRL(S, A)}


def main(tables: str, name: str, horizon: str, problem: str = "river-swim-6") -> None:
    env = gymnasium.make(register.registerStatisticalRLenvironments[problem](None)).unwrapped
    states, actions, T = range(env.nS), range(env.nA), int(horizon)
    P = np.array([[env.getTransition(s, a) for a in actions] for s in states])
    np.savez(tables, P=P, r=np.array([[env.getMeanReward(s, a) for a in actions] for s in states]))

    def go(seed: float) -> dict[str, Any]:
        np.random.seed(int(seed))
        learner, total = LEARNERS[name](env.nS, env.nA, DELTA), 0.0
        begun = perf_counter()
        state, _ = env.reset(seed=int(seed))
        learner.reset(state)
        for _ in range(T):
            action = learner.play(state)
            succ, reward, _, _, _ = env.step(action)
            learner.update(state, action, reward, succ)
            total += reward
            state = succ
        return {"seconds": perf_counter() - begun, "reward": total}

    serve("statisticalRL", go)


if __name__ == "__main__":
    main(*sys.argv[1:])
