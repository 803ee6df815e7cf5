"""Episodes in compiled code, one after the other: play, count, plan, measure, and again. Python is met every 30 ms or so."""

from __future__ import annotations

from typing import Any, NamedTuple

from spanrl.confidence.episode import plan_episode
from spanrl.kernels.clock import COUNTS, SAMPLING, now
from spanrl.kernels.counting import add_batch
from spanrl.kernels.extended import CONVERGED, start_planning
from spanrl.kernels.frozen import by_length
from spanrl.kernels.interact import add_up, harvest, interact
from spanrl.kernels.jit import kernel

T, STATE, PLANNING, MIXES, RECORDED, MARKED, NEW = range(7)
DONE, TO_BEGIN, UNDER_WAY = range(3)  # states of the plan
_PAUSE = 0.03  # seconds


class Stage(NamedTuple):
    """A run under way."""

    where: Any  # int64 [7]     steps done, state, how far the plan is, whether it mixes, episodes and measurements recorded, new successors
    sums: Any  # float64 [4]    reward and Σ r(s, a) before the episode under way, and up to now
    tally: Any  # int64 [outcomes]  what happened in it
    batch: Any  # :class:`spanrl.models.counts.Batch`, for what has happened once it is over
    words: Any  # uint64 [4]    random state of the environment
    agent_words: Any  # uint64 [4]  and of the agent
    records: Any  # float64 [n, 6]  of the episodes begun: start, gain bracket, span, sweeps, whether it mixes
    marks: Any  # float64 [n, 3]    of the measurements: reward and Σ r(s, a) up to then, and how many of these episodes had begun


@kernel
def play(sampler, mean, desk, rule, seen, goal, from_bias, choice, stage, times, steps):
    """Go on until all ``times`` are measured, or it is time to let Python look: after ``steps`` steps, 30 ms, a budget of the planner."""
    where, sums, batch, records, marks = stage.where, stage.sums, stage.batch, stage.records, stage.marks
    clock = desk.clock
    begun, last = now(desk.moment), where[T] + steps
    start = begun
    where[RECORDED] = where[MARKED] = 0
    while True:
        if where[PLANNING] == TO_BEGIN:
            start_planning(desk.progress, desk.rows.lead, desk.v, from_bias)
            where[PLANNING] = UNDER_WAY
        if where[PLANNING] == UNDER_WAY:
            t = where[T] + 1
            outcome, lo, hi, mixes, span = plan_episode(desk, rule, seen, goal, t, choice)
            if outcome != CONVERGED:
                return
            k = where[RECORDED]
            records[k, 0], records[k, 1], records[k, 2] = t, lo, hi
            records[k, 3], records[k, 4], records[k, 5] = span, desk.progress[0], mixes
            where[PLANNING], where[MIXES], where[RECORDED] = DONE, mixes, k + 1
            start = now(desk.moment)
            if k + 1 == records.shape[0] or start - begun > _PAUSE:
                return
        done, state, over = interact(
            sampler, choice.pairs, choice.weight, where[MIXES] != 0, choice.left, stage.tally, stage.words,
            stage.agent_words, where[STATE], min(last, times[where[MARKED]]) - where[T],
        )  # fmt: skip
        where[T] += done
        where[STATE] = state
        if not over:
            paid, expected = add_up(sampler.out_ptr, sampler.reward, mean, choice.pairs, stage.tally)
            sums[2], sums[3] = sums[0] + paid, sums[1] + expected
            k = where[MARKED]
            if where[T] == times[k]:
                marks[k, 0], marks[k, 1], marks[k, 2] = sums[2], sums[3], where[RECORDED]
                where[MARKED] = k + 1
            if where[MARKED] == times.size or where[T] == last:
                clock[SAMPLING] += now(desk.moment) - start
                return
            continue
        end = now(desk.moment)
        clock[SAMPLING] += end - start
        paid, expected, n = harvest(
            sampler.out_ptr, sampler.reward, sampler.succ, mean, choice.pairs, choice.left, seen.n, stage.tally, batch
        )
        sums[0], sums[1] = sums[0] + paid, sums[1] + expected
        sums[2], sums[3] = sums[0], sums[1]
        n_new = add_batch(batch.pair[:n], batch.reward[:n], batch.succ[:n], batch.times[:n], seen)
        assert n_new >= 0  # there is room for all successors that there are
        where[NEW] += n_new
        if where[NEW] * 50 > seen.succ_ptr[-1]:  # the order of the pairs only saves time: it may lag behind a little
            by_length(seen.succ_ptr, desk.everyone, desk.ws.pairs)
            where[NEW] = 0
        where[PLANNING] = TO_BEGIN
        clock[COUNTS] += now(desk.moment) - end
