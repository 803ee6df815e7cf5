"""IMED-RL, indexed minimum empirical divergence (Pesquerel & Maillard, NeurIPS 2022): for ergodic models.

At every step t, in the state s::

    for all s':  A_s' ← {a : N(s',a) ≥ ln²(max_b N(s',b))}                         the skeleton
    φ ← the bias of the empirical MDP (r̂, p̂) with the actions A, max φ = 0         warm start at the last φ
    μ ← max of r̂(s,a) + p̂(·|s,a)φ over a in A_s;   M ← r_max + max φ
    play an a with the least  H(s,a) = N(s,a)·K(s,a) + ln N(s,a),                  −∞ if never played
    K(s,a) = K_inf(X, μ) = sup of E ln(1 − (X − μ)λ) over 0 ≤ λ ≤ 1/(M − μ),       X = r + φ(s'), as seen after (s,a)

K is the least Kullback–Leibler divergence from what was seen to a law on (−∞, M] under which a would be as good as the best. Distinct
pairs (r, s') are kept with their counts, for X has their joint law.

What is proved, by Pesquerel and Maillard: where every policy visits all states (ergodic) and rewards are light-tailed with a known upper
bound, E regret(T)/ln T tends to the least that any uniformly good algorithm can have (Burnetas & Katehakis 1997). That says nothing about a
given T, nor about other models: where a policy may stay in a part of the states, as in RiverSwim, a state that no index points to may
never be found.

Differs from the paper:

* φ is solved by sweeps of value iteration until the gain is known within tol·(r_max − r_min)/√t, less than its statistical error, or
  1000 sweeps are made, which is counted (``run.meta["steps_unsolved"]``); they are damped, so that periodic models converge.
* The model that is solved has one more observation of each pair: the reward r_max, and any state alike. So it is ergodic from the start,
  and has values, optimistic ones, in states never left. It weighs 1/(N+1). K is that of what was seen, but 0 where an action reaches μ
  in the model.
* At most ``max_outcomes`` (r, s') are kept for each pair, or 2S if that is more, so that two rewards per successor always have a place;
  beyond that the nearest rewards with one s' become their mean. Spread is lost then, and K is too large.

The authors' public program has ln(M − (X − μ)λ) in place of ln(1 − (X − μ)λ), with min φ = 0. For M > 1 that adds about N·ln M to
the index of every action but the best, and explores less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.stepwise import STEPS, Memory, StepLearner, StepRules, current_state, first_best, take_step
from spanrl.kernels.imed import count_outcome, divergence, experience, memory_sizes, pseudo_value, solve_skeleton, value
from spanrl.kernels.jit import interpreted, kernel, part, passed
from spanrl.options import number, require, whole_number
from spanrl.seeding import generator

if TYPE_CHECKING:
    from spanrl.models.info import ProblemInfo

MOST_STATES = 1000
"""Every pair has room for S successors, and every step sweeps over all pairs."""
_MOST_OUTCOMES = 10**4

_TOL, _R_MAX, _ROOM = range(3)  # in Memory.settings; tol times the range of the rewards


@part
def known(memory):
    """Return the memory as an Experience, and the room for outcomes of a pair."""
    S, room = memory.pair_ptr.size - 1, np.int64(memory.settings[_ROOM])
    return experience(memory.values, memory.visits, S, memory.pair_ptr[S], room), room


@kernel
def decide(memory, state):
    """Return the first pair with the least index; one never played is −∞."""
    ptr, r_max = memory.pair_ptr, memory.settings[_R_MAX]
    seen, room = known(memory)
    n, first, end, t = seen.n, ptr[state], ptr[state + 1], 0
    for i in range(first, end):
        if n[i] == 0:
            return i
    for i in range(n.size):
        t += n[i]
    tol = memory.settings[_TOL] / math.sqrt(t)
    low, high = solve_skeleton(ptr, seen, room, r_max, tol)
    seen.unsolved[0] += high - low > tol
    mu, pseudo = -np.inf, pseudo_value(seen.phi, r_max)
    for i in range(first, end):
        if n[i] >= seen.enough[state]:
            mu = max(mu, value(seen, room, i, pseudo))
    best, least = first, np.inf
    for i in range(first, end):
        index = math.log(n[i])
        if value(seen, room, i, pseudo) < mu:
            index += n[i] * divergence(seen, room, i, mu, r_max)  # M = r_max: max φ = 0
        if index < least:
            best, least = i, index
    return best


@kernel
def update(memory, pair, reward, next_state):
    """Count what was seen; the pairs of the same state now need ln²(max N) visits to be on the skeleton."""
    seen, room = known(memory)
    count_outcome(seen, room, pair, reward, next_state)
    state = np.searchsorted(memory.pair_ptr, pair, side="right") - 1
    seen.enough[state] = max(seen.enough[state], math.log(seen.n[pair]) ** 2)


@passed(STEPS)
def steps(world, memory, n):
    """Take n steps."""
    for _ in range(n):
        pair = decide(memory, current_state(world))
        reward, next_state = take_step(world, pair)
        update(memory, pair, reward, next_state)


def greedy(memory: Memory) -> NDArray[np.int64]:
    """Return the pair of each state's skeleton with the largest r̂ + p̂φ, in the model that was solved last."""
    ptr = memory.pair_ptr
    with interpreted():  # compiled code hands out no views
        seen, _ = known(memory)
    pairs = (ptr[-1], -1)
    after = (seen.times.reshape(pairs) * seen.phi[seen.succ.reshape(pairs)]).sum(axis=1)
    values = (seen.paid + after + memory.settings[_R_MAX] + seen.phi.mean()) / (seen.n + 1.0)
    return first_best(ptr, np.where(seen.n >= np.repeat(seen.enough, np.diff(ptr)), values, -np.inf))


def count_unsolved(memory: Memory) -> dict[str, int]:
    """Return what the record of a run tells: the steps whose sweeps did not suffice."""
    return {"steps_unsolved": int(memory.visits[-1])}


@dataclass(frozen=True)
class IMEDRL:
    """Play the action of the least index N·K_inf + ln N, decided anew at every step. For ergodic models: see the module.

    Args:
        tol: how far from solved the empirical model may be, > 0: its gain bracket at step t is at most tol·(r_max − r_min)/√t wide, unless
            1000 sweeps do not suffice: the next step goes on from there, and ``run.meta["steps_unsolved"]`` counts it.
        max_outcomes: distinct (reward, next state) that are kept for each pair, from 1 to 10 000; never fewer than 2S.

    >>> import spanrl
    >>> spanrl.make_agent("imed-rl[max_outcomes=100]").max_outcomes
    100
    """

    summary: ClassVar[str] = "Indexed minimum empirical divergence: asymptotically optimal in ergodic models."
    source: ClassVar[str] = "Pesquerel & Maillard, NeurIPS 2022"

    tol: float = 0.1
    max_outcomes: int = 32

    def __post_init__(self) -> None:
        """Check the options."""
        require(0 < number(self.tol) < inf, "IMEDRL", "tol must be a finite number > 0", self.tol, "Use 0.1, say.")
        whole_number("IMEDRL", "max_outcomes", self.max_outcomes, _MOST_OUTCOMES)

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> StepLearner:
        """Return a learner for the problem."""
        S, remedy = int(info.n_states), "It solves a model of all states at every step; use UCRL."
        require(S <= MOST_STATES, "IMEDRL", f"S must be at most {MOST_STATES}", S, remedy)
        room = max(int(self.max_outcomes), 2 * S)
        settings = float(self.tol) * info.size, info.r_max, float(room)
        sizes = memory_sizes(S, info.n_pairs, room)
        rules = StepRules(decide, update, steps, settings, *sizes, greedy=greedy, notes=count_unsolved)
        return StepLearner(rules, info, generator("IMEDRL", rng))
