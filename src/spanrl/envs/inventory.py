"""Inventory: how much to order when orders cost, stock costs, and customers do not wait."""

from __future__ import annotations

from spanrl.envs.env import Env, Outcome
from spanrl.options import require

DEMAND = (0.3, 0.3, 0.2, 0.1, 0.1)
"""Probabilities of a demand of 0, 1, … in a day."""


def inventory(
    capacity: int = 6, fixed_cost: float = 1.0, unit_cost: float = 0.5, holding: float = 0.2, price: float = 2.0
) -> Env:
    """Return a stock: what to order, when customers do not wait?

    States:
        The stock in the morning, 0 … capacity.
    Actions:
        order 0, order 1, …: as many as fit.
    Transitions:
        The order arrives at once; then the day's demand is 0, 1, 2, 3, 4 with probabilities .3, .3, .2, .1, .1. What is
        not in stock is not sold, and the customer is lost.
    Rewards:
        The expected profit of the day: price times expected sales, less fixed_cost for an order and unit_cost per
        piece, less holding per piece in stock after the order; scaled to [0, 1] by the smallest and the largest one;
        fixed.
    Start:
        0, nothing in stock.
    Constants:
        S = 7, A = 7, g* = 0.756843, sp(h*) = 0.87154, D = 5.839.
    Args:
        capacity: the largest stock, 1 to 300.
        fixed_cost, unit_cost, holding: costs, ≥ 0.
        price: of one piece, > 0.
    Source:
        Scarf 1960; Puterman 1994, Section 3.2. The numbers are ours.
    """
    who = "inventory"
    require(1 <= capacity <= 300, who, "capacity must lie in 1..300", capacity, "The default is 6.")
    for name, cost in (("fixed_cost", fixed_cost), ("unit_cost", unit_cost), ("holding", holding)):
        require(0 <= cost <= 1e6, who, f"{name} must lie in [0, 1e6]", cost, "Leave it out for its default.")
    require(0 < price <= 1e6, who, "price must lie in (0, 1e6]", price, "The default is 2.")
    profit = {}
    for stock in range(capacity + 1):
        for order in range(capacity - stock + 1):
            filled = stock + order
            sales = sum(p * min(filled, demand) for demand, p in enumerate(DEMAND))
            profit[stock, order] = price * sales - fixed_cost * (order > 0) - unit_cost * order - holding * filled
    low = min(profit.values())
    spread = max(profit.values()) - low or 1.0  # 1 where every pair earns the same
    outcomes = {
        (stock, order): [
            Outcome(p, max(stock + order - demand, 0), (money - low) / spread) for demand, p in enumerate(DEMAND)
        ]
        for (stock, order), money in profit.items()
    }
    names = range(capacity + 1)
    return Env.from_outcomes(outcomes, state_names=names, action_names=[f"order {a}" for a in names])
