"""Gain and bias of a stationary policy."""

from __future__ import annotations

import numpy as np

from spanrl.errors import ModelError
from spanrl.models.costs import flip
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.models.solution import Evaluation, span
from spanrl.planning.chain import chain_gain_bias
from spanrl.planning.operators import policy_chain
from spanrl.planning.problem import mdp_hint


def evaluate(mdp: MDP, policy: Policy) -> Evaluation:
    """Return gain [S] and bias [S] of any stationary randomised policy, also where it has several recurrent classes.

    Solves g = P_d g and h = r_d − g + P_d h with P*h = 0 (paper, Eq. 1): by sparse factors, or, where these would be large, by iteration.
    Bounds on the error come with either: the gain is right to 1e-9 of the rewards' spread, the bias to 1e-8 of its span (or of that
    spread, where it is more). Both are costs in a model with costs.

    Raises:
        OptionError: ``policy`` is none, or that of another model.
        SpanrlError: that accuracy is out of reach, as on large chains whose probabilities span too many orders of magnitude.

    Args:
        mdp: the model.
        policy: a :class:`spanrl.Policy` for it.

    Returns:
        An :class:`Evaluation`.

    >>> import spanrl
    >>> result = evaluate(spanrl.make("two-state").mdp, spanrl.Policy([[1, 0], [1 / 7, 6 / 7]]))
    >>> result.gain.round(6).tolist(), round(result.span, 6)
    ([0.75, 0.75], 0.75)
    """
    return evaluation(mdp, policy)


def evaluation(mdp: MDP, policy: Policy, who: str = "evaluate", what: str = "the policy") -> Evaluation:
    """Evaluate for ``who``, that says of ``what`` where it cannot be evaluated."""
    if not isinstance(mdp, MDP):
        raise ModelError(f"{who}: the model must be an MDP; got {type(mdp).__name__}.{mdp_hint(mdp)}")
    value = chain_gain_bias(*policy_chain(mdp, policy, who, what))
    gain, bias = (flip(mdp.costs, part.astype(np.float64)) for part in (value.gain, value.bias))
    return Evaluation(gain, bias, span(bias), mdp.state_names, mdp.costs)
