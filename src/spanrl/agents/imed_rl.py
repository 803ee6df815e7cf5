"""IMED-RL."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spanrl.agents.stepwise import STEPS, StepLearner, StepRules, current_state, take_step
from spanrl.kernels.imed import Experience, count_outcome, k_inf, solve_skeleton, value
from spanrl.kernels.jit import kernel, part, passed
from spanrl.options import number, require, whole_number
from spanrl.seeding import generator

if TYPE_CHECKING:
    from spanrl.models.info import ProblemInfo

MOST_STATES = 1000
_TOL, _R_MAX, _ROOM = range(3)  # in settings
_T, _N_SCALARS = range(2)  # in visits: steps done; the arrays follow


@part
def experience(memory):
    """Return the memory by names."""
    values, visits, ptr = memory.values, memory.visits, memory.pair_ptr
    S, room = ptr.size - 1, int(memory.settings[_ROOM])
    pairs, outcomes = ptr[S], ptr[S] * (room + 1)
    listed, succ = _N_SCALARS + pairs, _N_SCALARS + 2 * pairs
    paid, enough = 2 * outcomes, 2 * outcomes + pairs
    phi, backup, worth = enough + S, enough + 2 * S, enough + 3 * S
    return Experience(
        visits[_N_SCALARS:listed], visits[listed:succ], visits[succ:],
        values[:outcomes], values[outcomes:paid], values[paid:enough], values[enough:phi], values[phi:backup], values[backup:worth],
        values[worth:],
    )


@kernel
def decide(memory, state):
    """Return the pair with the smallest index."""
    ptr, seen, room = memory.pair_ptr, experience(memory), int(memory.settings[_ROOM])
    first, end, n = ptr[state], ptr[state + 1], seen.n
    for i in range(first, end):
        if n[i] == 0:
            return i
    solve_skeleton(ptr, seen, room, memory.settings[_TOL] / math.sqrt(memory.visits[_T]))
    mu = -np.inf
    for i in range(first, end):
        if n[i] >= seen.enough[state]:
            mu = max(mu, value(seen, room, i))
    best, least = first, np.inf
    for i in range(first, end):
        index = index_of(seen, room, i, mu, memory.settings[_R_MAX])
        if index < least:
            best, least = i, index
    return best


@kernel
def index_of(seen, room, pair, mu, top):
    n = seen.n[pair]
    if value(seen, room, pair) >= mu:
        return math.log(n)
    here, m = pair * (room + 1), seen.listed[pair]
    for k in range(m):
        seen.worth[k] = seen.reward[here + k] + seen.phi[seen.succ[here + k]]
    return n * k_inf(seen.worth[:m], seen.times[here : here + m], mu, top) + math.log(n)


@kernel
def update(memory, pair, reward, next_state):
    seen = experience(memory)
    count_outcome(seen, int(memory.settings[_ROOM]), pair, reward, next_state)
    memory.visits[_T] += 1
    s = np.searchsorted(memory.pair_ptr, pair, side="right") - 1
    seen.enough[s] = max(seen.enough[s], 1.0, math.log(seen.n[pair]) ** 2)


@passed(STEPS)
def steps(world, memory, n):
    """Take n steps."""
    for _ in range(n):
        pair = decide(memory, current_state(world))
        reward, next_state = take_step(world, pair)
        update(memory, pair, reward, next_state)


@dataclass(frozen=True)
class IMEDRL:
    """IMED-RL."""

    summary: ClassVar[str] = "Indexed minimum empirical divergence: asymptotically optimal in ergodic models."
    source: ClassVar[str] = "Pesquerel & Maillard, NeurIPS 2022"

    tol: float = 0.1
    max_outcomes: int = 32

    def __post_init__(self) -> None:
        """Check the options."""
        require(0 < number(self.tol) < inf, "IMEDRL", "tol must be a finite number > 0", self.tol, "Use 0.1, say.")
        whole_number("IMEDRL", "max_outcomes", self.max_outcomes)

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> StepLearner:
        """Return a learner for the problem."""
        S, pairs = int(info.n_states), info.n_pairs
        room = max(int(self.max_outcomes), S)
        options = float(self.tol) * info.size, float(info.r_max), float(room)
        outcomes = pairs * (room + 1)
        rules = StepRules(decide, update, steps, options, 2 * outcomes + pairs + 3 * S + room + 1, 1 + 2 * pairs + outcomes)
        return StepLearner(rules, info, generator("IMEDRL", rng))
