"""Collect the measurements of a run while it lasts, so that it can be cut off at any moment."""

from __future__ import annotations

from math import nan
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.learner import Columns, Episode
from spanrl.errors import RunFileError
from spanrl.learning.files import AUDIT, CURVE, EPISODES
from spanrl.learning.run import Run
from spanrl.learning.snapshot import State, columns
from spanrl.learning.times import measurement_times
from spanrl.models.checks import Array
from spanrl.models.mdp import MDP
from spanrl.models.states import StateReader

_SPAN = Episode._fields.index("span")
assert Episode._fields[: len(EPISODES)] == tuple(EPISODES)


class Recorder:
    """The rows of the curve and of the episodes so far."""

    def __init__(self, horizon: int, points: int, gain: float | None, mdp: MDP | None, audit: bool) -> None:
        """Measure up to ``horizon``; g* and the model, where known, belong to the measuring side alone."""
        self.horizon, self.gain, self._mdp, self._audit = horizon, gain, mdp, audit
        self._kinds = EPISODES | AUDIT if audit else EPISODES
        self._times = measurement_times(horizon, points)
        self._begun = perf_counter()
        self._rows = np.empty((self._times.size, 5))  # the columns of the curve but t
        self._done, self.next_time = 0, int(self._times[0])
        self._episodes: list[tuple[Any, ...]] = []
        self._now: tuple[int, float, float] = (0, 0.0, 0.0)  # t, reward, Σ r(s, a)
        self._episode: tuple[float, int] = (nan, 0)  # span and number of the episode under way

    def upcoming(self, most: int) -> NDArray[np.int64]:
        """Return the next times to measure at."""
        return self._times[self._done : self._done + most].copy()

    def begin(self, learner: Any) -> None:
        """Record the episode that a learner has just begun."""
        episode: Episode = learner.episode
        found: tuple[Any, ...] = ()
        if self._audit:
            assert self._mdp is not None
            found = learner.confidence_set().contains(self._mdp), episode.gain_low, episode.gain_high
        self._begin(episode, found)

    def _begin(self, episode: Episode, found: tuple[Any, ...] = ()) -> None:
        self._episodes.append((*episode[: len(EPISODES)], *found))
        self._episode = episode.span, len(self._episodes)

    def take(self, episodes: Columns, marks: NDArray[np.float64]) -> None:
        """Record episodes and the next measurements (reward, Σ r(s,a), how many of the episodes had begun) [n, 3]; there is no audit."""
        reward, expected, begun = marks.T
        span, number = self._episode
        spans = np.array([span, *episodes[_SPAN]])
        done, end = self._done, self._done + len(marks)
        self._episodes += zip(*episodes[: len(EPISODES)], strict=True)
        under_way = spans[begun.astype(np.int64)], number + begun
        self._rows[done:end].T[:] = self._row(self._times[done:end], reward, expected, *under_way)
        self._move_to(end)
        self._episode = float(spans[-1]), len(self._episodes)

    def reach(self, t: int, reward: float, expected: float) -> None:
        """Say how far the run is: the reward received and Σ r(s,a) after t steps. Call it at least at every measurement time."""
        self._now = t, reward, expected
        if t == self.next_time:
            self._rows[self._done] = self._row(t, reward, expected, *self._episode)
            self._move_to(self._done + 1)

    def _row(self, t: Any, reward: Any, expected: Any, span: Any, number: Any) -> tuple[Any, ...]:
        """Return a row of the curve but its t, or many as columns."""
        best = t * (self.gain if self.gain is not None else nan)
        return reward, best - reward, best - expected, span, number

    def _move_to(self, done: int) -> None:
        self._done = done
        self.next_time = int(self._times[done]) if done < self._times.size else self.horizon + 1

    def run(self, meta: dict[str, Any], seconds: dict[str, float], interrupted: bool) -> Run:
        """Return what was recorded; a run that was cut off ends with what it had reached."""
        curve, (t, reward, expected) = self._curve(), self._now
        if t > (curve["t"][-1] if self._done else 0):
            last = t, *self._row(t, reward, expected, *self._episode)
            curve = {name: np.append(column, x) for (name, column), x in zip(curve.items(), last, strict=True)}
        episodes = columns(self._episodes, self._kinds)
        end = (
            curve["t"][-1] if curve["t"].size else 0
        )  # Ctrl-C may come when later episodes were noted, but no row of theirs
        n_begun = int(np.searchsorted(episodes["start"], end + 1, side="right"))
        episodes = {name: column[:n_begun] for name, column in episodes.items()}
        told = {**meta, "interrupted": interrupted, "seconds": {**seconds, "total": self._total()}}
        return Run(**curve, episodes=episodes, meta=told)

    def state(self) -> State:
        """Return the rows so far, for a checkpoint."""
        return {
            **{f"curve.{name}": column for name, column in self._curve().items()},
            **{f"episodes.{name}": column for name, column in columns(self._episodes, self._kinds).items()},
            "now": list(self._now), "episode": list(self._episode), "total": self._total(),
        }  # fmt: skip

    def restore(self, given: StateReader, t: int) -> None:
        """Resume from a checkpoint at step t; the horizon may have become longer, and then the old one is no time to measure at."""
        curve, episodes = given.table("curve", CURVE), given.table("episodes", self._kinds)
        kept = np.isin(curve["t"], self._times)
        done = int(np.searchsorted(self._times, t, side="right"))
        begun, n_episodes = curve["n_episodes"], episodes["start"].size
        counted = (begun >= 0).all() and (begun <= n_episodes).all() and np.isfinite(curve["reward"]).all()
        if not counted or not np.array_equal(curve["t"][kept], self._times[:done]):
            raise RunFileError("checkpoint: the curve is not one of this run, measured at its times.")
        self._now = given.row("now", (int, float, float))
        self._episode = given.row("episode", (float, int), finite=False)  # other agents have no span
        start = episodes["start"]
        rising = (start[1:] > start[:-1]).all() and (start >= 1).all() and (start <= t + 1).all()
        if self._now[0] != t or self._episode[1] != n_episodes or not rising:
            raise RunFileError("checkpoint: the episodes are not those of a run of so many steps.")
        self._move_to(done)
        for column, name in zip(self._rows.T, list(CURVE)[1:], strict=True):
            column[:done] = curve[name][kept]
        self._episodes = list(zip(*(episodes[name].tolist() for name in self._kinds), strict=True))
        self._begun = perf_counter() - given.number("total")

    def _curve(self) -> dict[str, Array]:
        """Return the columns of the curve so far."""
        parts = self._times[: self._done], *self._rows[: self._done].T
        return {name: part.astype(kind) for (name, kind), part in zip(CURVE.items(), parts, strict=True)}

    def _total(self) -> float:
        return perf_counter() - self._begun
