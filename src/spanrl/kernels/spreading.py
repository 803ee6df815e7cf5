"""Spread the news of a better policy through a model, from state to state, without sweeping over the others.

After a policy was evaluated, better actions are often to be had in a few states only, and those behind them see it one sweep later each:
the front of a long river or a maze moves by one state per sweep. Here a state that rises tells its predecessors at once.

v is raised where (Lv)(s) − v(s) exceeds a ``level`` λ, to the value at which it is λ. As L is monotone, Lv − v falls nowhere else, so that
min(Lv − v) never falls below the lesser of λ and what it was; and where nothing is left to raise, max(Lv − v) ≤ λ. With λ the most that the
policy itself earns anywhere, what is raised is what a better policy lifts.

With a span bound c no state rises above the lowest one plus c, as it is before anything rises; then min(T_c v − v) is kept in the same way.
"""

from __future__ import annotations

import numpy as np

from spanrl.kernels.improvement import attaining
from spanrl.kernels.jit import allocating

_NOISE = 1e-12  # of the values: what is not worth a rise
_AGAIN = 0.01  # of its rise so far: what raises a state again, if it is far, …
_DOUBLED = 1.0  # … and otherwise


@allocating
def predecessors(m):
    """Return, compressed, the states from which some action may lead to each state."""
    S = m.pair_ptr.size - 1
    ptr, seen = np.zeros(S + 1, np.int64), np.full(S, -1)
    for s in range(S):
        for j in range(m.succ_ptr[m.pair_ptr[s]], m.succ_ptr[m.pair_ptr[s + 1]]):
            x = m.succ[j]
            if seen[x] != s:
                seen[x] = s
                ptr[x + 1] += 1
    for s in range(S):
        ptr[s + 1] += ptr[s]
    at, before = ptr[:-1].copy(), np.empty(ptr[S], np.uint32)
    seen[:] = -1
    for s in range(S):
        for j in range(m.succ_ptr[m.pair_ptr[s]], m.succ_ptr[m.pair_ptr[s + 1]]):
            x = m.succ[j]
            if seen[x] != s:
                seen[x] = s
                before[at[x]] = s
                at[x] += 1
    return ptr, before


@allocating
def spread(m, reward, ptr, before, level, far, ceiling, v, q, u, pair, risen, budget):
    """Raise v where Lv − v > level, but not above the ceiling, first come, first served, until so many transitions were read.

    ``ptr, before`` are the predecessors. On entry and on return q holds the values of all pairs at v, u = Lv and ``pair`` attains it;
    ``risen`` is by how much v has been raised, for the next call. A state is raised again where that doubles its rise at least, or adds
    more than ``far``, which is news, and not merely a round of a good cycle. Returns how many transitions were read.
    """
    S = v.size
    queue, waits = np.empty(S, np.int64), np.zeros(S, np.bool_)
    head, n, work = 0, 0, 0
    for s in range(S):
        if u[s] - v[s] > level:
            queue[n], waits[s] = s, True
            n += 1
    while n > 0:
        s = queue[head]
        head = head + 1 if head + 1 < S else 0
        n -= 1
        waits[s] = False
        first, last, best = m.pair_ptr[s], m.pair_ptr[s + 1], -np.inf
        for i in range(first, last):
            value, other, end = reward[i], 0.0, m.succ_ptr[i + 1]
            for j in range(m.succ_ptr[i], end - 1, 2):
                value += m.low[j] * v[m.succ[j]]
                other += m.low[j + 1] * v[m.succ[j + 1]]
            if (end - m.succ_ptr[i]) % 2 == 1:
                value += m.low[end - 1] * v[m.succ[end - 1]]
            q[i] = value + other
            best = max(best, q[i])
        work += m.succ_ptr[last] - m.succ_ptr[first]
        u[s], pair[s] = best, attaining(q, pair[s], np.uint64(first), best)
        gap = min(best - level, ceiling) - v[s]
        least = _AGAIN if gap > far else _DOUBLED
        if work >= budget or not gap > max(least * risen[s], _NOISE * (abs(best) + abs(v[s]))):
            continue
        stays = 0.0  # what the state gains by its own rise need not be waited for
        for j in range(m.succ_ptr[pair[s]], m.succ_ptr[pair[s] + 1]):
            stays += m.low[j] if m.succ[j] == s else 0.0
        if stays >= 1.0:
            continue
        rise = min(gap / (1.0 - stays), ceiling - v[s])
        v[s] += rise
        risen[s] += rise
        for e in range(ptr[s], ptr[s + 1]):
            x = before[e]
            if not waits[x]:
                at = head + n
                queue[at if at < S else at - S], waits[x] = x, True
                n += 1
    return work
