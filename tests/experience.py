"""Random experience for tests of what learners do with it: problems, histories of steps, and the counts they make."""

from __future__ import annotations

import numpy as np

from spanrl import MDP, ProblemInfo
from spanrl.kernels.counting import add_batch
from spanrl.models.counts import Batch, Counts

Seen = dict[tuple[int, float, int], int]
"""{(pair, reward, successor): times}."""


def add(counts: Counts, seen: Seen) -> None:
    """Add experience to counts, as a learner does at the end of an episode."""
    batch = Batch.from_dict(seen)
    if add_batch(*batch, counts.seen, np.zeros((0, 0))) < 0:
        counts.reserve(2 * (counts.succ.size + batch.pair.size))
        add_batch(*batch, counts.seen, np.zeros((0, 0)))


def random_info(rng: np.random.Generator, S: int, A: int, *, r_min: float = 0.0, r_max: float = 1.0) -> ProblemInfo:
    """Return a problem in which every state has an action, and some do not have all."""
    available = rng.random((S, A)) < 0.7
    available[np.arange(S), rng.integers(0, A, S)] = True
    return ProblemInfo(S, A, r_min=r_min, r_max=r_max, available=available)


def random_counts(
    rng: np.random.Generator, info: ProblemInfo, most: int, *, least: int = 1, unseen: float = 0.2
) -> Counts:
    """Return counts of ``least`` to ``most`` visits per pair, with few successors each; a share of the pairs is never seen."""
    counts = Counts.empty(info.n_pairs)
    for i in range(info.n_pairs):
        if rng.random() < unseen:
            continue
        n = int(np.exp(rng.uniform(np.log(least), np.log(most))))
        few = rng.choice(info.n_states, size=min(info.n_states, int(rng.integers(1, 4))), replace=False).tolist()
        outcomes = [(r, s) for r in (info.r_min + info.size * np.round(rng.random(3), 2)).tolist() for s in few]
        law = rng.dirichlet(np.ones(len(outcomes)))
        for size in (1, n // 2, n - n // 2 - 1):  # three episodes
            times = rng.multinomial(max(size, 0), law).tolist()
            add(counts, {(i, r, s): k for (r, s), k in zip(outcomes, times, strict=True) if k})
    return counts


def empirical_mdp(counts: Counts, info: ProblemInfo) -> MDP:
    """Return the MDP of the frequencies; a pair never seen goes to state 0 and pays r_min."""
    P = np.zeros((info.n_states, info.n_actions, info.n_states))
    r = np.full((info.n_states, info.n_actions), info.r_min)
    available = np.zeros(r.shape, dtype=bool)
    for i, (s, a) in enumerate(zip(info.pair_state, info.action, strict=True)):
        available[s, a] = True
        part = slice(counts.succ_ptr[i], counts.succ_ptr[i + 1])
        if counts.n[i]:
            P[s, a, counts.succ[part]] = counts.times[part] / counts.n[i]
            r[s, a] = counts.r_mean[i]
        else:
            P[s, a, 0] = 1.0
    return MDP.from_dense(P, r, available=available, r_min=info.r_min, r_max=info.r_max)
