"""The options of :func:`spanrl.solve`, checked without solving."""

from __future__ import annotations

from math import inf, nan
from numbers import Integral, Real

from spanrl.errors import OptionError
from spanrl.models import checks
from spanrl.models.mdp import MDP
from spanrl.planning.problem import Model, check_model

METHODS = ("auto", "value-iteration", "modified-policy-iteration", "policy-iteration")


def check_options(
    model: Model,
    c: float,
    tol: float,
    sense: str,
    method: str,
    ref_state: int = 0,
    damping: float | None = None,
    contraction: float | None = None,
    policy: str = "mixture",
    max_sweeps: int = 1,
    on_fail: str = "raise",
    threads: int = 1,
    memory: float | None = None,
) -> None:
    """Check the options of :func:`solve` without solving, so that a wrong one is reported before anything is compiled."""
    check_model("solve", model, sense)
    checks.span_bound("solve", c)
    if method not in METHODS:
        raise OptionError(f"solve: method must be one of {', '.join(METHODS)}; got {method!r}.")
    if method == "policy-iteration" and not (isinstance(model, MDP) and c == inf):
        raise OptionError(
            "solve: method 'policy-iteration' works for an MDP without a span bound; use 'auto' for the rest."
        )
    if not 0 < _real(tol) < inf:
        raise OptionError(f"solve: tol must be a finite number > 0; got {tol!r}. Use 1e-6, say.")
    if isinstance(ref_state, bool) or not (isinstance(ref_state, Integral) and 0 <= ref_state < model.n_states):
        raise OptionError(f"solve: ref_state must be a state in 0..{model.n_states - 1}; got {ref_state!r}.")
    if damping is not None and not 0 < _real(damping) <= 1:
        raise OptionError(f"solve: damping must lie in (0, 1]; got {damping!r}. Leave it out to have it chosen.")
    if contraction is not None and not 0 <= _real(contraction) < 1:
        raise OptionError(
            f"solve: contraction must lie in [0, 1); got {contraction!r}. Leave it out for the gain bracket alone."
        )
    if contraction is not None and method in ("modified-policy-iteration", "policy-iteration"):
        raise OptionError(
            f"solve: contraction is a rule of value iteration; got method {method!r}. Leave one of them out."
        )
    if policy not in ("mixture", "greedy"):
        raise OptionError(f"solve: policy must be 'mixture' or 'greedy'; got {policy!r}.")
    if not (isinstance(max_sweeps, Integral) and max_sweeps >= 1):
        raise OptionError(f"solve: max_sweeps must be at least 1, a whole number; got {max_sweeps!r}.")
    if on_fail not in ("raise", "return"):
        raise OptionError(f"solve: on_fail must be 'raise' or 'return'; got {on_fail!r}.")
    if isinstance(threads, bool) or not (isinstance(threads, Integral) and threads >= 1):
        raise OptionError(f"solve: threads must be a whole number ≥ 1; got {threads!r}. Leave it out for one thread.")
    if memory is not None and not _real(memory) >= 0:
        raise OptionError(f"solve: memory must be a number of bytes ≥ 0; got {memory!r}. Leave it out for 256 MiB.")


def _real(value: object) -> float:
    """Return a real number as a float, NaN for anything else."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else nan
    except OverflowError:
        return nan
