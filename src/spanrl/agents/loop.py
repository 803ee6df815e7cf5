"""The compiled loop of the learners that plan: play an episode, count, estimate, plan, measure, and again.

It is given its parts as functions: the estimate's ``fill``, the episode rule's ``limit``, and the ``tolerance`` of plans
(:mod:`spanrl.confidence.estimate`, :mod:`spanrl.agents.episodes`). It is compiled once, whichever they are. Python is met every 30 ms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.confidence.estimate import Known, check_rooms, check_sets
from spanrl.confidence.intersection import intersect
from spanrl.kernels.choosing import choose
from spanrl.kernels.clock import COUNTS, SAMPLING, SETS, SORTING, SWEEPS, now
from spanrl.kernels.counting import add_batch, note_changes
from spanrl.kernels.extended import CONVERGED, RUNNING, improve, start_planning
from spanrl.kernels.extremes import extremes
from spanrl.kernels.frozen_policy import by_length
from spanrl.kernels.interact import add_up, harvest, interact
from spanrl.kernels.jit import loop, part
from spanrl.kernels.plan_workspace import LIVE, N_SWEEPS, ROUNDS

T, STATE, PLANNING, MIXES, RECORDED, MARKED, NEW, LEFT, BEGUN, FROM = range(10)  # in Stage.where
BEFORE, MEAN_BEFORE, REWARD, MEAN = range(4)  # in Stage.sums
START, LOW, HIGH, SPAN, SWEPT, MIXED = range(6)  # columns of Stage.records
MARKED_REWARD, MARKED_MEAN, MARKED_EPISODES = range(3)  # columns of Stage.marks
DONE, TO_BEGIN, UNDER_WAY, STUCK = range(4)  # states of the plan
_PAUSE = 0.03  # seconds


class Problem(NamedTuple):
    """What an agent knows of a problem from the start, and the numbers of its parts."""

    n_states: int
    max_actions: int
    r_min: float
    r_max: float
    pair_ptr: Any  # int64 [S+1]
    settings: Any  # float64 [n]         of the estimate
    limit_settings: Any  # float64 [n]   of the episode rule
    kept: Any  # numbers of the estimate's own
    moved: Any  # float64 [m, n]         those of listed successors, which move along with them
    held: Any  # the intersection of the sets so far, if the agent takes it


class Stage(NamedTuple):
    """A run under way."""

    where: Any  # int64 [10]    steps done, state, how far the plan is, whether it mixes, episodes and measurements recorded, new
    #                           successors, steps that the episode may still have, its first step and its first state
    sums: Any  # float64 [4]    reward and Σ r(s, a), before the episode under way and up to now
    tally: Any  # int64 [outcomes]  what happened in it
    batch: Any  # :class:`spanrl.models.counts.Batch`, for what has happened once it is over
    words: Any  # uint64 [4]    random state of the environment
    agent_words: Any  # uint64 [4]  and of the agent
    records: Any  # float64 [n, 6]  of the episodes begun: start, gain bracket, span, sweeps, whether it mixes
    marks: Any  # float64 [n, 3]    of the measurements: reward and Σ r(s, a) up to then, and how many of these episodes had begun


@part
def _plan(fill, limit, tolerance, work, problem, seen, goal, t, state, steps, words, choice):
    """Estimate at time t, sweep for one budget, and choose the policy at the end; return (outcome, lo, hi, mixes, span, steps allowed).

    Rewards count from r_min. The sweeps in ``work.progress`` are 0 at the start. ``choice`` is written on success.
    """
    v, clock, sets = work.v, work.clock, work.sets
    begun, sorting = now(work.moment), clock[SORTING]
    known = Known(
        seen, work.changed[: work.n_changed[0]], t, state, steps, problem.n_states, problem.max_actions, problem.r_min,
        problem.r_max, problem.pair_ptr, words,
    )  # fmt: skip
    if work.progress[N_SWEEPS] == 0.0:
        fill(known, problem.settings, problem.kept, sets)
        intersect(known.changed, problem.n_states, problem.held, sets)
        check_sets(work.m.kind, problem.n_states, sets)
        check_rooms(work.m.kind, not work.exact, sets)
        if problem.r_min != 0.0:  # values count from r_min: their digits are not spent on an offset
            for i in range(work.shifted.size):
                work.shifted[i] = sets.r_high[i] - problem.r_min
        work.n_changed[0] = 0
        work.ws.version[0] += 1
        work.ws_least.version[0] += 1
        filled = now(work.moment)
        clock[SETS] += filled - begun
        begun = filled
    tol = tolerance(known)
    if not tol > 0.0:
        work.progress[ROUNDS] = np.inf  # it would never converge
        return RUNNING, -np.inf, np.inf, False, 0.0, 0
    outcome, lo, hi = improve(work, goal, tol)
    mixes, span, steps_allowed = False, 0.0, 0
    if outcome == CONVERGED:
        room, live = max(tol - (hi - lo), 0.0), int(work.progress[LIVE])
        mixes = choose(
            work.m, sets, work.ws, work.ranked, work.rows, work.least, work.ws_least, work.ranked_least, v, work.best, live,
            goal.span_bound, room, goal.mixture, choice.pairs, choice.weight,
        )  # fmt: skip
        steps_allowed = limit(known, problem.limit_settings, choice.pairs, choice.allowed)
        for k in range(choice.left.size):
            choice.left[k] = choice.allowed[k]
        low, high = extremes(v)
        span = high - low
    clock[SWEEPS] += now(work.moment) - begun - (clock[SORTING] - sorting)
    return outcome, lo, hi, mixes, span, steps_allowed


@loop
def plan_once(fill, limit, tolerance, work, problem, seen, goal, t, state, steps, words, choice):
    """Plan one episode, for those who begin it themselves: as :func:`play` does, one budget per call."""
    return _plan(fill, limit, tolerance, work, problem, seen, goal, t, state, steps, words, choice)


@part
def _take_in(sampler, mean, work, problem, seen, choice, stage):
    """Add the experience of the episode that is over to the counts."""
    where, sums, batch = stage.where, stage.sums, stage.batch
    paid, expected, n = harvest(sampler.out_ptr, sampler.reward, sampler.succ, mean, choice, stage.tally, batch)
    sums[BEFORE], sums[MEAN_BEFORE] = sums[BEFORE] + paid, sums[MEAN_BEFORE] + expected
    sums[REWARD], sums[MEAN] = sums[BEFORE], sums[MEAN_BEFORE]
    n_new = add_batch(batch.pair[:n], batch.reward[:n], batch.succ[:n], batch.times[:n], seen, problem.moved)
    assert n_new >= 0  # there is room for all successors that there are
    work.n_changed[0] = note_changes(batch.pair[:n], work.changed, work.n_changed[0])
    where[NEW] += n_new
    if not work.owned and where[NEW] * 50 > seen.succ_ptr[-1]:
        by_length(seen.succ_ptr, work.everyone, work.ws.pairs)  # this order only saves time: it may lag behind a little
        where[NEW] = 0


@loop
def play(fill, limit, tolerance, sampler, mean, work, problem, seen, goal, from_bias, choice, stage, times, steps):
    """Go on until all ``times`` are measured, or it is time to let Python look: after ``steps`` steps, 30 ms, a budget of the planner."""
    where, sums, records, marks = stage.where, stage.sums, stage.records, stage.marks
    clock = work.clock
    begun, last = now(work.moment), where[T] + steps
    start = begun
    where[RECORDED] = where[MARKED] = 0
    while True:
        if where[PLANNING] == TO_BEGIN:
            start_planning(work.progress, work.rows.lead, work.v, work.differences, from_bias)
            where[PLANNING] = UNDER_WAY
        if where[PLANNING] == UNDER_WAY:
            t = where[T] + 1
            outcome, lo, hi, mixes, span, where[LEFT] = _plan(
                fill, limit, tolerance, work, problem, seen, goal, t, where[STATE], t - where[BEGUN], stage.agent_words, choice
            )  # fmt: skip
            if outcome != CONVERGED:
                return
            k = where[RECORDED]
            records[k, START], records[k, LOW], records[k, HIGH] = t, lo, hi
            records[k, SPAN], records[k, SWEPT], records[k, MIXED] = span, work.progress[N_SWEEPS], mixes
            where[PLANNING], where[MIXES], where[RECORDED] = DONE, mixes, k + 1
            where[BEGUN], where[FROM] = t, where[STATE]
            start = now(work.moment)
            if k + 1 == records.shape[0] or start - begun > _PAUSE:
                return
        stop = min(last, times[where[MARKED]]) - where[T]
        done, state, over = interact(
            sampler, choice.pairs, choice.weight, where[MIXES] != 0, choice.left, stage.tally, stage.words,
            stage.agent_words, where[STATE], min(stop, where[LEFT]),
        )  # fmt: skip
        where[T] += done
        where[LEFT] -= done
        where[STATE] = state
        if not over and done == stop:
            paid, expected = add_up(sampler.out_ptr, sampler.reward, mean, choice.pairs, stage.tally)
            sums[REWARD], sums[MEAN] = sums[BEFORE] + paid, sums[MEAN_BEFORE] + expected
            k = where[MARKED]
            if where[T] == times[k]:
                marks[k, MARKED_REWARD], marks[k, MARKED_MEAN] = sums[REWARD], sums[MEAN]
                marks[k, MARKED_EPISODES] = where[RECORDED]
                where[MARKED] = k + 1
            if where[MARKED] == times.size or where[T] == last:
                clock[SAMPLING] += now(work.moment) - start
                return
            continue
        if where[T] < where[BEGUN]:  # not a single step: the next episode would have none either
            where[PLANNING] = STUCK
            return
        end = now(work.moment)
        clock[SAMPLING] += end - start
        _take_in(sampler, mean, work, problem, seen, choice, stage)
        where[PLANNING] = TO_BEGIN
        clock[COUNTS] += now(work.moment) - end
