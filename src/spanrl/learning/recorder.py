"""Collect the measurements of a run while it goes on, so that it can be cut off at any moment."""

from __future__ import annotations

from math import nan
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.learner import Episode
from spanrl.learning.files import AUDIT, CURVE, EPISODES
from spanrl.learning.run import Run
from spanrl.learning.snapshot import State, columns
from spanrl.learning.times import measurement_times
from spanrl.models.mdp import MDP


class Recorder:
    """The rows of the curve and of the episodes so far."""

    def __init__(self, horizon: int, points: int, gain: float | None, mdp: MDP | None, audit: bool) -> None:
        """Measure up to ``horizon``; g* and the model, where known, belong to the measuring side alone."""
        self.horizon, self.gain, self._mdp, self._audit = horizon, gain, mdp, audit
        self._kinds = EPISODES | AUDIT if audit else EPISODES
        self._times: list[int] = [*measurement_times(horizon, points).tolist(), horizon + 1]
        self._begun = perf_counter()
        self._rows: list[tuple[int, float, float, float, float, int]] = []
        self._episodes: list[tuple[Any, ...]] = []
        self._now: tuple[int, float, float] = (0, 0.0, 0.0)  # t, reward, Σ r(s, a)
        self._episode: tuple[float, int] = (nan, 0)  # span and number of the episode under way

    @property
    def next_time(self) -> int:
        """The next time to measure at."""
        return self._times[len(self._rows)]

    def upcoming(self, most: int) -> NDArray[np.int64]:
        """Return the next times to measure at."""
        done = len(self._rows)
        return np.array(self._times[done : min(done + most, len(self._times) - 1)], dtype=np.int64)

    def begin(self, learner: Any) -> None:
        """Record the episode that a learner has just begun."""
        episode: Episode = learner.episode
        found: tuple[Any, ...] = ()
        if self._audit:
            assert self._mdp is not None
            found = learner.confidence_set().contains(self._mdp), episode.gain_low, episode.gain_high
        self._begin(episode, found)

    def _begin(self, episode: Episode, found: tuple[Any, ...] = ()) -> None:
        row = (episode.start, episode.gain, episode.span, episode.sweeps, episode.deterministic)
        self._episodes.append((*row, *found))
        self._episode = episode.span, len(self._episodes)

    def take(self, episodes: list[Episode], times: list[int], marks: list[list[float]]) -> None:
        """Record episodes and measurements (reward, Σ r(s,a), how many of the episodes had begun) in their order; there is no audit."""
        done = 0
        for t, (reward, expected, begun) in zip(times, marks, strict=True):
            if begun > done:
                for episode in episodes[done : int(begun)]:
                    self._begin(episode)
                done = int(begun)
            self._rows.append(self._row(t, reward, expected))
        for episode in episodes[done:]:
            self._begin(episode)

    def reach(self, t: int, reward: float, expected: float) -> None:
        """Say how far the run is: the reward received and Σ r(s,a) after t steps. Call it at least at every measurement time."""
        self._now = t, reward, expected
        if t == self.next_time:
            self._rows.append(self._row(t, reward, expected))

    def _row(self, t: int, reward: float, expected: float) -> tuple[int, float, float, float, float, int]:
        best = t * self.gain if self.gain is not None else nan
        return t, reward, best - reward, best - expected, *self._episode

    def run(self, meta: dict[str, Any], seconds: dict[str, float], interrupted: bool) -> Run:
        """Return what was recorded; a run that was cut off ends with what it had reached."""
        rows = self._rows
        if self._now[0] > (rows[-1][0] if rows else 0):
            rows = [*rows, self._row(*self._now)]
        curve, episodes = columns(rows, CURVE), columns(self._episodes, self._kinds)
        told = {**meta, "interrupted": interrupted, "seconds": {**seconds, "total": self._total()}}
        return Run(**curve, episodes=episodes, meta=told)

    def state(self) -> State:
        """Return the rows so far, for a checkpoint."""
        return {
            **{f"curve.{name}": column for name, column in columns(self._rows, CURVE).items()},
            **{f"episodes.{name}": column for name, column in columns(self._episodes, self._kinds).items()},
            "now": list(self._now), "episode": list(self._episode), "total": self._total(),
        }  # fmt: skip

    def restore(self, state: State) -> None:
        """Go on from a checkpoint; the horizon may have become longer, and then the old one is no time to measure at."""
        rows = zip(*(state[f"curve.{name}"].tolist() for name in CURVE), strict=True)
        times = set(self._times)
        self._rows = [row for row in rows if row[0] in times]
        self._episodes = list(zip(*(state[f"episodes.{name}"].tolist() for name in self._kinds), strict=True))
        self._now, self._episode = tuple(state["now"]), tuple(state["episode"])
        self._begun = perf_counter() - state["total"]

    def _total(self) -> float:
        return perf_counter() - self._begun
