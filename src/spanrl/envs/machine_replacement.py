"""Machine replacement: when is a worn machine too worn?"""

from __future__ import annotations

from spanrl.envs.env import Env, Outcome
from spanrl.options import require

OPERATE, REPLACE = 0, 1
_MOST_WEAR = 10**4


def machine_replacement(n: int = 10, wear: float = 0.2, cost: float = 1.5) -> Env:
    """Return a machine that wears: operate it, or buy a new one?

    States:
        The wear, 0 (new) … n (failed).
    Actions:
        operate, where it has not failed; replace.
    Transitions:
        Operating wears the machine by one step with probability wear. Replacing takes the slot and leads to 0.
    Rewards:
        Operating earns 1 − (s/n)², replacing −cost; in [−cost, 1], fixed.
    Start:
        0, a new machine.
    Constants:
        S = 11, A = 2, g* = 0.847619, sp(h*) = 2.34762, D = 50. In general the gain is the largest of (Σ_{s<m} (1 −
        (s/n)²)/wear − cost)/(m/wear + 1) over the wear m at which the machine is replaced, and D = n/wear.
    Args:
        n: the wear of a failed machine, 1 to 10 000.
        wear: probability of wearing in a slot, in (0, 1].
        cost: of a new machine, in [0, 1e6].
    Source:
        Puterman 1994, Section 4.7.5. The numbers are ours.
    """
    who = "machine-replacement"
    require(1 <= n <= _MOST_WEAR, who, f"n must lie in 1..{_MOST_WEAR}", n, "The default is 10.")
    require(0 < wear <= 1, who, "wear must lie in (0, 1]", wear, "The default is 0.2.")
    require(0 <= cost <= 1e6, who, "cost must lie in [0, 1e6]", cost, "The default is 1.5.")
    outcomes = {(s, REPLACE): [Outcome(1.0, 0, -cost)] for s in range(n + 1)}
    for s in range(n):
        earned = 1 - (s / n) ** 2
        outcomes[s, OPERATE] = [Outcome(wear, s + 1, earned), Outcome(1 - wear, s, earned)]
    return Env.from_outcomes(
        outcomes,
        r_min=-cost,
        r_max=1.0,
        state_names=range(n + 1),
        action_names=("operate", "replace"),
    )
