"""Admission to a queue: each customer pays a fee and keeps the others waiting."""

from __future__ import annotations

from spanrl.envs.env import Env, Outcome
from spanrl.options import require

REJECT, ADMIT = 0, 1
_MOST_PLACES = 10**4


def queue_admission(capacity: int = 10, arrival: float = 0.3, service: float = 0.5, holding: float = 0.05) -> Env:
    """Return a queue: whom to admit? Huge diameter, small span.

    States:
        The number of customers, 0 … K.
    Actions:
        reject, admit: what is done with a customer who arrives in this slot.
    Transitions:
        The queue grows by one with probability arrival where he is admitted and there is room, and shrinks by one with
        probability service (if it is not empty); otherwise nothing changes. This is the continuous-time queue,
        uniformised.
    Rewards:
        In a slot the expected fee, arrival where a customer would be admitted and s < K, less holding per customer in
        the queue: r = arrival·1{admit, s < K} − holding·s, scaled to [0, 1] by (r + holding·K)/(arrival + holding·K);
        fixed.
    Start:
        0, the empty queue.
    Constants:
        S = 11, A = 2, g* = 0.912367, sp(h*) = 11.807, D = 2004.8. The optimal policy admits up to a threshold.
    Args:
        capacity: K, from 1 to 10 000.
        arrival, service: probabilities > 0 with arrival + service ≤ 1.
        holding: cost per customer and slot, ≥ 0.
    Source:
        Naor, Econometrica 1969; Puterman 1994, Section 11.5. The numbers are ours.
    """
    who = "queue-admission"
    require(1 <= capacity <= _MOST_PLACES, who, f"capacity must lie in 1..{_MOST_PLACES}", capacity, "Try 10.")
    rule = "arrival and service must be > 0 with a sum of at most 1"
    fits = min(arrival, service) > 0 and arrival + service <= 1
    require(fits, who, rule, (arrival, service), "The defaults are 0.3 and 0.5.")
    require(0 <= holding <= 1e6, who, "holding must lie in [0, 1e6]", holding, "The default is 0.05.")
    shift = holding * capacity
    outcomes = {}
    for s in range(capacity + 1):
        for action in (REJECT, ADMIT):
            enters = arrival if action == ADMIT and s < capacity else 0.0
            leaves = service if s > 0 else 0.0
            reward = (enters + holding * (capacity - s)) / (arrival + shift)
            changes = ((enters, s + 1), (leaves, s - 1), (1 - enters - leaves, s))
            outcomes[s, action] = [Outcome(p, after, reward) for p, after in changes if p > 0]
    names = range(capacity + 1)
    return Env.from_outcomes(outcomes, state_names=names, action_names=("reject", "admit"))
