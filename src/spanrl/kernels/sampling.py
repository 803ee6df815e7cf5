"""Draw outcomes: one 64-bit random number per step, by the alias method (Walker 1977; Vose 1991) on tables of a power of two.

The first bits of the number choose a slot of the pair, the rest decide between the two outcomes of that slot. The successors of both lie
in one word, so that the next state waits for one load, not two; what a step pays is off that path.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import allocating, kernel

_ONE, _SIX, _MOST = np.uint64(1), np.uint64(6), np.uint64(63)
_DOUBLE = 1.0 / 9007199254740992.0  # 2⁻⁵³


class Sampler(NamedTuple):
    """The outcomes of every pair, sorted by (pair, reward, successor), and the tables to draw one. Read-only, but for the clock.

    Where episodes are cut after some steps (``clock``), one pair more stands at the end: its outcomes are the states to begin anew from.
    """

    out_ptr: Any  # int64 [n_pairs+1]
    succ: Any  # uint32 [n]
    reward: Any  # float64 [n]
    start: Any  # uint64 [n_pairs]: first slot · 64 + (63 − log₂ of the number of slots)
    threshold: Any  # uint64 [slots]: the first outcome below it, the second from it on
    successors: Any  # uint64 [slots]: of the first outcome, and 2³² times that of the second
    outcome: Any  # uint32 [2·slots]: the two outcomes
    ends: Any  # bool [n]: whether the outcome ends an episode; [0] where episodes are not cut
    clock: Any  # int64 [2]: steps that the episode has had, and steps after which it is cut; [0] where episodes are not cut


ELAPSED, LIMIT = range(2)  # in Sampler.clock


@kernel
def locate(start, x):
    """Return the slot that the random word x chooses, and the bits that are left."""
    shift = start & _MOST
    return (start >> _SIX) + ((x >> _ONE) >> shift), x << (_MOST - shift)


@kernel
def sfc64(a, b, c, w):
    """Return one word of SFC64 (Doty-Humphrey) and the next state: numpy's own stream."""
    x = a + b + w
    rotated = (c << np.uint64(24)) | (c >> np.uint64(40))
    return x, b ^ (b >> np.uint64(11)), c + (c << np.uint64(3)), rotated + x, w + _ONE


@kernel
def to_unit(x):
    """Return the word as a number in [0, 1), as ``Generator.random`` does."""
    return np.float64(np.int64(x >> np.uint64(11))) * _DOUBLE


@kernel
def draw(sampler, pair, x):
    """Return the outcome of a pair that the random word x chooses."""
    slot, rest = locate(sampler.start[pair], x)
    return sampler.outcome[np.int64(slot) * 2 + (1 if rest >= sampler.threshold[slot] else 0)]


@kernel
def begin_anew(sampler, x):
    """Return the state in which an episode begins after a cut, as the random word x chooses it."""
    return np.int64(sampler.succ[draw(sampler, sampler.start.size - 1, x)])


@allocating
def build_slots(out_ptr, prob, succ):
    """Return (start, threshold, successors, outcome) of the alias tables."""
    n_pairs = out_ptr.size - 1
    bits, total, most = np.zeros(n_pairs, np.int64), 0, 1
    for i in range(n_pairs):
        while (1 << bits[i]) < out_ptr[i + 1] - out_ptr[i]:
            bits[i] += 1
        total += 1 << bits[i]
        most = max(most, 1 << bits[i])
    start, threshold = np.empty(n_pairs, np.uint64), np.empty(total, np.uint64)
    successors, outcome = np.empty(total, np.uint64), np.empty(2 * total, np.uint32)
    weight, other, todo = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    first = 0
    for i in range(n_pairs):
        slots = 1 << bits[i]
        start[i] = np.uint64(first * 64 + 63 - bits[i])
        _share_out(prob[out_ptr[i] : out_ptr[i + 1]], slots, weight, other, todo)
        for k in range(slots):
            own = out_ptr[i] + min(k, out_ptr[i + 1] - out_ptr[i] - 1)
            second = out_ptr[i] + other[k] if weight[k] < 1.0 else own
            threshold[first + k] = np.uint64(weight[k] * 2.0**64) if weight[k] < 1.0 else ~np.uint64(0)
            successors[first + k] = np.uint64(succ[own]) | (np.uint64(succ[second]) << np.uint64(32))
            outcome[2 * (first + k)], outcome[2 * (first + k) + 1] = own, second
        first += slots
    return start, threshold, successors, outcome


@allocating
def _share_out(prob, slots, weight, other, todo):
    """Give every slot its own outcome with ``weight`` and one ``other`` outcome for the rest; padding has weight 0."""
    for k in range(slots):
        weight[k] = prob[k] * slots if k < prob.size else 0.0
        other[k] = k
    small = 0  # todo[:small]: slots that want filling; from the back: slots that have too much
    large = slots
    for k in range(slots - 1, -1, -1):
        if weight[k] < 1.0:
            todo[small] = k
            small += 1
        else:
            large -= 1
            todo[large] = k
    excess = np.empty(slots)
    for k in range(slots):  # a slice would bring in numba's text for unequal lengths, two seconds of compiling
        excess[k] = weight[k]
    while small > 0 and large < slots:
        k, giver = todo[small - 1], todo[large]
        small -= 1
        weight[k], other[k] = excess[k], giver
        excess[giver] -= 1.0 - excess[k]
        if excess[giver] < 1.0:
            large += 1
            todo[small] = giver
            small += 1
        else:
            weight[giver] = 1.0
    for k in range(small):  # left by rounding: as good as full
        weight[todo[k]] = 1.0
    for k in range(large, slots):
        weight[todo[k]] = 1.0
