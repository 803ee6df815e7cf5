"""The MDP behind the lower bound on the regret: one good action among many copies of a slow two-state chain."""

from __future__ import annotations

from spanrl.envs.env import Env, Outcome
from spanrl.options import require


def jaksch_lower_bound(n_copies: int = 5, n_actions: int = 3, diameter: float = 40.0, epsilon: float = 0.05) -> Env:
    """Return many slow chains, one good action: hard for every agent.

    States:
        low 0, high 0, low 1, high 1, …: two per copy.
    Actions:
        a0, a1, …, the A' actions of the chains; up and down 0, down 1, …, which join the low states in an A'-ary tree
        with root low 0.
    Transitions:
        With δ = 4/diameter, each a leads from low to high and from high to low with probability δ, otherwise nothing
        changes; but the last a of the last copy leads from low to high with probability δ + ε. up leads from a low
        state to its parent, down i to its child i.
    Rewards:
        1 in high states, 0 in low ones, fixed.
    Start:
        low 0.
    Constants:
        S = 10, A = 7, g* = 0.6, sp(h*) = 5.8, D = 23. In general g* = (δ + ε)/(2δ + ε) and sp(h*) = 1/(2δ + ε) +
        g*·(the longest way in the tree to the last copy); D = 2/δ + the longest way to another copy.
    Args:
        n_copies: k, 1 to 1000.
        n_actions: A', 2 to 100.
        diameter: at least 8; δ = 4/diameter. The bound that the paper's D has to meet; the true one is smaller.
        epsilon: ε in (0, δ], how much better the good action is.
    Source:
        Jaksch, Ortner & Auer, JMLR 2010, Section 6: there k = ⌊S/2⌋, A' = ⌊(A − 1)/2⌋, and ε shrinks with the horizon.
    """
    who = "jaksch-lower-bound"
    require(1 <= n_copies <= 1000, who, "n_copies must lie in 1..1000", n_copies, "The default is 5.")
    require(2 <= n_actions <= 100, who, "n_actions must lie in 2..100", n_actions, "The default is 3.")
    require(8 <= diameter <= 1e12, who, "diameter must lie in [8, 1e12]", diameter, "The default is 40.")
    delta = 4 / diameter
    require(0 < epsilon <= delta, who, f"epsilon must lie in (0, {delta:g}]", epsilon, "It is at most 4/diameter.")
    up, outcomes = n_actions, {}
    for copy in range(n_copies):
        low, high = 2 * copy, 2 * copy + 1
        for a in range(n_actions):
            is_good = copy == n_copies - 1 and a == n_actions - 1
            rises = delta + epsilon if is_good else delta
            outcomes[low, a] = [Outcome(rises, high, 0.0), Outcome(1 - rises, low, 0.0)]
            outcomes[high, a] = [Outcome(delta, low, 1.0), Outcome(1 - delta, high, 1.0)]
        if copy > 0:
            parent, place = divmod(copy - 1, n_actions)
            outcomes[low, up] = [Outcome(1.0, 2 * parent, 0.0)]
            outcomes[2 * parent, up + 1 + place] = [Outcome(1.0, low, 0.0)]
    return Env.from_outcomes(
        outcomes,
        n_actions=2 * n_actions + 1,
        state_names=[f"{level} {copy}" for copy in range(n_copies) for level in ("low", "high")],
        action_names=[f"a{a}" for a in range(n_actions)] + ["up"] + [f"down {a}" for a in range(n_actions)],
    )
