"""RVI Q-learning with ε-greedy exploration (Abounadi, Bertsekas & Borkar 2001): the model-free yardstick.

After playing a in s, with the reward r and the next state s'::

    Q(s,a) ← Q(s,a) + α·(r + max_b Q(s',b) − f(Q) − Q(s,a)),    α = b/(b + n − 1) at the n-th visit,    f(Q) = the mean of all Q

and with probability ε a random action is played, otherwise one with the largest Q (ties: the lowest).

What is proved: Q converges, and f(Q) to the optimal gain, with probability 1, where all policies have one recurrent class with a common
state, all pairs are tried comparably often, and steps fall like 1/n. Of the regret nothing is: with a constant ε it is linear in T.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.stepwise import STEPS, Memory, StepLearner, StepRules, current_state, first_best, take_step
from spanrl.kernels.jit import part, passed
from spanrl.kernels.variates import uniform
from spanrl.options import number, require
from spanrl.seeding import generator

if TYPE_CHECKING:
    from spanrl.models.info import ProblemInfo


@part
def _best(memory, state):
    """Return the first pair of a state with the largest Q."""
    q, best = memory.values, memory.pair_ptr[state]
    for i in range(best + 1, memory.pair_ptr[state + 1]):
        if q[i] > q[best]:
            best = i
    return best


@part
def decide(memory, state):
    """Return a random pair of the state with probability ε, else the best."""
    if uniform(memory.words) >= memory.settings[0]:
        return _best(memory, state)
    first = memory.pair_ptr[state]
    return first + np.int64(uniform(memory.words) * (memory.pair_ptr[state + 1] - first))


@part
def update(memory, pair, reward, next_state):
    """Move Q(s,a) towards its target; ``values`` are Q and, at the end, its mean."""
    q, n_pairs, b = memory.values, memory.visits.size, memory.settings[1]
    memory.visits[pair] += 1
    step = b / (b + memory.visits[pair] - 1)
    change = step * (reward + q[_best(memory, next_state)] - q[n_pairs] - q[pair])
    q[pair] += change
    q[n_pairs] += change / n_pairs


@passed(STEPS)
def steps(world, memory, n):
    """Take n steps."""
    for _ in range(n):
        pair = decide(memory, current_state(world))
        reward, next_state = take_step(world, pair)
        update(memory, pair, reward, next_state)


def greedy(memory: Memory) -> NDArray[np.int64]:
    """Return the first pair of each state with the largest Q."""
    return first_best(memory.pair_ptr, memory.values[:-1])


@dataclass(frozen=True)
class QLearning:
    """Relative value iteration Q-learning for the average reward.

    Args:
        epsilon: probability of a random action, in [0, 1].
        step_scale: b > 0; the step of the n-th visit of a pair is b/(b + n − 1).

    >>> import spanrl
    >>> spanrl.make_agent("qlearning[epsilon=0.05]").epsilon
    0.05
    """

    summary: ClassVar[str] = "RVI Q-learning, ε-greedy: the model-free yardstick."
    source: ClassVar[str] = "Abounadi, Bertsekas & Borkar, SICON 2001"

    epsilon: float = 0.1
    step_scale: float = 100.0

    def __post_init__(self) -> None:
        """Check the options."""
        epsilon, b = self.epsilon, self.step_scale
        require(0 <= number(epsilon) <= 1, "QLearning", "epsilon must lie in [0, 1]", epsilon, "Use 0.1, say.")
        require(0 < number(b) < inf, "QLearning", "step_scale must be a finite number > 0", b, "Use 100, say.")

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> StepLearner:
        """Return a learner for the problem."""
        options = float(self.epsilon), float(self.step_scale)
        sizes = info.n_pairs + 1, info.n_pairs
        rules = StepRules(decide, update, steps, options, *sizes, greedy=greedy)
        return StepLearner(rules, info, generator("QLearning", rng))
