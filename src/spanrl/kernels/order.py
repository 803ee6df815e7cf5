"""Sort the states by value once per sweep: nearly sorted from the last one, so an adaptive merge sort."""

from __future__ import annotations

from spanrl.kernels.jit import kernel

_RUN = 16
_SHORT = 1000  # states up to which plain sums are as good


@kernel
def precedes(x, i, y, j):
    """Order by falling value, then by index: the order depends on the values alone, not on what came before."""
    return x > y or (x == y and i < j)


@kernel
def _first_after(x, i, keys, order, lo, hi):
    """Return the first position in the sorted part lo:hi whose entry comes after (x, i)."""
    while lo < hi:
        mid = (lo + hi) // 2
        if precedes(x, i, keys[mid], order[mid]):
            hi = mid
        else:
            lo = mid + 1
    return lo


@kernel
def _merge(lo, mid, hi, keys, order, tmp_keys, tmp_order):
    """Merge the sorted parts lo:mid and mid:hi; only where they overlap is anything moved."""
    lo = _first_after(keys[mid], order[mid], keys, order, lo, mid)
    hi = _first_after(keys[mid - 1], order[mid - 1], keys, order, mid, hi)
    n = mid - lo
    for a in range(n):
        tmp_keys[a] = keys[lo + a]
        tmp_order[a] = order[lo + a]
    a, b, out = 0, mid, lo
    while a < n and b < hi:
        if precedes(keys[b], order[b], tmp_keys[a], tmp_order[a]):
            keys[out] = keys[b]
            order[out] = order[b]
            b += 1
        else:
            keys[out] = tmp_keys[a]
            order[out] = tmp_order[a]
            a += 1
        out += 1
    while a < n:
        keys[out] = tmp_keys[a]
        order[out] = tmp_order[a]
        a += 1
        out += 1


@kernel
def sort_states(keys, order, tmp_keys, tmp_order):
    """Sort (keys, order) in place by :func:`precedes`."""
    S = keys.size
    for start in range(0, S, _RUN):
        for i in range(start + 1, min(start + _RUN, S)):
            x, s, j = keys[i], order[i], i
            while j > start and precedes(x, s, keys[j - 1], order[j - 1]):
                keys[j] = keys[j - 1]
                order[j] = order[j - 1]
                j -= 1
            keys[j] = x
            order[j] = s
    width = _RUN
    while width < S:
        for lo in range(0, S - width, 2 * width):
            mid = lo + width
            if precedes(keys[mid], order[mid], keys[mid - 1], order[mid - 1]):
                _merge(lo, mid, min(mid + width, S), keys, order, tmp_keys, tmp_order)
        width *= 2


@kernel
def rank_states(sign, v, ws):
    """Fill order, keys, ranks and prefix sums of the workspace for the values w = sign·v."""
    keys, order, w, rank, prefix = ws.keys, ws.order, ws.w, ws.rank, ws.prefix
    for s in range(v.size):
        w[s] = sign * v[s]
    for i in range(v.size):
        keys[i] = w[order[i]]
    sort_states(keys, order, ws.tmp_keys, ws.tmp_order)
    for i in range(v.size):
        rank[order[i]] = i
    if v.size <= _SHORT:
        for i in range(v.size):
            prefix[i + 1] = prefix[i] + keys[i]
        return
    total, lost = 0.0, 0.0  # compensated sums: differences of prefixes must hold to 1e-12 at S = 1e5
    for i in range(v.size):
        x = keys[i] - lost
        t = total + x
        lost = (t - total) - x
        total = t
        prefix[i + 1] = total


@kernel
def rank_open(closed, ws, ranked):
    """Fill the second part of a ranking with the states that are not closed, in the order of the first."""
    order, keys, prefix, first = ranked.order, ranked.keys, ranked.prefix, ws.keys.size + 1
    n, total, lost = 0, 0.0, 0.0
    prefix[first] = 0.0
    for k in range(ws.keys.size):
        s = ws.order[k]
        ranked.rank[s] = n
        if closed[s]:
            continue
        order[first + n], keys[first + n] = s, ws.keys[k]
        x = ws.keys[k] - lost
        t = total + x
        lost = (t - total) - x
        total = t
        n += 1
        prefix[first + n] = total
    ranked.n_open[0] = n


@kernel
def sort_row(first, end, w, succ, low, room):
    """Bring one row into the order of the states (insertion: it nearly is)."""
    for j in range(first + 1, end):
        s, lower, gap = succ[j], low[j], room[j]
        x, b = w[s], j
        while b > first and precedes(x, s, w[succ[b - 1]], succ[b - 1]):
            succ[b], low[b], room[b] = succ[b - 1], low[b - 1], room[b - 1]
            b -= 1
        succ[b], low[b], room[b] = s, lower, gap
