"""A model from two functions: what may be done in a state, and what may happen then.

States are found breadth first from the start, and numbered as they are found; actions are numbered as they first appear. The loop over
outcomes is the whole cost, so each pair takes a fixed number of Python steps, whatever the number of its outcomes; numbers are checked at
the end, in arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import islice
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from spanrl.errors import ModelError
from spanrl.models import checks
from spanrl.models.checks import Array
from spanrl.models.costs import declared_ends
from spanrl.models.labels import StateNames, is_hashable, shown
from spanrl.models.rows import mean_rewards
from spanrl.terminal import counting

if TYPE_CHECKING:
    from spanrl.models.mdp import MDP

_WHO = "MDP.from_function"
_MOST = 10**6  # outcomes of a pair, and actions
_ORDERS = 10**4  # lists of actions that are remembered
_BLOCK = 10**4  # outcomes that are kept in plain lists, which are faster than arrays and ten times as large


def from_function(
    cls: type[MDP],
    start: Any,
    actions: Callable[[Any], Iterable[Hashable]],
    outcomes: Callable[[Any, Any], Iterable[tuple[float, Any, float]]],
    *,
    r_min: float | None = None,
    r_max: float | None = None,
    costs: bool = False,
    max_states: int = 10**6,
    progress: bool = False,
) -> MDP:
    """Build from functions: every state that can be reached from the start is found, and keeps its name.

    Args:
        start: a state; or a list of states, all equally likely; or a dict {state: probability}. A state is any hashable.
        actions: ``actions(state)`` lists what is allowed there, in the same order each time; an action is any hashable.
        outcomes: ``outcomes(state, action)`` lists or yields (probability, next state, reward). The reward of a pair is the mean over its
            outcomes; the same next state may come several times.
        r_min, r_max, costs: as in :meth:`from_pairs`; with ``costs`` the numbers are costs.
        max_states: raise an error when more states than this are reached.
        progress: show a bar on standard error where it takes longer than a second.

    Returns:
        An :class:`MDP` whose states are numbered in the order in which they are found, breadth first, and whose actions are numbered in
        the order of their first appearance.

    Raises:
        ModelError: a state has no action, an outcome is not what it must be, probabilities do not sum to 1 within 1e-8, or there are
            too many states; the message names state and action. What the functions themselves raise passes, with a note that names them.

    A machine that wears down and costs more each time, until it is replaced for 25:

    >>> from spanrl import MDP
    >>> def actions(age):
    ...     return ["keep", "replace"] if age else ["keep"]
    >>> def outcomes(age, action):
    ...     if action == "replace":
    ...         return [(1.0, 0, 25.0)]
    ...     return [(0.6, age, 5.0 * age), (0.4, min(age + 1, 2), 5.0 * age)]
    >>> mdp = MDP.from_function(0, actions, outcomes, costs=True)
    >>> print(mdp)
    MDP: 3 states, 2 actions, 5 pairs, 7 transitions
    successors of a pair: at most 2
    costs in [0, 25], from 0 to 25
    start: 0
    actions: keep, replace
    """
    for name, function in (("actions", actions), ("outcomes", outcomes)):
        if not callable(function):
            raise ModelError(f"{_WHO}: {name} must be a function; got {type(function).__name__}.")
    check_limit(_WHO, max_states)
    begins = start_states(_WHO, start)
    if len(begins) > max_states:
        raise ModelError(
            f"{_WHO}: at most {max_states:,} states may be reached (max_states); start has {len(begins):,}."
        )
    found = _Exploration(list(begins), int(max_states))
    with counting("states", show=bool(progress)) as tell:
        found.run(actions, outcomes, tell)
    pair_ptr, action, ptr = (
        np.frombuffer(part, dtype=np.int64) for part in (found.pair_ptr, found.action, found.succ_ptr)
    )
    _check_lengths(found, ptr)
    prob, reward = (np.frombuffer(part, dtype=np.float64) for part in (found.prob, found.reward))
    _check_range(found, ptr, prob, reward, declared_ends(_WHO, r_min, r_max))
    first = np.zeros(pair_ptr.size - 1)
    first[: len(begins)] = list(begins.values())
    return cls.from_pairs(
        np.repeat(np.arange(first.size), np.diff(pair_ptr)),
        action,
        ptr,
        np.frombuffer(found.succ, dtype=np.uint32),
        prob,
        mean_rewards(ptr, prob, reward),
        r_min=r_min,
        r_max=r_max,
        costs=costs,
        start=first,
        state_names=StateNames(found.states),
        action_names=found.action_names,
    )


def _check_lengths(found: _Exploration, ptr: Array) -> None:
    """Check that every pair has outcomes, and not so many that they may have been cut."""
    lengths = np.diff(ptr)
    bad = (lengths == 0) | (lengths >= _MOST)
    if not bad.any():
        return
    i = int(np.argmax(bad))
    rule = "must be at least one; got none" if lengths[i] == 0 else f"must be below {_MOST:,}; these may have no end"
    raise _fault(*found.pair(i), rule, _SHAPE)


def _check_range(found: _Exploration, ptr: Array, prob: Array, reward: Array, ends: tuple[float, float]) -> None:
    """Check that everything that may be paid lies in the range that was declared, not only the means."""
    low, high = ends
    bad = (prob > 0) & ((reward < low - checks.ROUNDING) | (reward > high + checks.ROUNDING))
    if bad.any():
        j = int(np.argmax(bad))
        rule = f"must pay or cost within [r_min, r_max] = [{low:g}, {high:g}]; one is {reward[j]:.12g}"
        raise _fault(*found.pair(checks.pair_of(ptr, j)), rule, "Pass another r_min or r_max.")


class _TooManyError(Exception):
    """One state more than allowed."""


class _Numbers(dict[Any, int]):
    """The numbers of names, given in the order in which these are first asked for."""

    def __init__(self, names: list[Any], most: int) -> None:
        """Append new names to ``names``, up to ``most``."""
        super().__init__()
        self._names, self._most = names, most

    def __missing__(self, name: Any) -> int:
        """Give the next number."""
        number = len(self._names)
        if number >= self._most:
            raise _TooManyError
        self[name] = number
        self._names.append(name)
        return number


class _Exploration:
    """The states and rows found so far."""

    def __init__(self, start: list[Any], most: int) -> None:
        self.states: list[Any] = []
        self._most = most
        self._number = _Numbers(self.states, most)
        self.action_names: list[Any] = []
        self._action_number = _Numbers(self.action_names, _MOST)
        self._orders: dict[tuple[Any, ...], tuple[tuple[Any, ...], list[int]]] = {}
        self.pair_ptr, self.action = array("q", [0]), array("q")
        self.succ_ptr, self.succ = array("q", [0]), array("I")
        self.prob, self.reward = array("d"), array("d")
        self._block: tuple[list[int], list[float], list[float]] = [], [], []
        for state in start:
            _ = self._number[state]

    def run(self, actions: Any, outcomes: Any, tell: Callable[[int, int], None] | None) -> None:
        """Ask for the outcomes of every pair; the list of states grows meanwhile."""
        number, orders, action = self._number, self._orders, None
        succ, prob, reward = self._block  # local names and plain lists: this loop is what everything costs
        add_succ, add_prob, add_reward = succ.append, prob.append, reward.append
        end_pair, end_state, add_actions = self.succ_ptr.append, self.pair_ptr.append, self.action.extend
        n_pairs = done = 0
        try:
            for s, state in enumerate(self.states):
                action = None
                came = actions(state)
                listed = came if type(came) is tuple else _listed(came, state)
                allowed, numbers = orders.get(listed) or self._in_order(listed, state)
                for action in allowed:
                    came = outcomes(state, action)
                    for p, next_state, r in came if type(came) is list else islice(came, _MOST):
                        add_succ(number[next_state])
                        add_prob(p)
                        add_reward(r)
                    end_pair(done + len(succ))
                add_actions(numbers)
                n_pairs += len(numbers)
                end_state(n_pairs)
                if len(succ) > _BLOCK:
                    done += len(succ)
                    self._store(outcomes)
                    if tell is not None:
                        tell(s, len(self.states))
            self._store(outcomes)
        except _TooManyError:
            raise ModelError(
                f"{_WHO}: at most {self._most:,} states may be reached (max_states); {_named(state, action)} leads to one more. "
                "Raise max_states, or bound the states in outcomes."
            ) from None
        except ModelError:
            raise
        except Exception as error:
            if (
                error.__traceback__ is not None and error.__traceback__.tb_next is None
            ):  # in this loop, not in a function of the user
                raise _explained(outcomes, state, action, error) from None
            error.add_note(f"{_WHO}: raised for {_named(state, action)}.")
            raise

    def pair(self, i: int) -> tuple[Any, Any]:
        """Return state and action of pair i."""
        s = int(np.searchsorted(np.array(self.pair_ptr), i, side="right")) - 1
        return self.states[s], self.action_names[self.action[i]]

    def _store(self, outcomes: Any) -> None:
        """Move the block of plain lists into the arrays."""
        succ, prob, reward = self._block
        try:
            self.prob.extend(prob)
            self.reward.extend(reward)
        except (TypeError, ValueError, OverflowError) as error:
            bad = next(j for j, pair in enumerate(zip(prob, reward, strict=True)) if not all(map(_is_number, pair)))
            i = int(np.searchsorted(np.array(self.succ_ptr), len(self.succ) + bad, side="right")) - 1
            raise _explained(outcomes, *self.pair(i), error) from None
        self.succ.extend(succ)
        for part in self._block:
            part.clear()

    def _in_order(self, listed: tuple[Any, ...], state: Any) -> tuple[tuple[Any, ...], list[int]]:
        """Return the actions of a state in the order of their numbers, and these."""
        try:
            numbers = [self._action_number[action] for action in listed]
        except (TypeError, _TooManyError) as error:
            rule, remedy = (
                f"must be at most {_MOST:,} in all; these may have no end",
                "Return a list of the actions allowed.",
            )
            if isinstance(error, TypeError):
                rule, remedy = f"must be hashable; got {shown(list(listed[:4]))}", "Name them by text."
            raise _fault(state, None, rule, remedy) from None
        if not numbers or len(set(numbers)) < len(numbers):
            rule = "must be different" if numbers else "must be at least one"
            raise _fault(state, None, f"{rule}; got {shown(list(listed[:20]))}", "List each action once.")
        numbers.sort()
        order = tuple(self.action_names[a] for a in numbers), numbers
        if len(self._orders) < _ORDERS:
            self._orders[listed] = order
        return order


def _listed(came: Any, state: Any) -> tuple[Any, ...]:
    """Return the actions that a function lists."""
    if isinstance(came, (str, set, frozenset)) or not isinstance(came, Iterable):
        raise _fault(state, None, f"must be a list; got {shown(came)}", "Return a list or a tuple of actions.")
    return tuple(islice(came, _MOST + 1))


def _explained(outcomes: Any, state: Any, action: Any, error: Exception) -> ModelError:
    """Return the error for outcomes, or actions, that the loop could not read, which names the first; they are asked for once more."""
    if action is None:
        return _fault(state, None, "must be hashable", "Name them by text, numbers or tuples of these.")
    came = outcomes(state, action)
    if not isinstance(came, Iterable):
        return _fault(state, action, f"must be listed or yielded; got {shown(came)}", _SHAPE)
    for k, row in enumerate(islice(came, _MOST)):
        if not isinstance(row, (tuple, list)) or len(row) != 3:
            return _fault(state, action, f"must be triples; outcome {k} is {shown(row)}", _SHAPE)
        p, next_state, r = row
        for what, number in (("probability", p), ("reward", r)):
            if not _is_number(number):
                return _fault(state, action, f"must have numbers; the {what} of outcome {k} is {shown(number)}", _SHAPE)
        if not is_hashable(next_state):
            remedy = "Use text, numbers or tuples of these."
            return _fault(
                state, action, f"must lead to hashable states; outcome {k} leads to {shown(next_state)}", remedy
            )
    return _fault(state, action, f"must be triples, the same each time ({error})", _SHAPE)


_SHAPE = "An outcome is (probability, next state, reward)."


def _fault(state: Any, action: Any, rule: str, remedy: str) -> ModelError:
    what = "actions" if action is None else "outcomes"
    return ModelError(f"{_WHO}: {what} of {_named(state, action)} {rule}. {remedy}")


def _named(state: Any, action: Any) -> str:
    return f"state {shown(state)}" + ("" if action is None else f", action {shown(action)}")


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, str)


def check_limit(who: str, max_states: Any) -> None:
    """Check a limit on the number of states."""
    if isinstance(max_states, bool) or not isinstance(max_states, Integral) or int(max_states) < 1:
        raise ModelError(f"{who}: max_states must be a whole number ≥ 1; got {max_states!r}.")


def start_states(who: str, start: Any) -> dict[Any, float]:
    """Return the start states and their probabilities."""
    rule = f"{who}: start must be a state, a list of states, or a dict of states and probabilities"
    if isinstance(start, Mapping):
        begins = dict(start)
        wrong = next((p for p in begins.values() if not _is_number(p)), None)
        if wrong is not None:
            raise ModelError(f"{rule}; got the probability {shown(wrong)}.")
    elif isinstance(start, list):
        odd = next((state for state in start if not is_hashable(state)), None)
        if odd is not None:
            raise ModelError(f"{rule}; {shown(odd)} is not hashable. Use text, numbers or tuples of these.")
        begins = {state: 1.0 / len(start) for state in start}
        if len(begins) < len(start):
            raise ModelError(f"{rule}; a state comes twice in {shown(start)}.")
    elif is_hashable(start):
        begins = {start: 1.0}
    else:
        raise ModelError(f"{rule}; got {shown(start)}, which is not hashable. Use text, numbers or tuples of these.")
    if not begins:
        raise ModelError(f"{rule}; got none.")
    return {state: float(p) for state, p in begins.items()}
