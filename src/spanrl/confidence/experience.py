"""Add new experience to the counts of a learner."""

from __future__ import annotations

from spanrl.kernels.counting import add_batch
from spanrl.models.counts import Batch, Counts


def take_in(counts: Counts, batch: Batch) -> None:
    """Bring ``counts`` up to date with the experience of an episode."""
    if add_batch(*batch, counts.seen) < 0:
        counts.reserve(2 * (counts.succ.size + batch.pair.size))  # more will come
        add_batch(*batch, counts.seen)
