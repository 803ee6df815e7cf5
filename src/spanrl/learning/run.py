"""The result of learning."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.axes import BLUE, DARK_GREY, new_axes, tidy
from spanrl.display import as_html
from spanrl.errors import InputError, RunFileError
from spanrl.learning import files
from spanrl.learning.files import CURVE, SPEC, episode_kinds
from spanrl.learning.learned import Learned, LearnedModel
from spanrl.models.checks import Array, immutable
from spanrl.models.costs import flip
from spanrl.models.policy import Policy
from spanrl.terminal import visible

_META = (*SPEC, "gain", "interrupted", "audit", "r_min", "r_max", "n_states", "n_actions", "seconds")

_NOT_SAVED = "files of a run hold its curve and its episodes alone. Use the run that learn() returned"


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Result of :func:`spanrl.learn`, in the user's units.

    At the measurement times ``t`` (steps done; the last is the horizon): the cumulative ``reward``, the ``regret`` t·g* − reward, the
    ``pseudo_regret``, the ``span`` of the optimistic bias of the episode under way, and the number of episodes begun. Regrets are NaN
    where g* is not known. ``episodes`` has one row per episode: its ``start``, the optimistic ``gain`` and ``span``, the ``sweeps`` of the
    solver, and whether the policy was ``deterministic``; with ``audit=True`` also whether the confidence set ``contains`` the true model,
    and the bracket ``gain_low``, ``gain_high``. ``meta`` tells env, agent, seed, horizon, points, gain, interrupted, audit, r_min,
    r_max, n_states, n_actions and seconds (planning, simulating, total). Of a Gymnasium environment it also has how it was ``played``
    (from its table, or step by step); where that cuts its episodes, ``step_limit`` (None where the environment itself cuts them) and,
    unless g* was given, ``regret_exact``: False, as g* ignores the cuts.
    Where the agent intersects its sets, ``fallbacks`` counts the intersections that were empty; with NOSS, ``plans_cut`` the plans that
    ended unconverged; with IMED-RL, ``steps_unsolved`` the steps whose sweeps did not suffice. In a model with costs ``meta["costs"]`` is
    True; arrays and ``meta`` hold rewards = −costs all the same, as files do, and what is printed and drawn are costs.
    ``notes`` are sentences without which the run should not be read: that the confidence sets were vacuous to the end
    (:mod:`spanrl.confidence.vacuity`), or that the span bound is below sp(h*).

    Attributes:
        t, reward, regret, pseudo_regret, span, n_episodes: arrays at the measurement times.
        episodes: a dict of arrays.
        meta: what was run.
        notes: sentences on it.
        policy, model: what the learner knew at the end, see there.

    >>> import spanrl
    >>> run = spanrl.learn("two-state", "ucrl", horizon=1000, seed=0)
    >>> int(run.t[-1]), len(run.episodes["start"]) == int(run.n_episodes[-1])
    (1000, True)
    """

    t: NDArray[np.int64]
    reward: NDArray[np.float64]
    regret: NDArray[np.float64]
    pseudo_regret: NDArray[np.float64]
    span: NDArray[np.float64]
    n_episodes: NDArray[np.int64]
    episodes: dict[str, Array]
    meta: dict[str, Any]
    _learned: Learned = field(init=False, default=Learned(_NOT_SAVED, _NOT_SAVED))

    def __post_init__(self) -> None:
        """Check that all is there, and freeze the arrays."""
        kinds = episode_kinds(self.episodes)
        _check_names("episodes", self.episodes, kinds)
        _check_names("meta", [key for key in self.meta if key in _META], _META)
        for name, kind in CURVE.items():
            object.__setattr__(self, name, immutable(getattr(self, name), kind))
        object.__setattr__(
            self, "episodes", {name: immutable(self.episodes[name], kind) for name, kind in kinds.items()}
        )
        object.__setattr__(self, "meta", dict(self.meta))
        _check_lengths("curve", {name: getattr(self, name) for name in CURVE})
        _check_lengths("episodes", self.episodes)

    @property
    def costs(self) -> bool:
        """Whether the model has costs: arrays hold rewards = −costs then, and what is printed and drawn are costs."""
        return bool(self.meta.get("costs", False))

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before its horizon."""
        return bool(self.meta["interrupted"])

    def keep(self, learned: Learned) -> Run:
        """Hold what the learner knew at the end, which files do not; return the run."""
        object.__setattr__(self, "_learned", learned)
        return self

    @property
    def policy(self) -> Policy:
        """The policy of the last episode; of an agent that decides at every step, the best actions by what it knew at the end.

        Raises:
            InputError: the run was read from files, or its agent has no policy.

        >>> import spanrl
        >>> spanrl.learn("two-state", "ucrl", horizon=10_000, seed=0).policy
        <Policy: 2 states, 2 actions, deterministic>
        """
        policy = self._learned.policy
        if isinstance(policy, str):
            raise InputError(f"run.policy: {policy}.")
        return policy

    @property
    def model(self) -> LearnedModel:
        """What the learner has counted: N(s, a), p̂ and r̂ of all steps, those after the last measurement of an interrupted run included.

        Raises:
            InputError: the run was read from files, or its agent counts no transitions.

        >>> import spanrl
        >>> print(spanrl.learn("two-state", "ucrl", horizon=100, seed=0).model)
        LearnedModel: 100 steps, 2 transitions seen
        2 of 2 states and 2 of 4 pairs played
        state  action  N   r̂  p̂
        s0     a0      50  0   s1: 1
        s1     a0      50  0   s0: 1
        """
        model = self._learned.model
        if isinstance(model, str):
            raise InputError(f"run.model: {model}.")
        return model

    def save(self, dir: str | os.PathLike[str]) -> None:  # noqa: A002
        """Write curve.parquet, episodes.parquet and meta.json as the new folder ``dir``; parents are made, nothing is overwritten."""
        files.write_run(files.check_free(dir), self.to_files())

    def to_files(self) -> dict[str, bytes]:
        """Return the content of curve.parquet, episodes.parquet and meta.json."""
        curve = {name: getattr(self, name) for name in CURVE}
        return files.pack_run(curve, self.episodes, self.meta)

    @classmethod
    def load(cls, dir: str | os.PathLike[str]) -> Run:  # noqa: A002
        """Return the run that was saved in ``dir``, every bit of it, or raise a RunFileError that names the file at fault."""
        curve, episodes, meta = files.read_run(dir)
        try:
            return cls(**curve, episodes=episodes, meta=meta)
        except (InputError, TypeError) as error:
            where = os.path.join(dir, files.META_FILE)
            raise RunFileError(f"load: {where} does not describe this run ({error}). {files.REMEDY}") from None

    def plot(self, ax: Any = None) -> Any:
        """Draw the regret over time, the pseudo-regret dashed, or the reward (cost) where g* is unknown; return the axes."""
        ax = ax if ax is not None else new_axes()
        if np.isnan(self.regret).all():
            what = f"cumulative {self._paid}"
            paid = flip(self.costs, self.reward)
            ax.plot(self.t, paid, color=BLUE, linewidth=2, label=f"{what} (gain unknown)")
            ax.set_ylabel(what)
        else:
            ax.plot(self.t, self.regret, color=BLUE, linewidth=2, label=f"regret{self._exactly}")
            ax.plot(self.t, self.pseudo_regret, color=DARK_GREY, linewidth=1, linestyle="--", label="pseudo-regret")
            ax.set_ylabel("regret")
        ax.set_xlabel("step t")
        title = f"{self.meta['agent']} on {self.meta['env']}"
        ax.set_title(title + (f"\n{self._steps()}" if self.interrupted else ""), fontsize="medium")
        ax.margins(x=0.02)
        ax.legend(frameon=False)
        tidy(ax)
        return ax

    @property
    def regret_note(self) -> str | None:
        """Why the regret is not exact; None where there is nothing to say against it."""
        if self.meta.get("regret_exact", True):
            return None
        limit = self.meta.get("step_limit")
        ignored = "that episodes are cut" if limit is None else f"the limit of {limit:,} steps per episode"
        return f"not exact: g* ignores {ignored}"

    @property
    def notes(self) -> list[str]:
        """What the run should not be read without: see above."""
        return list(self.meta.get("notes", []))

    @property
    def _paid(self) -> str:
        return "cost" if self.costs else "reward"

    @property
    def _names(self) -> str:
        return visible(f"{self.meta['agent']} on {self.meta['env']}")

    @property
    def _exactly(self) -> str:
        return " (not exact)" if self.regret_note else ""

    def _steps(self) -> str:
        done = int(_last(self.t))
        return f"interrupted after {done:,} of {self.meta['horizon']:,} steps" if self.interrupted else f"{done:,}"

    def _regret(self) -> str:
        regret, steps = float(_last(self.regret)), float(_last(self.t))
        if np.isnan(regret):
            return "unknown, as is the optimal gain"
        return f"{regret:.6g} ({regret / max(steps, 1.0) ** 0.5:.3g} √t)"

    def _facts(self) -> list[tuple[str, str]]:
        meta, seconds = self.meta, self.meta["seconds"]
        lines = {
            "steps": self._steps(),
            **({"played": meta["played"]} if "played" in meta else {}),
            self._paid: f"{flip(self.costs, float(_last(self.reward))):.6g}",
            "regret": self._regret() + (f"; {self.regret_note}" if self.regret_note else ""),
            "episodes": f"{_last(self.n_episodes):,}",
            "span": f"{_last(self.span):.6g}",
            "seconds": f"{seconds['total']:.3g} (planning {seconds['planning']:.3g}, simulating {seconds['simulating']:.3g})",
        }
        return [*lines.items(), *(("note", note) for note in self.notes)]

    @property
    def _head(self) -> str:
        return f"Run: {self._names}, seed {self.meta['seed']}"

    def __str__(self) -> str:
        """Summarise in a few lines."""
        return "\n".join([self._head, *(f"{name:<10}{text}" for name, text in self._facts())])

    def _repr_html_(self) -> str:
        return as_html("\n".join([self._head, *(f"{name}: {text}" for name, text in self._facts())]))

    def __repr__(self) -> str:
        """Return a one-line summary."""
        meta, regret = self.meta, _last(self.regret)
        steps = self._steps() if self.interrupted else f"{self._steps()} steps"
        known = "" if np.isnan(regret) else f", regret {regret:.6g}{self._exactly}"
        return f"<Run: {self._names}, seed {meta['seed']}, {steps}{known}>"


def _last(values: Array) -> Any:
    return values[-1] if values.size else values.dtype.type(0)


def _check_names(what: str, came: Iterable[str], needed: Iterable[str]) -> None:
    odd = sorted(set(came) ^ set(needed))
    if odd:
        fault = "missing" if odd[0] in needed else "too much"
        raise InputError(f"Run: {what} must have {', '.join(needed)}; {odd[0]!r} is {fault}.")


def _check_lengths(what: str, columns: Mapping[str, Array]) -> None:
    shapes = {name: values.shape for name, values in columns.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise InputError(f"Run: the arrays of the {what} must be vectors of one length; got shapes {shapes}.")
