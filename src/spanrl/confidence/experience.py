"""Add new experience to the counts of a learner."""

from __future__ import annotations

from spanrl.kernels.counting import add_rewards, add_successors, list_successors, update_shares
from spanrl.models.counts import Batch, Counts


def take_in(counts: Counts, batch: Batch) -> None:
    """Bring ``counts`` up to date with the experience of an episode."""
    pair, reward, succ, times = batch
    add_rewards(pair, reward, times, *counts.statistics())
    table = (counts.succ_ptr, counts.succ, counts.times)
    if not add_successors(pair, succ, times, *table):
        shares = counts.shares
        *table, p_hat, p_error = list_successors(pair, succ, *table, shares.p_hat, shares.p_error)
        counts.succ_ptr, counts.succ, counts.times = table
        counts.shares = shares._replace(p_hat=p_hat, p_error=p_error)
        add_successors(pair, succ, times, *table)
    update_shares(pair, counts.n, counts.r_sq, counts.succ_ptr, counts.times, counts.shares)
