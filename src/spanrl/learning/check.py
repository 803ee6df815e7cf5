"""Check an environment or an agent of one's own: for what users register, and run over our own registries by the tests.

Both functions return None where all is well and otherwise raise an error whose sentence names what is broken. Seeds are fixed, so that a
verdict does not change from call to call.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl import names
from spanrl.agents.learner import Learner
from spanrl.agents.registry import Agent, AnyLearner, agent_id, list_agents, make_agent
from spanrl.agents.stepwise import StepLearner
from spanrl.agents.ucrl import UCRL
from spanrl.envs.env import BERNOULLI, FIXED, Env
from spanrl.envs.registry import list_envs, make
from spanrl.errors import InputError, OptionError, SpanrlError
from spanrl.kernels.jit import interpreted
from spanrl.learning.learn import learn
from spanrl.models.checks import SUM_TOL
from spanrl.models.info import ProblemInfo
from spanrl.models.mdp import MDP
from spanrl.seeding import get_state, streams

Step = tuple[int, int, float]
"""(state, action, reward)."""

_LEVEL = 1e-6
_ROUNDING = 1e-12
_EXPECTED = 5.0
_DRAWS, _FEWEST = 6_000, 16
_STEPS, _INTERPRETED = 400, 60
_SEED = 0


def check_env(env: Env | str) -> None:
    """Check that an environment, or the one of that text, keeps its contract; raise an ``InputError`` where it does not.

    * *Arrays*: read-only and of fitting lengths; every pair has outcomes; probabilities are > 0 and sum to 1 within 1e-12; successors are
      states, laws are known, mean rewards lie in [r_min, r_max].
    * *Model*: averaged over the outcomes, rewards and transitions are those of ``env.mdp`` within 1e-12; ``start`` is a distribution.
    * *Draws*: ``reset`` returns a start state; ``step`` takes every available action, pays a reward in [r_min, r_max], returns a state that
      the table allows, and takes one 64-bit number of the generator; the same seed gives the same draws; the global random states of
      numpy and of Python stay untouched; frequencies of start states and outcomes agree with the table (χ² at level 1e-6, fixed seed).
    * *Learning*: :func:`spanrl.learn` sees what ``step`` gives.
    * *Name*: where ``info.id`` names a registered environment, ``make(info.id)`` gives an equal one with the same id.

    Args:
        env: an environment or its text.

    Raises:
        InputError: it does not keep its contract; the sentence says where.

    >>> check_env("three-state[delta=0.01]")
    """
    table = make(env) if isinstance(env, str) else env
    if not isinstance(table, Env):
        raise OptionError(f"check_env: takes an Env or a text such as 'three-state'; got {type(env).__name__}.")
    who = f"check_env: {table.info.id}"
    _check_arrays(who, table)
    _check_model(who, table)
    with _random_states_kept(who):
        _check_reset(who, table)
        _check_steps(who, table)
    _check_seeds(who, table)
    _check_learning(who, UCRL(), table)
    _check_env_id(who, table)


def check_agent(agent: Agent | str) -> None:
    """Check that an agent, or the one of that text, keeps its contract; raise an ``InputError`` where it does not.

    * *Configuration*: fields cannot be set, and stay what they were while learners run; the same text gives equal agents; where the
      agent is of a registered class, its canonical text gives an equal one.
    * *Learners*: ``start(info, rng)`` returns something with ``act`` and ``observe``, which plays available actions only, in a random
      problem with ragged action sets and rewards in [−1, 2], and in one of a single pair; equal generators give equal decisions, also
      where two learners of one agent take turns; the global random states of numpy and of Python stay untouched.
    * *Learning*: :func:`spanrl.learn` collects what the same steps by hand collect.
    * *Estimates*: what a learner of ours plans on is a closed set, as :class:`spanrl.kernels.plan_workspace.Sets` asks; 60 steps are played
      interpreted to see it.
    * Learners of ours also refuse ``observe`` before ``act``, and ``act`` twice.

    Args:
        agent: an agent or its text.

    Raises:
        InputError: it does not keep its contract; the sentence says where.

    >>> check_agent("scal[span_bound=2]")
    """
    chosen = make_agent(agent) if isinstance(agent, str) else agent
    if isinstance(chosen, type) or not isinstance(chosen, Agent):
        raise OptionError(
            f"check_agent: takes an agent with start(info, rng), or a text such as 'ucrl'; got {agent!r}."
        )
    who = f"check_agent: {agent_id(chosen)}"
    if isinstance(agent, str):
        broken = f"the text {agent!r} must give equal agents; compare by fields (a dataclass does)"
        _require(make_agent(agent) == chosen, who, broken)
    _check_frozen(who, chosen)
    before = deepcopy(_fields(chosen))
    comparable = [name for name, value in _fields(chosen).items() if _equal(value, before[name])]
    for env in (_ragged_env(), _smallest_env()):
        with _random_states_kept(who):
            _check_decisions(who, chosen, env)
        _check_learning(who, chosen, env)
        _check_estimate(who, chosen, env)
    changed = [name for name in comparable if not _equal(getattr(chosen, name), before[name])]
    broken = f"the fields {changed} changed while its learners ran; keep what changes in the learner"
    _require(not changed, who, broken)
    _check_refusals(who, chosen)
    if any(chosen.__class__ is entry.load() for entry in list_agents()):
        text = agent_id(chosen)
        _require(make_agent(text) == chosen, who, f"its canonical text {text!r} must give an equal agent")


def _require(holds: Any, who: str, broken: str) -> None:
    if not holds:
        raise InputError(f"{who}: {broken}.")


def _check_arrays(who: str, env: Env) -> None:
    mdp = env.mdp
    _require(isinstance(mdp, MDP), who, f"mdp must be an MDP; it is of type {type(mdp).__name__}")
    cut = ("out_ends",) if env.step_limit is not None else ()
    for name in ("out_ptr", "out_prob", "out_succ", "out_reward", "out_law", *cut):
        array = getattr(env, name)
        fits = isinstance(array, np.ndarray) and array.ndim == 1 and not array.flags.writeable
        _require(fits, who, f"{name} must be a read-only vector; use Env.from_outcomes")
    sizes = {env.out_prob.size, env.out_succ.size, env.out_reward.size, env.out_law.size}
    ptr = env.out_ptr
    fits = len(sizes) == 1 and ptr.size == mdp.n_pairs + 1 and ptr[0] == 0 and ptr[-1] in sizes
    broken = (
        f"the outcome arrays do not fit together: lengths {sorted(sizes)}, {ptr.size} pointers for {mdp.n_pairs} pairs"
    )
    _require(fits, who, broken)
    low, high = mdp.r_min, mdp.r_max
    within = (env.out_reward >= low) & (env.out_reward <= high)
    for holds, rule in (
        (np.diff(ptr) > 0, "every pair must have an outcome"),
        (env.out_prob > 0, "the probability of an outcome must be above 0"),
        (env.out_succ < mdp.n_states, f"the successor of an outcome must be a state in 0..{mdp.n_states - 1}"),
        (np.isin(env.out_law, (FIXED, BERNOULLI)), "the law of an outcome must be 0 (fixed) or 1 (Bernoulli)"),
        (within, f"the mean reward of an outcome must lie in [{low:g}, {high:g}]"),
    ):
        _require(holds.all(), who, f"{rule}; entry {int(np.argmin(holds))} is the first of {np.sum(~holds)} that fail")


def _check_model(who: str, env: Env) -> None:
    mdp = env.mdp
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(env.out_ptr))

    def agree(found: Any, wanted: Any, what: str, unit: float = 1.0) -> None:
        off = np.abs(found - wanted)
        i = int(np.argmax(off))
        came = f"{what} of the pair {mdp.where(i)} is {found[i]:.15g} by the outcomes; it must be {wanted[i]:.15g}"
        _require(off[i] <= _ROUNDING * unit, who, came)

    agree(np.bincount(pair, env.out_prob, mdp.n_pairs), np.ones(mdp.n_pairs), "the total probability")
    unit = max(1.0, abs(mdp.r_min), abs(mdp.r_max))
    agree(np.bincount(pair, env.out_prob * env.out_reward, mdp.n_pairs), mdp.reward, "the mean reward", unit)
    owner = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
    keys = np.concatenate((pair * mdp.n_states + env.out_succ, owner * mdp.n_states + mdp.succ))
    gap = np.concatenate((env.out_prob, -mdp.prob))
    unique, group = np.unique(keys, return_inverse=True)
    off = np.abs(np.bincount(group, gap))
    i, s = divmod(int(unique[np.argmax(off)]), mdp.n_states)
    broken = f"the probability of {mdp.where(i)} → {s} by the outcomes differs from that of mdp by {off.max():.3g}"
    _require(off.max() <= _ROUNDING, who, broken)
    start = mdp.start
    fits = np.isfinite(start).all() and (start >= 0).all() and abs(start.sum() - 1.0) <= SUM_TOL
    _require(fits, who, f"mdp.start must be a distribution over states; it sums to {start.sum():.12g}")


def _check_reset(who: str, env: Env) -> None:
    rng, mdp = streams(_SEED)[0], env.mdp
    seen: Counter[int] = Counter()
    for _ in range(1000):
        state = env.reset(rng)
        fits = _is_whole(state) and 0 <= state < mdp.n_states and mdp.start[state] > 0
        _require(fits, who, f"reset must return a state with a positive start probability; it returned {state!r}")
        seen[int(state)] += 1
    states = np.flatnonzero(mdp.start)
    _require_plausible(who, "start states", [(np.array([seen[s] for s in states.tolist()]), mdp.start[states])])


def _check_steps(who: str, env: Env) -> None:
    rng, plain, mdp = streams(_SEED)[0], streams(_SEED)[0], env.mdp
    times = max(_FEWEST, _DRAWS // mdp.n_pairs)
    tables = []
    for i, (s, a) in enumerate(zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True)):
        possible, seen = _possible(env, s, a), Counter[tuple[float, int]]()
        for _ in range(times):
            reward, succ = env.step(s, a, rng)
            inside = isinstance(reward, Real) and mdp.r_min <= reward <= mdp.r_max
            broken = f"step{mdp.where(i)} must pay a reward in [{mdp.r_min:g}, {mdp.r_max:g}]; it paid {reward!r}"
            _require(inside, who, broken)
            known = _is_whole(succ) and (reward, succ) in possible
            broken = f"step{mdp.where(i)} gave reward {reward!r} and state {succ!r}, which is none of its outcomes"
            _require(known, who, broken)
            seen[float(reward), int(succ)] += 1
        tables.append((np.array([seen[key] for key in possible]), np.array(list(possible.values()))))
    _require_plausible(who, "outcomes", tables)
    plain.bit_generator.random_raw(times * mdp.n_pairs)
    broken = "step must take one 64-bit number of the generator, as learn does"
    _require((get_state(rng) == get_state(plain)).all(), who, broken)


def _possible(env: Env, state: int, action: int) -> dict[tuple[float, int], float]:
    """Return {(reward, successor): probability} of what a pair can really bring, from the table alone."""
    out: dict[tuple[float, int], float] = {}
    low, high = env.mdp.r_min, env.mdp.r_max
    for prob, succ, reward, law, _ in env.outcomes(state, action):
        share = (reward - low) / (high - low) if law == BERNOULLI else 1.0
        paid = ((high, share), (low, 1.0 - share)) if law == BERNOULLI else ((reward, 1.0),)
        for amount, weight in paid:
            if prob * weight > 0:
                out[amount, succ] = out.get((amount, succ), 0.0) + prob * weight
    return out


def _require_plausible(who: str, what: str, tables: list[tuple[NDArray[np.int64], NDArray[np.float64]]]) -> None:
    """Test counts against probabilities, over all tables together: Pearson's χ², cells below 5 expected are pooled."""
    from scipy.special import chdtrc

    total, freedom = 0.0, 0
    for seen, prob in tables:
        expected = seen.sum() * prob / prob.sum()
        small = expected < _EXPECTED
        if small.any() and expected[small].sum() < _EXPECTED and not small.all():
            small |= expected == expected[~small].min()
        groups = np.where(small, 0, 1 + np.arange(small.size))
        _, cells = np.unique(groups, return_inverse=True)
        wanted, got = np.bincount(cells, expected), np.bincount(cells, seen)
        total, freedom = total + float(((got - wanted) ** 2 / wanted).sum()), freedom + wanted.size - 1
    p_value = float(chdtrc(freedom, total)) if freedom else 1.0
    broken = f"the frequencies of {what} do not agree with the table (χ² = {total:.4g}, {freedom} degrees of freedom, p = {p_value:.1g})"
    _require(p_value >= _LEVEL, who, broken)


def _check_seeds(who: str, env: Env) -> None:
    walks = [list(islice(_steps(who, _InTurn(env.mdp), env, streams(_SEED)[0]), _STEPS)) for _ in range(2)]
    _require(walks[0] == walks[1], who, "reset and step with equal generators must give equal draws")


def _check_env_id(who: str, env: Env) -> None:
    try:
        bare, _ = names.parse(env.info.id)
    except SpanrlError:
        return
    if bare in {entry.name for entry in list_envs()}:
        again = make(env.info.id)
        broken = f"make({env.info.id!r}) must give an equal environment with that id"
        _require(again == env and again.info.id == env.info.id, who, broken)


class _InTurn:
    """Plays the actions of a state in turn."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp, self.t = mdp, 0

    def act(self, state: int) -> int:
        first, end = int(self.mdp.pair_ptr[state]), int(self.mdp.pair_ptr[state + 1])
        return int(self.mdp.action[first + self.t % (end - first)])

    def observe(self, reward: float, next_state: int) -> None:
        self.t += 1


def _check_frozen(who: str, agent: Agent) -> None:
    for name, value in _fields(agent).items():
        try:
            setattr(agent, name, value)
        except (AttributeError, TypeError):
            continue
        broken = f"the field {name!r} can be set; an agent is a frozen configuration, so use @dataclass(frozen=True)"
        _require(False, who, broken)


def _fields(agent: Agent) -> dict[str, Any]:
    """Return the fields of a configuration: those of a dataclass, or all that the object holds."""
    if is_dataclass(agent):
        return {field.name: getattr(agent, field.name) for field in fields(agent)}
    return dict(vars(agent)) if hasattr(agent, "__dict__") else {}


def _equal(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(np.all(one == other))
    except ValueError:  # arrays of different shapes
        return False


def _start(who: str, agent: Agent, env: Env, rng: np.random.Generator) -> AnyLearner:
    learner = agent.start(ProblemInfo.from_mdp(env.mdp, _STEPS), rng)
    broken = f"start must return a learner with act and observe; it returned {learner!r}"
    _require(isinstance(learner, AnyLearner), who, broken)
    return learner


def _steps(who: str, learner: AnyLearner, env: Env, rng: np.random.Generator) -> Iterator[Step]:
    """Play for ever, step by step."""
    state, mdp = env.reset(rng), env.mdp
    while True:
        action = learner.act(state)
        available = mdp.action[mdp.pair_ptr[state] : mdp.pair_ptr[state + 1]]
        fits = _is_whole(action) and action in available
        broken = (
            f"act must return an available action, one of {available.tolist()} in state {state}; it returned {action!r}"
        )
        _require(fits, who, broken)
        reward, succ = env.step(state, int(action), rng)
        learner.observe(reward, succ)
        yield state, int(action), reward
        state = succ


def _check_decisions(who: str, agent: Agent, env: Env) -> None:
    """Play once alone, then twice in turns."""

    def steps() -> Iterator[Step]:
        env_rng, agent_rng = streams(_SEED)
        return _steps(who, _start(who, agent, env, agent_rng), env, env_rng)

    alone = list(islice(steps(), _STEPS))
    for t, (before, one, other) in enumerate(zip(alone, steps(), steps(), strict=False), start=1):
        same = before == one == other
        broken = f"learners with equal generators must decide alike; they differ at step {t}. Draw from rng alone, share nothing"
        _require(same, who, broken)


def _check_estimate(who: str, agent: Agent, env: Env) -> None:
    """Play some steps of a learner of ours interpreted, where kernels assert what they assume of its estimate."""
    env_rng, agent_rng = streams(_SEED)
    learner = _start(who, agent, env, agent_rng)
    if not isinstance(learner, Learner):
        return
    try:
        with interpreted():
            list(islice(_steps(who, learner, env, env_rng), _INTERPRETED))
    except AssertionError as error:
        estimate = type(learner.rules.estimate).__name__
        _require(False, who, f"the sets of {estimate} break the contract: {error}")


def _check_learning(who: str, agent: Agent, env: Env) -> None:
    """Compare learn with the same steps by hand, where a step has no clock: without the cuts of episodes."""
    env = env if env.step_limit is None else replace(env, step_limit=None, out_ends=None)
    env_rng, agent_rng = streams(_SEED)
    learner = _start(who, agent, env, agent_rng)
    taken = list(islice(_steps(who, learner, env, env_rng), _STEPS))
    run = learn(env, agent, horizon=_STEPS, seed=_SEED, gain=0.0)
    mean = np.array([env.mdp.reward[env.mdp.pair(s, a)] for s, a, _ in taken])
    paid = np.array([reward for _, _, reward in taken])
    tolerance = 1e-9 * max(1.0, abs(env.mdp.r_min), abs(env.mdp.r_max))
    for found, wanted in ((run.reward, paid), (-run.pseudo_regret, mean)):
        off = np.abs(found - np.cumsum(wanted)[run.t - 1])
        broken = (
            f"learn must give what the same steps by hand give; they differ at step {run.t[np.argmax(off > tolerance)]}"
        )
        _require(off.max() <= tolerance, who, broken)


def _check_refusals(who: str, agent: Agent) -> None:
    learner = _start(who, agent, _smallest_env(), streams(_SEED)[1])
    if not isinstance(learner, (Learner, StepLearner)):
        return
    refusals = 0
    for call in (lambda: learner.observe(0.0, 0), lambda: [learner.act(0) for _ in range(2)]):
        try:
            call()
        except InputError:
            refusals += 1
    _require(refusals == 2, who, "a learner must refuse observe before act, and act twice")


def _ragged_env() -> Env:
    """Return a random problem of five states with one to three actions, Bernoulli rewards in [−1, 2] and two start states."""
    rng = np.random.default_rng(7)
    S, A = 5, 3
    available = np.arange(A) <= np.array([0, 1, 2, 1, 2])[:, None]
    available[2, 0] = False  # the lowest action need not exist
    P = rng.dirichlet(np.full(S, 0.5), size=(S, A))
    r = rng.uniform(-1.0, 2.0, size=(S, A))
    mdp = MDP.from_dense(P, r, available=available, r_min=-1.0, r_max=2.0, start=[0.5, 0.0, 0.5, 0.0, 0.0])
    return Env.from_mdp(mdp, "bernoulli")


def _smallest_env() -> Env:
    return Env.from_mdp(MDP.from_dense([[[1.0]]], [[0.5]]))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


@contextmanager
def _random_states_kept(who: str) -> Iterator[None]:
    """Refuse what draws from, or seeds, the global random states of numpy and of Python."""
    before = _global_states()
    yield
    broken = "the global random state of numpy or of Python was used; draw from the generator that is given"
    _require(_global_states() == before, who, broken)


def _global_states() -> tuple[Any, ...]:
    kind, words, *rest = np.random.get_state()
    return kind, np.asarray(words).tobytes(), rest, random.getstate()
