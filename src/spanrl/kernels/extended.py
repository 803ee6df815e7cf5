"""The planner of the learners: Lv and its projection (T_c v = Γ_c Lv, say) on a set model, from one warm start to the next.

A sweep over actions gives Lv, and so the gain bracket: it alone can end the iteration. Between two of these the actions chosen by the
first are frozen (modified policy iteration): in boxes and KL balls with nature's answer to them
(:mod:`spanrl.kernels.frozen_policy`), in L1 balls nature keeps choosing anew, bonuses are computed anew, and in plain models it has no
choice. What is assumed of a set stands in :class:`spanrl.kernels.plan_workspace.Sets`.

Loops are written without branches where the data would decide them: a wrong guess of the processor costs more than a pair.
"""

from __future__ import annotations

import numpy as np

from spanrl.kernels.backups import ball_values, pick, plain_sweep
from spanrl.kernels.bonus import bonus_values
from spanrl.kernels.box_sweeps import sweep_boxes
from spanrl.kernels.clock import SORTING, now
from spanrl.kernels.extremes import extremes
from spanrl.kernels.frozen_policy import freeze, sweep_frozen
from spanrl.kernels.iterate import ROUNDING, bracket, relax
from spanrl.kernels.jit import kernel, part
from spanrl.kernels.kl import KL_ROUNDING, kl_values
from spanrl.kernels.layout import BALL, BONUS, BOX, KL, NOSS, PLAIN
from spanrl.kernels.noss import noss_values
from spanrl.kernels.order import rank_open, rank_states
from spanrl.kernels.plan_workspace import CHANGES, GONE, LIVE, N_SWEEPS, NEXT_LOOK, ROUNDS, STEP, WIDTH, WIDTH_BEFORE
from spanrl.kernels.projection import keep_differences, project

RUNNING, CONVERGED, TOO_WIDE = 0, 1, 2

_LOOK = 4  # rounds before the first look at the speed; then at every doubling
_STALL = 0.9
_MARGIN = 1e-9
_FEW = 3  # actions that change: the policy is nearly found, and its value worth more sweeps


@kernel
def start_planning(progress, lead, v, differences, from_bias):
    """Prepare for a plan: from the last bias, or from 0, projected on the differences where there are any."""
    progress[:] = 0.0
    progress[STEP], progress[NEXT_LOOK] = 1.0, _LOOK
    progress[WIDTH_BEFORE] = progress[WIDTH] = progress[CHANGES] = np.inf
    lead[:] = -np.inf
    if not from_bias:
        v[:] = 0.0
        keep_differences(v, differences)
        relax(v, v, 1.0, 0)  # 0 in state 0


@kernel
def _sweep(m, flagged, exact, reward, ws, ranked, rows, v, progress, u, best):
    """Set u = Lv, and ``best`` to pairs that attain it. Pairs that cannot be best are left out; ``rows.live`` begins with the others."""
    n_live = _remaining(rows.lead, rows.live, ws.pairs, progress[GONE])
    progress[LIVE] = n_live
    pairs = rows.live[:n_live]
    if m.kind == BOX:
        sweep_boxes(m, flagged, exact, reward, ws, ranked, rows, pairs, progress[ROUNDS] == 0.0)
    elif m.kind == BALL:
        ball_values(m, reward, 1.0, ws, pairs, ws.q)
    elif m.kind == KL:
        kl_values(m, reward, 1.0, ws, pairs, ws.q)
    elif m.kind == BONUS:
        bonus_values(m, reward, ws, pairs, v, ws.q)
    elif m.kind == NOSS:
        noss_values(m, reward, ws, pairs, ws.q)
    else:
        plain_sweep(m.succ_ptr, m.succ, m.low, reward, pairs, v, ws.q)
    if n_live < ws.pairs.size:
        _best_of_live(pairs, rows.state, ws.q, u, best)
    else:
        _best_of_all(m.pair_ptr, ws.q, u, best)


@kernel
def _best_of_all(pair_ptr, q, u, best):
    """Set u(s) to the largest q of the pairs of s, and best(s) to the first that attains it."""
    one = np.uint64(1)
    for s in range(u.size):
        i, end, most = np.uint64(pair_ptr[s]), np.uint64(pair_ptr[s + 1]), -np.inf
        at = i
        while i < end:
            x = q[i]
            at = pick(x > most, i, at)
            most = max(most, x)
            i += one
        u[s], best[s] = most, np.int64(at)


@kernel
def _best_of_live(live, state, q, u, best):
    """Do the same for the pairs ``live`` alone, in any order; every state has one."""
    u[:] = -np.inf
    for pair in live:
        i = np.uint64(pair)
        s = np.uint64(state[i])
        x, most, at = q[i], u[s], np.uint64(best[s])
        best[s] = np.int64(pick((x > most) | ((x == most) & (i < at)), i, at))
        u[s] = max(most, x)


@kernel
def _remaining(lead, live, pairs, far):
    """Write the pairs that can be best once v has gone so far to ``live``; return how many they are."""
    n = 0
    for i in pairs:
        live[n] = i
        n += lead[np.uint64(i)] <= far
    return n


@kernel
def _keep_leads(live, state, lead, top, last, q, best, v, far):
    """Keep by how much each pair is behind, plus how far v has gone until now, less a margin: it stays behind until v has gone so far.

    The values of pairs that were left out are old; how much they are behind is kept from then.
    """
    size = 1.0
    for s in range(best.size):
        top[s], last[s] = q[best[s]], v[s]
        size = max(size, abs(top[s]))
    behind = far - _MARGIN * size
    for pair in live:
        i = np.uint64(pair)
        lead[i] = (top[np.uint64(state[i])] - q[i]) + behind


@kernel
def _distance(v, w):
    """Return sp(v − w)."""
    low, high = np.inf, -np.inf
    for s in range(v.size):
        low, high = min(low, v[s] - w[s]), max(high, v[s] - w[s])
    return high - low


@kernel
def _sweep_anew(m, reward, ws, v, u, pairs, c, differences, a):
    """Do what :func:`sweep_frozen` does for ``pairs`` of a model of L1 balls, in which nature chooses anew, or of bonuses."""
    rank_states(1.0, v, ws)
    if m.kind == BALL:
        ball_values(m, reward, 1.0, ws, pairs, ws.q)
    else:
        bonus_values(m, reward, ws, pairs, v, ws.q)
    for s in range(u.size):
        u[s] = ws.q[pairs[s]]
    project(u, c, differences)
    lo, hi = bracket(v, u, ROUNDING)
    relax(v, u, a, 0)
    return hi - lo


@kernel
def _frozen_sweeps(m, reward, ws, ranked, frozen, v, u, best, c, differences, a, goal, most):
    """Sweep over the frozen policy until the steps are equal up to ``goal``, or ``most`` times; return how often."""
    is_frozen = m.kind not in (BALL, BONUS)
    for n in range(most):
        if not is_frozen:
            width = _sweep_anew(m, reward, ws, v, u, best, c, differences, a)
        else:
            width = sweep_frozen(frozen, ws.keys, ranked, v, u, c, differences, a)
        if width <= goal:
            return n + 1
    return most


@kernel
def _rests(rounds):
    """Tell whether a round goes without frozen sweeps: half of all after 2048 do, in ever longer runs of plain value iteration.

    The lower end of the bracket never falls, but with truncation nothing is known of the upper one: it might go round in circles, which
    value iteration does not.
    """
    return rounds >= 2048.0 and np.int64(np.log2(rounds)) % 2 == 1


@part
def improve(work, goal, tol):
    """Iterate v ← (1−a)v + a·T_c v until the gain bracket is at most ``tol`` wide, for at most ``goal.budget`` sweeps over actions.

    Before each of these but the first come sweeps over frozen actions, ``goal.inner`` or a few times as many, and then only pairs are
    looked at again that can have become best: what is worth q at v is worth at most q + max(v' − v) at v', and the best value of
    its state is at least what it was plus min(v' − v) (temporary action elimination; Puterman 1994, Sec. 6.7). Lv, and so the bracket, is
    exact all the same.

    Where the bracket stalls, a goes from 1 to 0.9 and 0.5. All that must be remembered stands in ``work.progress``, so that the outcome
    does not depend on the budget. An iterate whose span exceeds ``goal.widest`` ends it; ``goal.most`` sweeps do too, with the bracket as
    it is, which is counted. Returns (outcome, lo, hi); on success v is the vector that the bracket belongs to, and ws.q has the values at v
    of all pairs that can be best.
    """
    m, ws, ranked, rows, reward, frozen = work.m, work.ws, work.ranked, work.rows, work.reward, work.frozen
    flagged, closed = work.sets.flagged, work.sets.closed
    v, u, best, progress, c = work.v, work.u, work.best, work.progress, goal.span_bound
    differences = work.differences
    truncates = c < np.inf or differences.scratch.size > 0
    for _ in range(goal.budget):
        if goal.inner > 0 and progress[ROUNDS] > 0.0:
            if not truncates or not _rests(progress[ROUNDS]):
                enough = max(0.1 * progress[WIDTH], 0.5 * tol)
                a = (
                    min(progress[STEP], 0.9) if progress[ROUNDS] > _LOOK else progress[STEP]
                )  # a frozen policy may be periodic
                nearly = progress[CHANGES] <= _FEW and progress[ROUNDS] >= _LOOK
                most = 5 * goal.inner if nearly else goal.inner
                progress[N_SWEEPS] += _frozen_sweeps(
                    m, reward, ws, ranked, frozen, v, u, best, c, differences, a, enough, most
                )
            progress[GONE] += _distance(v, rows.v)
        begun = now(work.moment)
        if m.kind != PLAIN:
            rank_states(1.0, v, ws)
            if closed.size > 0:
                rank_open(closed, ws, ranked)
        work.clock[SORTING] += now(work.moment) - begun
        _sweep(m, flagged, work.exact, reward, ws, ranked, rows, v, progress, u, best)
        project(u, c, differences)
        lo, hi = bracket(v, u, KL_ROUNDING if m.kind == KL else ROUNDING)
        progress[N_SWEEPS] += 1.0
        progress[ROUNDS] += 1.0
        progress[WIDTH] = hi - lo
        if hi - lo <= tol or progress[ROUNDS] >= goal.most:
            work.n_cut[0] += hi - lo > tol
            return CONVERGED, lo, hi
        if goal.inner > 0:
            live = rows.live[: np.int64(progress[LIVE])]
            _keep_leads(live, rows.state, rows.lead, rows.top, rows.v, ws.q, best, v, progress[GONE])
            if m.kind not in (BALL, BONUS):
                progress[CHANGES] = freeze(
                    m, flagged, reward, ws, ranked, rows, best, frozen, progress[ROUNDS] == 1.0, work.owned
                )
        if progress[ROUNDS] >= progress[NEXT_LOOK]:
            if hi - lo > _STALL * progress[WIDTH_BEFORE]:
                progress[STEP] = 0.9 if progress[STEP] == 1.0 else 0.5
            progress[WIDTH_BEFORE], progress[NEXT_LOOK] = hi - lo, 2.0 * progress[NEXT_LOOK]
        relax(v, u, progress[STEP], 0)
        if goal.widest < np.inf:
            low, high = extremes(v)
            if high - low > goal.widest:
                return TOO_WIDE, lo, hi
    return RUNNING, -np.inf, np.inf
