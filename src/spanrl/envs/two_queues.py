"""Two queues and one server: whom to serve first?"""

from __future__ import annotations

from itertools import product

from spanrl.envs.env import Env, Outcome
from spanrl.options import require

_MOST_PLACES = 100


def two_queues(
    places: int = 20,
    arrival_x: float = 0.25,
    arrival_y: float = 0.15,
    service_x: float = 0.7,
    service_y: float = 0.5,
    cost_x: float = 1.0,
    cost_y: float = 1.5,
) -> Env:
    """Return two queues and one server: whom to serve?

    States:
        (x, y), the lengths of the queues, 0 … places − 1 each.
    Actions:
        serve x, serve y.
    Transitions:
        In a slot the server finishes a customer of the chosen queue with probability service_x or service_y (none where
        it is empty); then a customer joins x with probability arrival_x and, independently, another one joins y with
        probability arrival_y. A full queue turns customers away.
    Rewards:
        −(cost_x·x + cost_y·y), the cost of the slot, in units of its own: rewards lie in [−(cost_x + cost_y)(places −
        1), 0]; fixed.
    Start:
        (0, 0).
    Constants:
        S = 400, A = 2, g* = -1.64000, sp(h*) = 2450.33, D = 1817388.0. The optimal policy is the cμ rule almost
        everywhere: serve y.
    Args:
        places: states per queue, 2 to 100.
        arrival_x, arrival_y, service_x, service_y: probabilities, in (0, 1).
        cost_x, cost_y: costs per customer and slot, in (0, 1e6].
    Source:
        The cμ rule is Cox & Smith's, 1961. The numbers are ours.
    """
    who = "two-queues"
    require(2 <= places <= _MOST_PLACES, who, f"places must lie in 2..{_MOST_PLACES}", places, "Try 20.")
    chances = {"arrival_x": arrival_x, "arrival_y": arrival_y, "service_x": service_x, "service_y": service_y}
    for name, p in chances.items():
        require(0 < p < 1, who, f"{name} must lie in (0, 1)", p, "Leave it out for its default.")
    for name, cost in (("cost_x", cost_x), ("cost_y", cost_y)):
        require(0 < cost <= 1e6, who, f"{name} must lie in (0, 1e6]", cost, "Leave it out for its default.")
    most = places - 1
    outcomes = {}
    for x, y in product(range(places), repeat=2):
        for action, service in enumerate((service_x, service_y)):
            slot = []
            for served, more_x, more_y in product((0, 1), repeat=3):
                p = _chance(service, served) * _chance(arrival_x, more_x) * _chance(arrival_y, more_y)
                left = max(x - served * (action == 0), 0), max(y - served * (action == 1), 0)
                after = min(left[0] + more_x, most), min(left[1] + more_y, most)
                slot.append(Outcome(p, after[0] * places + after[1], -(cost_x * x + cost_y * y)))
            outcomes[x * places + y, action] = slot
    return Env.from_outcomes(
        outcomes,
        r_min=-(cost_x + cost_y) * most,
        r_max=0.0,
        state_names=list(product(range(places), repeat=2)),
        action_names=("serve x", "serve y"),
    )


def _chance(p: float, happens: int) -> float:
    return p if happens else 1 - p
