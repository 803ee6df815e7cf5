"""Sweeps over Markov chains: fastest ways to a target."""

from __future__ import annotations

import numpy as np

from spanrl.kernels.jit import kernel


@kernel
def pairs_toward(rev_ptr, rev_pair, pair_state, target, pair, queue):
    """Choose for each state a pair that may come nearer to the target (breadth first); return how many states reach it.

    ``rev_pair[rev_ptr[s]:rev_ptr[s+1]]`` are the pairs that may lead to s. States that cannot reach the target keep −1.
    """
    pair[:] = -1
    queue[0] = target
    pair[target] = 0
    done, n = 0, 1
    while done < n:
        s = queue[done]
        done += 1
        for e in range(rev_ptr[s], rev_ptr[s + 1]):
            i = rev_pair[e]
            x = pair_state[i]
            if pair[x] < 0:
                pair[x] = i
                queue[n] = x
                n += 1
    return n


@kernel
def _time_by(m, i, target, s, tau):
    """Return (1 + Σ_{x≠s} p(x) τ(x), Σ_{x≠s} p(x)) of pair i in state s; τ(target) counts as 0."""
    total, leave = 1.0, 0.0
    for j in range(m.succ_ptr[i], m.succ_ptr[i + 1]):
        x = m.succ[j]
        if x != s:
            leave += m.low[j]
            if x != target:
                total += m.low[j] * tau[x]
    return total, leave


@kernel
def hitting_times(m, target, order, tau, pair, tol, inner, budget):
    """Improve τ(s), the least expected time from s to the target, in place, starting with pairs that do reach it.

    A round is ``inner`` Gauss–Seidel sweeps over the chosen pairs, in the given order of the states, then one full sweep that
    chooses anew. Returns its residual ε, the largest of 1 + Pτ − τ for the chosen pairs and of τ − 1 − Pτ for all pairs, with
    which τ/(1+ε) ≤ τ* ≤ τ/(1−ε).
    """
    residual = np.inf
    for _ in range(budget):
        for _ in range(inner):
            for s in order:
                if s != target:
                    total, leave = _time_by(m, pair[s], target, s, tau)
                    tau[s] = total / leave
        residual = 0.0
        for s in order:
            if s == target:
                continue
            total, leave = _time_by(m, pair[s], target, s, tau)
            best, excess = total / leave, total - leave * tau[s]
            for i in range(m.pair_ptr[s], m.pair_ptr[s + 1]):
                total, leave = _time_by(m, i, target, s, tau)
                if leave <= 0.0:
                    continue
                residual = max(residual, leave * tau[s] - total)
                if total / leave < best * (1.0 - 1e-12):
                    best, excess = total / leave, total - leave * tau[s]
                    pair[s] = i
            residual = max(residual, excess)
        if residual <= tol:
            break
    return residual


@kernel
def freeze_toward(m, target, tau, pair, chain, d):
    """Write the chosen pairs as moves to other states to a chain, and by how much their times differ from τ: d = 1/leave + Σ p(x)τ(x) − τ.

    (I − P̂)x = d, with P̂ the moves and no row for the target, says what τ lacks. No row of it has a horizon: all are marked as cut.
    """
    n = 0
    chain.ptr[0] = 0
    for s in range(tau.size):
        chain.cut[s], d[s] = 1, 0.0
        if s != target:
            total, leave = _time_by(m, pair[s], target, s, tau)
            for j in range(m.succ_ptr[pair[s]], m.succ_ptr[pair[s] + 1]):
                x = m.succ[j]
                if x not in (s, target):
                    chain.succ[n], chain.prob[n] = x, m.low[j] / leave
                    n += 1
            d[s] = total / leave - tau[s]
        chain.ptr[s + 1] = n
