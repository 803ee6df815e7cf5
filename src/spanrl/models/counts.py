"""What a learner has seen: visits, reward statistics, and a growing sparse table of successors. Raw numbers: bounds derive their own.

Rewards are kept as mean and sum of squared deviations (Welford 1962), brought up to date once per episode with all of its rewards at once:
for ν new rewards with deviations d = r − r̂ from the mean so far ::

    N' = N + ν,    r̂' = r̂ + Σd/N',    M' = M + Σd² − (Σd)²/N'

which for ν = 1 is Welford's recurrence. The sums run over the distinct (reward, successor) of a pair in sorted order, so that the result
does not depend on the order in which things happened.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import RunFileError
from spanrl.models.checks import rises, row_sums
from spanrl.models.info import ProblemInfo
from spanrl.models.states import StateReader

_SLACK = 1e-9  # relative, for sums and roots that were computed in another order


class Batch(NamedTuple):
    """New experience, added up: distinct (pair, reward, successor), sorted, and how often each was seen."""

    pair: NDArray[np.int64]
    reward: NDArray[np.float64]
    succ: NDArray[np.uint32]
    times: NDArray[np.int64]

    @classmethod
    def room(cls, n: int) -> Batch:
        """Allocate for n of them."""
        return cls(np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.int64))

    def first(self, n: int) -> Batch:
        """Return a copy of the first n."""
        return Batch(self.pair[:n].copy(), self.reward[:n].copy(), self.succ[:n].copy(), self.times[:n].copy())

    @classmethod
    def from_dict(cls, seen: dict[tuple[int, float, int], int]) -> Batch:
        """Sort what was collected one by one: {(pair, reward, successor): times}."""
        rows = sorted(seen.items())
        pair, reward, succ = zip(*(key for key, _ in rows), strict=True) if rows else ((), (), ())
        return cls(
            np.array(pair, dtype=np.int64),
            np.array(reward, dtype=np.float64),
            np.array(succ, dtype=np.uint32),
            np.array([times for _, times in rows], dtype=np.int64),
        )


class Seen(NamedTuple):
    """All arrays of the counts, as the kernels take them: those [n] of successors have room for more than are listed."""

    n: NDArray[np.int64]  # [n_pairs] visits N
    r_mean: NDArray[np.float64]  # [n_pairs]
    r_sq: NDArray[np.float64]  # [n_pairs]
    succ_ptr: NDArray[np.int64]  # [n_pairs+1]
    succ: NDArray[np.uint32]  # [n]
    times: NDArray[np.int64]  # [n]


_LISTED = ("succ", "times")


class Counts:
    """The statistics of every pair.

    Args:
        n: [n_pairs], N(s, a).
        r_mean: [n_pairs], the mean reward.
        r_sq: [n_pairs], the sum of squared deviations from it.
        succ_ptr, succ, times: the seen successors of pair i are ``succ[succ_ptr[i]:succ_ptr[i+1]]``, sorted, seen ``times``.
    """

    def __init__(
        self,
        n: NDArray[np.int64],
        r_mean: NDArray[np.float64],
        r_sq: NDArray[np.float64],
        succ_ptr: NDArray[np.int64],
        succ: NDArray[np.uint32],
        times: NDArray[np.int64],
    ) -> None:
        """Take the arrays."""
        self.seen = Seen(n, r_mean, r_sq, succ_ptr, succ, times)

    @classmethod
    def empty(cls, n_pairs: int) -> Counts:
        """Return the table before anything was seen."""
        statistics = np.zeros(n_pairs, dtype=np.int64), np.zeros(n_pairs), np.zeros(n_pairs)
        listed = np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int64)
        return cls(*statistics, np.zeros(n_pairs + 1, dtype=np.int64), *listed)

    def reserve(self, room: int) -> None:
        """Make room for ``room`` successors in all."""
        if self.seen.succ.size >= room:
            return
        wider: dict[str, Any] = {"succ_ptr": self.succ_ptr.copy()}
        for name in _LISTED:
            old = getattr(self.seen, name)
            wider[name] = np.concatenate((old, np.zeros(room - old.size, dtype=old.dtype)))
        self.seen = self.seen._replace(**wider)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return copies of all arrays by name, without the room for more."""
        listed = self.succ_ptr[-1]
        return {name: (part[:listed] if name in _LISTED else part).copy() for name, part in self.seen._asdict().items()}

    @classmethod
    def from_state(cls, given: StateReader, info: ProblemInfo, steps: int) -> Counts:
        """Return the counts of :meth:`arrays` from a checkpoint, once they have proved possible after ``steps`` steps."""
        S, k = info.n_states, info.n_pairs
        n = given.array("n", np.int64, (k,), 0, steps)
        largest = (1.0 + _SLACK) * max(abs(info.r_min), abs(info.r_max))  # pairs that were not visited have a mean of 0
        r_mean = given.array("r_mean", np.float64, (k,), -largest, largest)
        r_sq = given.array("r_sq", np.float64, (k,), 0.0, 4.0 * largest * largest * np.maximum(n, 1))
        succ = given.array("succ", np.uint32, (None,), 0, S - 1)
        times = given.array("times", np.int64, succ.shape, 1, steps)
        succ_ptr = given.array("succ_ptr", np.int64, (k + 1,), 0, succ.size)
        self = cls(n, r_mean, r_sq, succ_ptr, succ, times)
        if not rises(succ_ptr, succ.size) or n.sum(dtype=np.float64) > steps or not self._is_consistent():
            raise RunFileError("checkpoint: the counts of the learner do not fit together.")
        return self

    def _is_consistent(self) -> bool:
        """Tell whether rows are sorted and add up to their visits."""
        ptr, times = self.succ_ptr, self.times
        sorted_ = self.succ[1:] > self.succ[:-1]
        sorted_[ptr[1:-1][(ptr[1:-1] > 0) & (ptr[1:-1] < times.size)] - 1] = True  # where another row begins
        return bool(sorted_.all()) and np.array_equal(row_sums(ptr, times), self.n)

    @property
    def n(self) -> NDArray[np.int64]:
        """N(s, a) [n_pairs]."""
        return self.seen.n

    @property
    def r_mean(self) -> NDArray[np.float64]:
        """The mean reward [n_pairs]."""
        return self.seen.r_mean

    @property
    def r_sq(self) -> NDArray[np.float64]:
        """The sum of squared deviations from the mean reward [n_pairs]."""
        return self.seen.r_sq

    @property
    def succ_ptr(self) -> NDArray[np.int64]:
        """Where the successors of each pair begin [n_pairs+1]."""
        return self.seen.succ_ptr

    @property
    def succ(self) -> NDArray[np.uint32]:
        """The listed successors."""
        return self.seen.succ[: self.succ_ptr[-1]]

    @property
    def times(self) -> NDArray[np.int64]:
        """How often each of them was seen."""
        return self.seen.times[: self.succ_ptr[-1]]

    @property
    def n_pairs(self) -> int:
        """The number of pairs."""
        return self.n.size

    @property
    def r_variance(self) -> NDArray[np.float64]:
        """The unbiased sample variance of the rewards, 0 where N ≤ 1."""
        out: NDArray[np.float64] = np.where(self.n > 1, self.r_sq / np.maximum(self.n - 1, 1), 0.0)
        return out
