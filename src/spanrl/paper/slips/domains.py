"""Slips about the domains of the experiments: the three-state domain and Knight Quest."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

import spanrl
from spanrl.envs.env import Env
from spanrl.envs.knight_quest import (
    ARMOUR,
    BUY_ARMOUR,
    BUY_KEY,
    DRAGON_CELLS,
    KEY,
    PRINCESS,
    TOWN,
    State,
    state_index,
    state_tuple,
)
from spanrl.errors import SpanrlError
from spanrl.models.mdp import MDP
from spanrl.paper.oracles import Vector, finite, q_values
from spanrl.paper.slips.base import Finding, Statement
from spanrl.planning.diameter import times_to

CLOSE = 1e-9
"""Allowed relative error of hitting times, and absolute of values: they are computed to 1e-11."""

BOTH = KEY | ARMOUR


def _knight() -> MDP:
    mdp: MDP = spanrl.make("knight-quest").mdp
    return mdp


def _three_state() -> Finding:
    deltas = [0.005, 0.1, 1 / 3, 0.5, 0.9]
    found = [spanrl.analyse(spanrl.make("three-state", delta=delta).mdp).diameter for delta in deltas]
    longest = [max(1 / delta, 2 / (1 - delta)) for delta in deltas]
    return {
        "δ": deltas,
        "D": [float(D) for D in found if D is not None],
        "1/δ": [1 / delta for delta in deltas],
        "2/(1 − δ)": [2 / (1 - delta) for delta in deltas],
    }, np.allclose(np.array(found, dtype=float), longest, rtol=CLOSE, atol=0)


def _states() -> Finding:
    mdp = _knight()
    tuples = [State(*t) for t in product(range(4), range(4), range(2), range(3), range(4))]
    killed = {s for s in tuples if s[:2] == DRAGON_CELLS[s.dragon] and not s.owned & ARMOUR}
    rescued = {s for s in tuples if s[:2] == PRINCESS and s.owned & KEY}
    names = set(mdp.state_names or ())
    absent = {s for s in tuples if str(s) not in names}
    return {
        "tuples (row, column, gold, dragon, object)": len(tuples),
        "on the dragon's cell without armour": len(killed),
        "with the princess and a key": len(rescued),
        "states": mdp.n_states,
    }, absent == killed | rescued and mdp.n_states == len(tuples) - len(killed) - len(rescued)


def _into(mdp: MDP, inside: NDArray[np.bool_]) -> int:
    """Count the pairs of states outside that may lead inside."""
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
    enters = np.unique(pair[inside[mdp.succ]])
    return int((~inside[mdp.pair_state[enters]]).sum())


def _gold_is_kept(mdp: MDP) -> MDP:
    """Return Knight Quest in which buying does not use up the gold."""
    succ = mdp.succ.astype(np.int64)
    for i in np.flatnonzero(np.isin(mdp.action, (BUY_KEY, BUY_ARMOUR))):
        state = state_tuple(int(mdp.pair_state[i]))
        if state[:2] == TOWN and state.gold:
            part = slice(mdp.succ_ptr[i], mdp.succ_ptr[i + 1])
            succ[part] = [state_index(*state_tuple(int(x))._replace(gold=1)) for x in succ[part]]
    return MDP.from_pairs(mdp.pair_state, mdp.action, mdp.succ_ptr, succ, mdp.prob, mdp.reward, start=mdp.start)


def _gold() -> Finding:
    mdp = _knight()
    kept = _gold_is_kept(mdp)
    states = [state_tuple(s) for s in range(mdp.n_states)]
    poor = np.array([not state.gold and state.owned > 0 for state in states])
    found = spanrl.analyse(kept)
    ways, no_ways = _into(mdp, poor), _into(kept, poor)
    return {
        "states without gold but with an object": int(poor.sum()),
        "pairs that lead into them from other states": ways,
        "the same where buying leaves the gold": no_ways,
        "diameter where buying leaves the gold": found.diameter,
        "classification there": found.classification,
    }, found.diameter == np.inf and no_ways == 0 < ways


def _owned_after(env: Env, action: int) -> list[int]:
    """Return what the knight owns after buying in town with gold, by what he owned before."""
    befores = [state_index(*TOWN, gold=1, dragon=0, owned=owned) for owned in range(4)]
    return [state_tuple(env.outcomes(s, action)[0].succ).owned for s in befores]


def _second_key() -> Finding:
    printed = {BUY_KEY: [KEY, BOTH, BOTH, BOTH], BUY_ARMOUR: [ARMOUR, BOTH, BOTH, BOTH]}
    env = spanrl.make("knight-quest")
    ours = {action: _owned_after(env, action) for action in printed}
    differ = {
        (action, owned) for action in printed for owned in range(4) if printed[action][owned] != ours[action][owned]
    }
    return {
        "objects": "0 nothing, 1 key, 2 armour, 3 both",
        "owned after buying a key with 0, 1, 2, 3: printed": [float(o) for o in printed[BUY_KEY]],
        "owned after buying a key with 0, 1, 2, 3: ours": [float(o) for o in ours[BUY_KEY]],
        "owned after buying armour with 0, 1, 2, 3: printed": [float(o) for o in printed[BUY_ARMOUR]],
        "owned after buying armour with 0, 1, 2, 3: ours": [float(o) for o in ours[BUY_ARMOUR]],
    }, differ == {(BUY_KEY, KEY), (BUY_ARMOUR, ARMOUR)}


def _times(mdp: MDP, target: int) -> Vector:
    tau = times_to(mdp, target)
    if tau is None:
        raise SpanrlError(
            f"knight-quest: {state_tuple(target)} cannot be reached from everywhere, though D should be finite."
        )
    return tau


def _target() -> Finding:
    mdp = _knight()
    named = [State(*PRINCESS, gold=1, dragon=d, owned=BOTH) for d in range(3)]
    present = sum(str(state) in (mdp.state_names or ()) for state in named)
    D = spanrl.analyse(mdp).diameter
    assert D is not None
    origins = [state_index(*TOWN, gold=0, dragon=d, owned=ARMOUR) for d in range(3)]
    targets = [state_index(*TOWN, gold=1, dragon=d, owned=BOTH) for d in range(3)]
    times = [_times(mdp, target) for target in targets]
    far = times[int(np.argmax([tau.max() for tau in times]))]
    return {
        "D": D,
        "states (princess, gold, key and armour) among the 360": present,
        "longest time to (town, gold, key and armour), by dragon": [float(tau.max()) for tau in times],
        "from (town, no gold, armour) to the farthest, by dragon": far[origins].tolist(),
    }, present == 0 and np.allclose(far[origins], D, rtol=CLOSE, atol=0)


def _armour() -> Finding:
    mdp = _knight()
    best = spanrl.analyse(mdp, diameter=False)
    model = finite(mdp)
    q = q_values(model, best.bias)
    optimal = q >= q.max(axis=1, keepdims=True) - CLOSE
    buys = optimal[:, BUY_ARMOUR]
    step = (model.P * optimal[..., None]).sum(axis=1) > 0
    reached = mdp.start > 0
    for _ in range(mdp.n_states):
        reached = reached | step[reached].any(axis=0)
    return {
        "states in which buying armour is optimal": int(buys.sum()),
        "these states": "; ".join(str(state_tuple(int(s))) for s in np.flatnonzero(buys)),
        "states that optimal play can reach from the start": int(reached.sum()),
        "of them, states in which buying armour is optimal": int((buys & reached).sum()),
        "optimal gain": best.gain if best.gain is not None else "not constant",
    }, buys.any() and not (buys & reached).any()


SLIPS = (
    Statement(
        id="three-state-diameter",
        title="D = 1/δ on the three-state domain, up to δ = 1/3",
        place="Sec. 7 and the caption of its first figure",
        printed="D ≈ 1/δ (in the text for small δ, in the caption without it).",
        found="D = 1/δ exactly for δ ≤ 1/3; above that the way from s1 to s2 is the longest, 2/(1 − δ).",
        measure=_three_state,
    ),
    Statement(
        id="knight-quest-states",
        title="Knight Quest has 384 tuples and 360 states",
        place="App. G.2, state representation",
        printed="The state is (row, column, gold, dragon, object), and S = 360.",
        found="There are 4·4·2·3·4 = 384 tuples. The 24 in which the game has just ended do not exist: entering one ends it in that same "
        "step.",
        measure=_states,
    ),
    Statement(
        id="knight-quest-gold",
        title="Buying uses up the gold",
        place="App. G.2, actions BK and BA",
        printed="Buying in town with gold changes the object; the gold is not mentioned.",
        found="If the gold stayed, no state with an object but no gold could be entered, and D would be infinite. We use it up.",
        measure=_gold,
    ),
    Statement(
        id="knight-quest-second-key",
        title="A second key turns into armour",
        place="App. G.2, actions BK and BA",
        printed="Buying anything while owning something leaves the knight with key and armour.",
        found="By that formula a second key becomes armour, and a second armour a key. We keep what is owned.",
        measure=_second_key,
    ),
    Statement(
        id="knight-quest-target",
        title="The diameter's target is no state",
        place="App. G.2, properties of the game",
        printed="D ≈ 250 is the time from town, without gold but with armour, to the princess with gold, key and armour.",
        found="With a key the game ends on reaching the princess: that is none of the 360 states. D is attained from (town, no gold, "
        "armour) to (town, gold, key and armour).",
        measure=_target,
    ),
    Statement(
        id="knight-quest-armour",
        title="Armour can be worth buying, where optimal play never comes",
        place="App. G.2, properties of the game",
        printed="The optimal strategy is to collect the gold, buy the key and rescue the princess.",
        found="True of play from the start. An optimal policy for all states does buy armour in two of them: in town with gold and a key "
        "in hand.",
        measure=_armour,
    ),
)
