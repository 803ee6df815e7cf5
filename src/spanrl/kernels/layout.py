"""The arrays that kernels work on. One layout for all kinds of model, so that every kernel compiles once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PLAIN, BOX, BALL, KL, BONUS, NOSS = range(6)

FREE = 2.0
"""Value of ``slack`` that marks a box which allows every distribution."""


class Arrays(NamedTuple):
    """A model, read-only. States → pairs → listed successors.

    plain: ``low`` holds p; room, slack and rest are empty.
    box:   ``low`` the lower ends, ``room`` = high − low, ``slack`` = 1 − Σ low (or FREE), ``rest`` the upper end of each state not listed.
    ball:  ``low`` the centre, ``slack`` = radius / 2; room and rest are empty.
    KL:    ``low`` the centre, positive, ``slack`` the radius in KL(centre, ·); room and rest are empty.
    bonus: ``low`` the centre, ``slack`` and ``rest`` what :mod:`spanrl.kernels.bonus` calls x and y; of learners only.
    NOSS:  a box, but for ``slack``, what :mod:`spanrl.kernels.noss` calls x; of learners only.
    """

    kind: int
    pair_ptr: Any  # int64 [S+1]
    succ_ptr: Any  # int64 [n_pairs+1]
    succ: Any  # uint32 [n]
    low: Any  # float64 [n]
    room: Any  # float64 [n]
    slack: Any  # float64 [n_pairs]
    rest: Any  # float64 [n_pairs]


class Workspace(NamedTuple):
    """What a sweep over a set model writes to: the order of the states, and the rows kept in that order between sweeps."""

    order: Any  # uint32 [S]     states by falling value, ties by index
    keys: Any  # float64 [S]     their values
    prefix: Any  # float64 [S+1]   Σ keys[:k]
    w: Any  # float64 [S]        value of each state: sign·v
    rank: Any  # uint32 [S]      position of each state in ``order``
    tmp_keys: Any  # float64 [S]
    tmp_order: Any  # uint32 [S]
    succ: Any  # uint32 [n]      rows, each in that order
    low: Any  # float64 [n]
    room: Any  # float64 [n]
    q: Any  # float64 [n_pairs]  values of the pairs
    pairs: Any  # int64 [n_pairs]  all pairs
    todo: Any  # int64 [n_pairs]  those of them whose rows must be sorted
    taken: Any  # int64 [n_pairs]  the version of the model that each row above was copied from
    version: Any  # int64 [1]      the version of the model


def workspace(m: Arrays) -> Workspace:
    """Allocate the workspace of a model (empty for a plain one)."""
    if m.kind == PLAIN:
        return new_workspace(0, 0, 0)
    return new_workspace(m.pair_ptr.size - 1, m.succ_ptr.size - 1, m.succ.size)


def new_workspace(n_states: int, n_pairs: int, n_listed: int) -> Workspace:
    """Allocate a workspace with rows still to be written."""
    S = n_states
    return Workspace(
        np.arange(S, dtype=np.uint32),
        np.empty(S),
        np.zeros(S + 1),
        np.empty(S),
        np.empty(S, dtype=np.uint32),
        np.empty(S),
        np.empty(S, dtype=np.uint32),
        np.empty(n_listed, dtype=np.uint32),
        np.empty(n_listed),
        np.empty(n_listed),
        np.empty(n_pairs),
        np.arange(n_pairs),
        np.empty(n_pairs, dtype=np.int64),
        np.zeros(n_pairs, dtype=np.int64),
        np.ones(1, dtype=np.int64),
    )
