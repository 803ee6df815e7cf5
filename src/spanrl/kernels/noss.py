"""Near-optimistic support selection (Bourel, Maillard & Talebi 2020): the inner maximum over a part of the states.

A box lets every state never seen from a pair have up to ``rest`` of its mass. NOSS gives up most of them. With f = v − min v and, for a set
X of states, the largest mean that mass on X alone can have ::

    F(X) = max{Σ_{x∈X} p(x)f(x) : low ≤ p ≤ high on X, Σ_{x∈X} p(x) ≤ 1}

the support S̃ begins with the listed successors and the best state, and is given the best of the other states, one after the other, until
what is left out is worth little::

    F(S ∖ S̃) ≤ min{κ, F(S̃)},    κ = x·sp(v)

x is ``size`` of the pair (``slack`` here). The pair is worth q = r + min v + F(S̃): mass for which S̃ has no room goes to a worst state.

So q is at least r + pᵀv − κ for all p of the box. Constants added to v are added to q. It is **not monotone** in v: a state that becomes
worth more may end the growth of S̃ sooner. A bracket of it certifies nothing, and the iteration may go round in circles.

What is left out is worth less the more S̃ holds, and F(S̃) is worth more: the first S̃ that will do is found by bisection, S ln S steps.
"""

from __future__ import annotations

from spanrl.kernels.jit import kernel

MOST_SWEEPS = 1000
"""How many sweeps a plan may take: one that goes round in circles ends there."""

_UNLISTED = -1.0


@kernel
def _inside(order, keys, room, rest, mass, n_added):
    """Return what ``mass`` is worth above the worst state on listed successors and the best ``n_added`` others, best first."""
    worth, floor, added = 0.0, keys[keys.size - 1], 0
    for k in range(keys.size):
        x = room[order[k]]
        if x == _UNLISTED:
            x = rest if added < n_added else 0.0
            added += 1
        x = min(x, mass)
        worth += x * (keys[k] - floor)
        mass -= x
        if mass <= 0.0:
            break
    return worth


@kernel
def _outside(order, keys, room, rest, n_added):
    """Return what a mass of 1 is worth above the worst state on the states that are not listed, but for the best ``n_added``."""
    worth, floor, left, passed_over = 0.0, keys[keys.size - 1], 1.0, 0
    for k in range(keys.size):
        if room[order[k]] != _UNLISTED:
            continue
        passed_over += 1
        if passed_over > n_added:
            x = min(rest, left)
            worth += x * (keys[k] - floor)
            left -= x
            if left <= 0.0:
                break
    return worth


@kernel
def _support(order, keys, room, rest, mass, worth, kappa, n_unlisted):
    """Return how many states not listed S̃ holds; ``worth`` is what the lower ends are worth above the worst state."""
    low = 1 if room[order[0]] == _UNLISTED else 0
    high = n_unlisted
    while low < high:
        middle = (low + high) // 2
        most = min(kappa, worth + _inside(order, keys, room, rest, mass, middle))
        if _outside(order, keys, room, rest, middle) <= most:
            high = middle
        else:
            low = middle + 1
    return high


@kernel
def noss_values(m, reward, ws, pairs, q):
    """Set q of ``pairs``; the workspace is ranked by v."""
    order, keys, w, room = ws.order, ws.keys, ws.w, ws.tmp_keys
    floor = keys[keys.size - 1]
    span = keys[0] - floor
    room[:] = _UNLISTED
    for i in pairs:
        first, end, mass, worth = m.succ_ptr[i], m.succ_ptr[i + 1], 1.0, 0.0
        for j in range(first, end):
            room[m.succ[j]] = m.room[j]
            mass -= m.low[j]
            worth += m.low[j] * (w[m.succ[j]] - floor)
        mass, kappa, n_unlisted = max(mass, 0.0), m.slack[i] * span, keys.size - (end - first)
        n_added = _support(order, keys, room, m.rest[i], mass, worth, kappa, n_unlisted)
        q[i] = reward[i] + (floor + worth + _inside(order, keys, room, m.rest[i], mass, n_added))
        for j in range(first, end):
            room[m.succ[j]] = _UNLISTED
