"""Everything there is to know about a known MDP, in one call."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from spanrl.errors import ModelError, OptionError, SpanrlError
from spanrl.models.costs import flip
from spanrl.models.mdp import MDP
from spanrl.models.solution import Analysis, span
from spanrl.planning.components import classify
from spanrl.planning.diameter import diameter as compute_diameter
from spanrl.planning.direct import DIRECT
from spanrl.planning.multichain import closed_components
from spanrl.planning.operators import policy_chain
from spanrl.planning.policy_iteration import OptimalPolicy, accurate_optimum, differ, solves_directly, unit
from spanrl.planning.problem import mdp_hint
from spanrl.planning.solve import solve

AUTO_DIAMETER = 600
"""Up to this many states the diameter is computed unasked."""

_TOL = 1e-9
_RARE = 1e-6  # a bracket hardly sees what happens more rarely


def analyse(mdp: MDP, *, diameter: str | bool = "auto", progress: bool = False) -> Analysis:
    """Return the communication class, Γ, the optimal gain g*, a bias h* with h* = Lh* − g*, its span, the diameter and an optimal policy.

    In a model with costs gain and bias are costs, and the policy has the lowest.

    h* is normalised as the bias of a policy, P*h* = 0 (``evaluate``), or, where ``solve`` was used, as there: 0 in state 0.

    Args:
        mdp: the model.
        diameter: "auto" computes it for up to 600 states (infinity costs nothing), unless it is too long to be computed accurately; True
            always, with one shortest-path problem per state; False never.
        progress: show a bar on standard error while the diameter is computed.

    Models of up to 1000 states, and larger ones with small factors, are solved by policy iteration: the gain to 1e-9 of the rewards'
    spread, the bias to 1e-8 of its span (or of that spread); others by ``solve``, the gain to 1e-9 of the spread. The diameter is right to
    1e-9 of itself (1e-6 on large models). Where that is out of reach, SpanrlError is raised. Where several optimal policies have different
    recurrent classes h* is not unique: it is then one of the solutions of the optimality equation.

    Returns:
        An :class:`Analysis`.

    Raises:
        ModelError: ``mdp`` is no MDP.
        OptionError: ``diameter`` is none of the three.
        SpanrlError: the accuracy is out of reach.

    >>> import spanrl
    >>> result = analyse(spanrl.make("three-state[delta=0.005]").mdp)
    >>> result.classification, round(result.gain, 6), round(result.span, 6), round(result.diameter, 6)
    ('communicating', 0.666667, 1.005025, 200.0)
    """
    if not isinstance(mdp, MDP):
        raise ModelError(f"analyse: the model must be an MDP; got {type(mdp).__name__}.{mdp_hint(mdp)}")
    if diameter not in ("auto", True, False):
        raise OptionError(f"analyse: diameter must be 'auto', True or False; got {diameter!r}.")
    kind = classify(mdp)
    optimum = _exactly(mdp, kind) if kind == "multichain" or solves_directly(mdp) else None
    if optimum is None:
        solution = solve(mdp, tol=_TOL * unit(mdp.reward))
        _check_links(policy_chain(mdp, solution.policy)[0])
        gain_of_all = np.full(mdp.n_states, flip(mdp.costs, solution.gain))
        optimum = OptimalPolicy(solution.policy, gain_of_all, flip(mdp.costs, solution.bias))
    gains, bias, policy = flip(mdp.costs, optimum.gain), flip(mdp.costs, optimum.bias), optimum.policy
    gain = None if kind == "multichain" else float(gains.mean())
    return Analysis(
        n_states=mdp.n_states,
        n_actions=mdp.n_actions,
        n_pairs=mdp.n_pairs,
        max_support=mdp.max_support,
        classification=kind,
        gain=gain,
        gains=np.full(mdp.n_states, gain) if gain is not None else gains,
        bias=bias,
        span=None if differ(gains, mdp.reward) else span(bias),
        diameter=_diameter(mdp, kind, diameter, progress),
        policy=policy,
        costs=mdp.costs,
    )


def _check_links(P: Any) -> None:
    """Raise where a bracket of the gain says little of the bias: where states hang together by very rare transitions alone."""
    n, P = P.shape[0], P.tocsr()
    start, end = np.repeat(np.arange(n), np.diff(P.indptr)), P.indices
    common = P.data >= _RARE
    if closed_components(n, start[common], end[common])[1].size > closed_components(n, start, end)[1].size:
        raise SpanrlError(
            f"analyse: {n} states of a chain hang together only by transitions with probabilities below {_RARE:g}: too many states "
            "to solve directly, too rare for the bias to be certain. Leave such transitions out, or aggregate the states between them."
        )


def _exactly(mdp: MDP, kind: str) -> OptimalPolicy | None:
    """Return what policy iteration finds; None where the model is too large for more digits and the solver may know better."""
    try:
        optimum = accurate_optimum(mdp, constant=kind != "multichain")
    except SpanrlError:
        if kind == "multichain" or mdp.n_states <= DIRECT:
            raise
        return None
    return None if kind != "multichain" and differ(optimum.gain, mdp.reward) else optimum


def _diameter(mdp: MDP, kind: str, wanted: str | bool, progress: bool) -> float | None:
    if wanted is False:
        return None
    if kind != "communicating":
        return inf
    if wanted == "auto" and mdp.n_states > AUTO_DIAMETER:
        return None
    try:
        return compute_diameter(mdp, progress=progress, patient=wanted is True)
    except SpanrlError:
        if wanted == "auto":
            return None
        raise
