"""The solver: one core for plain and bounded MDPs, with or without a bound on the span.

Let F be L, T_c = Γ_c L with a span bound c, or Proj_d L with difference constraints d (:mod:`spanrl.kernels.projection`). F is monotone and
F(v + λe) = Fv + λe, so for **any** v

    min(Fv − v) ≤ g⁺ ≤ max(Fv − v),

where Fh⁺ = h⁺ + g⁺e. (For F = L this needs an optimal gain that is the same in all states.) The solver iterates until this
bracket is at most ``tol`` wide; nothing else is a stopping rule, so that warm starts, damping and rough evaluations are safe.

* *value iteration*: v ← Fv, the paper's ScOpt (Fig. 3) and EVI. Where the bracket stalls it is damped, v ← (1−a)v + a·Fv: F is
  non-expansive in span, so the bracket never widens, and with 0 < a < 1 it converges also where plain iteration cycles (App. B.2).
* *modified policy iteration*: a full sweep chooses a policy, and sweeps over it alone go on from there.
* *policy iteration*: exact, for plain MDPs without a span bound (:mod:`spanrl.planning.policy_iteration`).
* *auto*: rounds of policy improvement, each policy evaluated by sweeps or by a linear system, whichever is predicted to be the cheaper
  (:mod:`spanrl.planning.rounds`, and docs/solver.md); where they do not close the bracket, value iteration.

``contraction=γ`` asks for the paper's own rule, sp(v_{n+1} − v_n) + 2γⁿ/(1−γ)·sp(v₁ − v₀) ≤ ε, which only costs time.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spanrl.errors import MultichainError, NotConvergedError, OptionError, SpanrlError
from spanrl.models import checks
from spanrl.models.bounded import BoundedMDP
from spanrl.models.checks import immutable
from spanrl.models.costs import flip, flip_ends
from spanrl.models.labels import name_in_error
from spanrl.models.mdp import MDP
from spanrl.models.solution import Solution, span
from spanrl.planning.components import classify
from spanrl.planning.differences import BiasDifferences
from spanrl.planning.iteration import Iteration
from spanrl.planning.multichain import gain_gap
from spanrl.planning.operators import clip_span, decide
from spanrl.planning.options import check_options
from spanrl.planning.policy_iteration import differ, policy_iteration, solves_directly
from spanrl.planning.problem import Model, Vector, prepare
from spanrl.planning.progress import watching
from spanrl.planning.rounds import Rounds
from spanrl.planning.threads import Sweeper

_LEAST_MEMORY = 2.0**28  # of factors, in bytes


def solve(
    model: Model,
    *,
    span_bound: float = inf,
    differences: BiasDifferences | ArrayLike | None = None,
    tol: float = 1e-6,
    sense: str = "optimistic",
    method: str = "auto",
    v_init: ArrayLike | None = None,
    ref_state: int = 0,
    damping: float | None = None,
    contraction: float | None = None,
    policy: str = "mixture",
    max_sweeps: int = 10**7,
    on_fail: str = "raise",
    threads: int = 1,
    memory: float | None = None,
    progress: bool = False,
) -> Solution:
    """Find the gain g⁺ and a policy, with a certificate: ``gain_bounds[1] - gain_bounds[0] <= tol``.

    In a model with costs gain, bounds and bias are costs, and so are ``v_init`` and ``differences``; the policy has the lowest cost.

    Args:
        model: an ``MDP`` or a ``BoundedMDP``.
        span_bound: c ≥ 0, the bound on the span of the bias; infinity for none.
        differences: constraints h(s) − h(s') ≤ d(s, s') on the bias, a :class:`spanrl.BiasDifferences` or an array [S, S], S ≤ 5 000.
            Solves for Proj_d L instead of Γ_c L, by value iteration, with S² steps more per sweep and the greedy policy alone. Together
            with ``span_bound`` both hold.
        tol: width of the gain bracket at which to stop, > 0, in units of reward.
        sense: which end of the sets of a bounded MDP counts: "optimistic" (the best model), "pessimistic" (the worst).
        method: "auto" chooses by predicted cost; or "value-iteration", "modified-policy-iteration", "policy-iteration".
        v_init: where to start [S]; clipped to span ≤ c. Default 0.
        ref_state: the state whose bias is set to 0.
        damping: a in (0, 1], fixed; default: 1, lowered when the bracket stops narrowing.
        contraction: γ in [0, 1), to stop by the paper's rule; value iteration is then left as the paper has it.
        policy: in truncated states "mixture" (the paper) or "greedy".
        max_sweeps: give up after so many sweeps. A linear system that has begun is solved, and one more sweep certifies what was found.
        on_fail: "raise" a ``NotConvergedError`` that carries the partial solution, or "return" it with ``converged=False``.
        threads: how many threads may share the sweeps of a large model (10⁶ transitions or more; smaller ones are faster with one).
            The result is the same to the last bit.
        memory: bytes that the factors of a linear system may take; where they would take more, they are not made, and where this costs
            much time a warning says what they need. Default: 256 MiB, or as much as the model itself where that is more.
        progress: show a bar on standard error where the solve takes longer than a second.

    Returns:
        A :class:`Solution`. With the mixture and ``feasible``, the extended policy's gain is within tol of g⁺; otherwise it is at
        least g⁺ − tol.

    Raises:
        InputError: an option is out of its range, or the model is none.
        NotConvergedError: the bracket did not close, and ``on_fail`` is "raise"; gains that differ between states are named.

    >>> import spanrl
    >>> solution = solve(spanrl.make("two-state").mdp, span_bound=0.75)
    >>> round(solution.gain, 6), solution.policy.probs.round(4).tolist()
    (0.75, [[1.0, 0.0], [0.1429, 0.8571]])
    """
    c = checks.span_bound("solve", span_bound)
    check_options(
        model, c, tol, sense, method, ref_state, damping, contraction, policy, max_sweeps, on_fail, threads, memory
    )
    bound = _differences(model, differences, c, method, policy)
    begun = perf_counter()
    problem = prepare(model, sense)
    v = np.zeros(problem.n_states)
    if v_init is not None:
        v = flip(model.costs, checks.vector("solve", "v_init", v_init, problem.n_states))
        with np.errstate(over="ignore"):
            if not np.isfinite(v.max() - v.min()):
                raise OptionError("solve: the span of v_init must be finite; it overflows. Scale v_init down.")
        v = clip_span(v - v.min(), c)  # near 0, where numbers are dense
    if bound is not None:
        v = np.array([(v + row).min() for row in bound])
        c = inf  # it is part of the bound
    a, gamma = (None if number is None else float(number) for number in (damping, contraction))
    with Sweeper(int(threads)) as sweeper, watching(progress) as watch:
        iteration = Iteration(
            problem, v.copy(), c, float(tol), int(ref_state), a, gamma, int(max_sweeps), sweeper, watch, bound
        )
        limit = max(_LEAST_MEMORY, problem.n_bytes) if memory is None else float(memory)
        how = _run(model, iteration, method, None if v_init is None else v, limit)
        if v_init is not None and not iteration.over:  # so far off that rounding hides the rest
            iteration.start_anew()
            how = _run(model, iteration, method, None, limit)
        if not (
            np.isfinite(iteration.width) and np.isfinite(iteration.v).all()
        ):  # rewards near the end of the range of numbers
            iteration.certify(np.zeros(problem.n_states))
    solution = _solution(model, iteration, c, policy, sense, how, begun, bound)
    if solution.converged or on_fail == "return":
        return solution
    raise _failure(solution, iteration, how.gains)


def scopt(model: Model, span_bound: float, **options: Any) -> Solution:
    """Solve sup{g^π : sp(h^π) ≤ c} by ScOpt (paper, Fig. 3): :func:`solve` with a span bound.

    Args:
        model: an ``MDP`` or a ``BoundedMDP``.
        span_bound: c ≥ 0.
        options: those of :func:`solve`.

    Returns:
        A :class:`Solution`.

    Raises:
        InputError: an option is out of its range, or the model is none.
        NotConvergedError: the bracket did not close.

    >>> import spanrl
    >>> round(scopt(spanrl.make("two-state").mdp, 0.75).gain, 6)
    0.75
    """
    return solve(model, span_bound=span_bound, **options)


def evi(bounded: BoundedMDP, **options: Any) -> Solution:
    """Solve a bounded-parameter MDP by extended value iteration (paper, Eq. 4): :func:`solve` without a span bound.

    Args:
        bounded: a ``BoundedMDP``.
        options: those of :func:`solve`.

    Returns:
        A :class:`Solution`.

    Raises:
        InputError: an option is out of its range, or the model is none.
        NotConvergedError: the bracket did not close.

    >>> import spanrl
    >>> bounded = spanrl.BoundedMDP.l1_ball(spanrl.make("two-state").mdp, 0.1, 0.0, 1.0)
    >>> round(evi(bounded).gain, 6)
    1.0
    """
    if not isinstance(bounded, BoundedMDP):
        raise OptionError(f"evi: the model must be a BoundedMDP; got {type(bounded).__name__}. Use solve() for an MDP.")
    return solve(bounded, **options)


def gain_curve(model: Model, span_bounds: Sequence[float] | Vector, **options: Any) -> Vector:
    """Return g⁺(c) for each c: what a bound on the span costs. Solutions warm-start each other.

    Args:
        model: an ``MDP`` or a ``BoundedMDP``.
        span_bounds: the values of c, each ≥ 0.
        options: those of :func:`solve`.

    Returns:
        The gains, in the order of ``span_bounds``.

    Raises:
        InputError: a bound or an option is out of its range.
        NotConvergedError: a bracket did not close.

    >>> import spanrl
    >>> gain_curve(spanrl.make("two-state").mdp, [0.5, 0.75, 2.0]).round(6).tolist()
    [0.5, 0.75, 1.0]
    """
    if "v_init" in options or "span_bound" in options:
        raise OptionError("gain_curve: chooses span_bound and v_init itself; leave them out.")
    gains, bias = [], None
    for c in checks.numeric("gain_curve", "span_bounds", span_bounds, (None,)):
        solution = solve(model, span_bound=c, v_init=bias, **options)
        gains.append(solution.gain)
        bias = solution.bias
    return np.array(gains)


class _How(NamedTuple):
    """What was done: the method, the entries of the largest factors, and the gain of each state where these are known to differ."""

    method: str
    factor_size: int = 0
    gains: Vector | None = None


def _run(model: Model, iteration: Iteration, method: str, v: Vector | None, memory: float) -> _How:
    """Iterate by the method; value iteration is the end of all that does not get there by itself."""
    if method == "policy-iteration":
        return _How(method, gains=_solve_directly(model, iteration, v))
    if method == "value-iteration" or iteration.plain_only or iteration.has_differences:
        iteration.run()
        return _How("value-iteration")

    def tell_missed(needed: float) -> None:
        enough = f"{1.25 * needed:.1e}"
        warnings.warn(
            f"solve: the factors of a linear system would save much time, but need about {needed / 1e6:.3g} MB, and memory allows "
            f"{memory / 1e6:.3g} MB. It continues without them; give memory={enough} (spanrl plan: --memory {enough}) to have them.",
            stacklevel=_caller_level(),
        )

    rounds = Rounds(iteration, may_solve=method == "auto", memory=memory, tell_missed=tell_missed)
    if rounds.run():
        gave_up = method == "auto" and not iteration.over and not iteration.is_projected
        may_factorise = memory >= _LEAST_MEMORY  # which bounds those of policy iteration, too
        if gave_up and may_factorise and isinstance(model, MDP) and gain_gap(iteration.problem, iteration.v) is None:
            return _refine(model, iteration, rounds)
        return _How(rounds.method, rounds.factor_size)
    iteration.run()
    return _How("value-iteration", rounds.factor_size)


def _caller_level() -> int:
    """Return the ``stacklevel`` of a warning that points to the caller of this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("spanrl."):
        frame, level = frame.f_back, level + 1
    return level


def _refine(model: MDP, iteration: Iteration, rounds: Rounds) -> _How:
    """Where rounding hides the rest, let policy iteration end the solve; nothing is lost where it does not."""
    v, width = iteration.v.copy(), iteration.width
    if not solves_directly(model):
        return _How(rounds.method, rounds.factor_size)
    gains = _solve_directly(model, iteration, None)
    if iteration.width < width:
        return _How("policy-iteration", rounds.factor_size, gains)
    iteration.certify(v)
    return _How(rounds.method, rounds.factor_size, gains)


def _solve_directly(model: Model, iteration: Iteration, v: Vector | None) -> Vector | None:
    """Go to the bias of an optimal policy and let one plain sweep certify it.

    Returns the gain of each state where these differ in a model in which they can; otherwise None.
    """
    assert isinstance(model, MDP)
    try:
        optimum = policy_iteration(model, v)
    except SpanrlError:  # too ill-conditioned for it
        iteration.certify(iteration.v)
        iteration.at_rounding = not iteration.converged
        return None
    iteration.certify(optimum.bias)
    return optimum.gain if differ(optimum.gain, model.reward) and classify(model) == "multichain" else None


def _differences(
    model: Model, given: BiasDifferences | ArrayLike | None, c: float, method: str, policy: str
) -> Vector | None:
    """Return difference constraints closed with the span bound [S, S], or None."""
    if given is None:
        return None
    if method not in ("auto", "value-iteration"):
        raise OptionError(f"solve: differences need value iteration; got method {method!r}. Leave the method out.")
    if policy != "greedy":
        raise OptionError(f"solve: with differences the policy must be greedy; got {policy!r}. Give policy='greedy'.")
    bounds = BiasDifferences.of(given).within(c, model.n_states)
    return immutable(bounds.T, np.float64) if model.costs else bounds  # −h keeps h(s') − h(s) ≤ d(s, s')


def _solution(
    model: Model, iteration: Iteration, c: float, policy: str, sense: str, how: _How, begun: float, bound: Vector | None
) -> Solution:
    room = max(
        iteration.tol - iteration.width, 0.0
    )  # with ties no wider than this the policy keeps its promise exactly
    problem, v = iteration.problem, iteration.v
    rule = decide(
        model, v, c, policy=policy, sense=sense, tie=room, problem=problem, values=iteration.values, differences=bound
    )
    bias = flip(model.costs, v - v[iteration.s_ref])
    return Solution(
        policy=rule.policy,
        gain=flip(model.costs, (iteration.lo + iteration.hi) / 2),
        gain_bounds=flip_ends(model.costs, iteration.lo, iteration.hi),
        bias=bias,
        span=span(bias),
        sweeps=iteration.sweeps,
        residual=iteration.hi - iteration.lo,
        converged=iteration.converged,
        feasible=bool(rule.feasible.all()),
        truncated=rule.truncated,
        method=how.method,
        seconds=iteration.seconds | {"total": perf_counter() - begun},
        factor_size=how.factor_size,
        _rule=rule,
        costs=model.costs,
    )


def _failure(solution: Solution, iteration: Iteration, gains: Vector | None) -> NotConvergedError:
    """Say why the bracket did not close: the gain differs between states, rounding, or too few sweeps."""
    tol, (low, high) = iteration.tol, solution.gain_bounds
    gap = gain_gap(iteration.problem, iteration.v) if not iteration.is_projected and not iteration.at_rounding else None
    if gains is not None:
        gap = int(np.argmax(gains)), int(np.argmin(gains)), float(gains.max()), float(gains.min())
    if gap is not None:
        better, worse, *ends = gap
        first, last = (name_in_error(solution.state_names, s) for s in (better, worse))
        scale = max(map(abs, ends)) or 1.0
        g_high, g_low = (
            flip(solution.costs, round(end / scale, 9) * scale) for end in ends
        )  # what rounding may be is not worth a digit
        what, least, most = ("cost", "at most", "at least") if solution.costs else ("gain", "at least", "at most")
        return MultichainError(
            f"solve: the optimal {what} is not constant: {least} {g_high:.9g} from state {first}, {most} {g_low:.9g} from state "
            f"{last}. Use analyse() for the gain of each state, or a finite span_bound.",
            solution,
        )
    why = "max_sweeps is reached. Raise max_sweeps or tol"
    if iteration.at_rounding:
        why = "rounding allows no less. Raise tol"
    elif iteration.plain_only:
        why += ", or leave out contraction and damping, so that the solver may choose its own"
    return NotConvergedError(
        f"solve: not converged after {solution.sweeps} sweeps: the {'cost' if solution.costs else 'gain'} is in "
        f"[{low:.9g}, {high:.9g}], wider than tol = {tol:g}; {why}.",
        solution,
    )
