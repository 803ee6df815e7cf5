"""The results of an experiment: tables over its finished cells, and statistics over their seeds.

``load_results`` reads the directory that ``spanrl run`` writes, while it is being written, too. It opens ``spec.toml`` and the meta.json
of each cell and neither imports nor runs anything; each curve is read once, when first asked for, verified by its SHA-256, and kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl import names, tables
from spanrl.display import SHOWN_IN_HTML, Table, as_html, as_text, left_out
from spanrl.errors import OptionError, RunFileError
from spanrl.experiments import statistics
from spanrl.experiments.plotting import plot_means
from spanrl.experiments.reading import VALUES, Curve, Group, StoredCell, read_cells, read_curve
from spanrl.experiments.spec import Spec, SpecEntry
from spanrl.experiments.statistics import Floats
from spanrl.experiments.sweep import Sweep, sweep

_ROUNDING = 1e-12  # of sums of rewards, relative: agents whose rewards are added in another order differ so much
_GROUP = {"env": str, "agent": str, "label": str}
_ESTIMATE = {"n": int, "mean": float, "low": float, "high": float}
_NUMBERS = ("gain", "span", "diameter")
_SECONDS = ("planning", "simulating", "total")
_MEASURED = dict.fromkeys(VALUES, float) | {"n_episodes": int}


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """What an experiment has found so far; see :func:`load_results`.

    Tables are polars DataFrames. Environments and agents are named by their canonical ids; a value is one of reward, regret, pseudo_regret,
    span and n_episodes. Statistics are over the seeds of a group, an agent in an environment. A parameter that the experiment varies is
    a column of its own at the end, such as ``agent.span_bound`` or ``env.delta``; null for those that have no such parameter.

    Attributes:
        dir: the folder of the experiment.
        spec: what was asked for.
        failed: the first line of the text of each failed cell, by the id of the cell.
        missing: the ids of the cells that are neither finished nor failed; those still at a shorter horizon are among them.
        versions: the distinct versions of python, spanrl, … and of "git" that the finished cells were computed with.
        groups: the finished cells.

    >>> import spanrl, tempfile
    >>> spec = {"name": "tiny", "horizon": 100, "seeds": 2, "env": [{"id": "two-state"}], "agent": [{"id": "ucrl"}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = spanrl.run_experiment(spec, out=folder, workers=1)
    ...     results.missing, results.spec.name
    ((), 'tiny')
    """

    dir: Path
    spec: Spec
    failed: dict[str, str]
    missing: tuple[str, ...]
    versions: dict[str, tuple[str, ...]]
    groups: tuple[Group, ...]

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.spec.name

    @property
    def horizon(self) -> int:
        """Horizon that the spec asks for."""
        return self.spec.horizon

    @property
    def envs(self) -> tuple[SpecEntry, ...]:
        """Environments of the spec."""
        return self.spec.envs

    @property
    def agents(self) -> tuple[SpecEntry, ...]:
        """Agents of the spec."""
        return self.spec.agents

    @cached_property
    def cells(self) -> Any:
        """A row a finished cell: env, agent, label, seed, horizon, gain, the values at its end, and seconds planning, simulating, total."""
        kinds = _GROUP | {"seed": int, "horizon": int, "gain": float} | _MEASURED | dict.fromkeys(_SECONDS, float)
        blocks = []
        for group in self.groups:
            ends = np.array([curve.values[:, -1] for curve in self._curves(group)])
            said = {
                "seed": _seeds(group.cells),
                "horizon": np.array([found.horizon for found in group.cells]),
                "gain": np.array([found.gain for found in group.cells], dtype=np.float64),
            }
            seconds = {name: np.array([float(found.seconds[name]) for found in group.cells]) for name in _SECONDS}
            blocks.append(self._head(group) | said | _named(ends.T) | seconds)
        return self._frame(kinds, blocks)

    def curves(self) -> Any:
        """Return every row of every curve: env, agent, seed, t, reward, regret, pseudo_regret, span, n_episodes."""
        kinds = {"env": str, "agent": str, "seed": int, "t": int} | _MEASURED
        blocks = []
        for group in self.groups:
            for found, curve in zip(group.cells, self._curves(group), strict=True):
                blocks.append(self._head(group) | {"seed": found.cell.seed, "t": curve.t} | _named(curve.values))
        return self._frame(kinds, blocks)

    @property
    def problems(self) -> Any:
        """A row per environment with a finished cell: env, label, n_states, n_actions, gain g*, span sp(h*), diameter D, exact, costs.

        What is not known is NaN: of an environment without a table, of a multichain one, and D of those with more than 100 states. Not
        ``exact`` is g* of an environment that cuts its episodes, for it ignores the cuts. In a model with ``costs`` g* is a cost.
        """
        kinds = {"env": str, "label": str, "n_states": int, "n_actions": int} | dict.fromkeys(_NUMBERS, float)
        kinds |= {"exact": bool, "costs": bool}
        first = {group.env.id: group for group in reversed(self.groups)}
        blocks = [
            {"env": env.id, "label": env.label} | first[env.id].cells[0].problem.in_units()
            for env in self.envs
            if env.id in first
        ]
        return tables.frame(kinds, blocks)

    def array(self, env: str, agent: str, value: str) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return times [n], seeds [k] and ``value`` [k, n] of one agent in one environment."""
        group = self._group(env, agent)
        curves = self._curves(group)
        return _times(curves), _seeds(group.cells), _at(curves, value)

    def mean(self, value: str = "regret", *, interval: str = "t", level: float = 0.95) -> Any:
        """Return env, agent, label, t, n, mean, low, high: the mean over seeds with its confidence interval ("t" or "bootstrap")."""
        blocks = []
        for group, t, values in self._arrays(value):
            estimate = statistics.mean_interval(values, interval=interval, level=level)
            blocks.append(self._head(group) | {"t": t, "n": len(values)} | estimate._asdict())
        return self._frame(_GROUP | {"t": int} | _ESTIMATE, blocks)

    def quantiles(self, value: str = "regret", *, at: Sequence[float] = (0.25, 0.5, 0.75)) -> Any:
        """Return env, agent, label, t, n and a column a quantile over seeds, named q0.25 and so on."""
        statistics.check_quantiles(at)
        columns = [f"q{names.format_value(float(q))}" for q in at]
        blocks = []
        for group, t, values in self._arrays(value):
            found = dict(zip(columns, statistics.quantiles(values, at), strict=True))
            blocks.append(self._head(group) | {"t": t, "n": len(values)} | found)
        return self._frame(_GROUP | {"t": int, "n": int} | dict.fromkeys(columns, float), blocks)

    def final(self, value: str = "regret", *, interval: str = "t", level: float = 0.95) -> Any:
        """Return env, agent, label, t, n, mean, low, high, std, median at the horizon."""
        blocks = []
        for group, t, values in self._arrays(value):
            end = values[:, -1:]
            estimate = statistics.mean_interval(end, interval=interval, level=level)
            spread = {"std": statistics.standard_deviation(end), "median": statistics.quantiles(end, [0.5])[0]}
            blocks.append(self._head(group) | {"t": t[-1:], "n": len(values)} | estimate._asdict() | spread)
        return self._frame(_GROUP | {"t": int} | _ESTIMATE | {"std": float, "median": float}, blocks)

    def compare(self, first: str, second: str, value: str = "regret", *, level: float = 0.95) -> Any:
        """Return env, first, second, t, n, difference, low, high, p_value: the paired difference first − second of two agents.

        It is taken over the seeds that both have, at the horizon; p_value is that of the paired t-test, and differences within the rounding
        of the sums count as 0. An environment where they have no seed in common is left out.
        """
        _row(value)
        blocks = []
        for env in self.envs:
            groups = [self._group(env.id, agent) for agent in (first, second)]
            curves = [dict(zip(_seeds(group.cells).tolist(), self._curves(group), strict=True)) for group in groups]
            seeds = sorted(curves[0].keys() & curves[1].keys())
            if seeds:
                runs = [[one[seed] for seed in seeds] for one in curves]
                sides = [_at(one, value)[:, -1:] for one in runs]
                paid = max(np.abs(_at(one, "reward")[:, -1]).max() for one in runs)
                found = statistics.paired_difference(*sides, level=level, noise=_ROUNDING * float(paid))
                ends = {"difference": found.mean, "low": found.low, "high": found.high, "p_value": found.p_value}
                who: dict[str, Any] = {"env": env.id, "first": first, "second": second}
                blocks.append(who | {"t": _times(runs[0])[-1:], "n": len(seeds)} | ends)
        kinds = {"env": str, "first": str, "second": str, "t": int, "n": int}
        return tables.frame(kinds | dict.fromkeys(("difference", "low", "high", "p_value"), float), blocks)

    def slope(self, value: str = "regret", *, start: float | None = None, level: float = 0.95) -> Any:
        """Return env, agent, label, n, slope, low, high: the slope of log value against log t for t ≥ ``start``.

        Each run has its own least-squares slope; their mean and its t interval are given. NaN where the mean over runs is not positive all
        that time, for then there is no growth to speak of, or a run has fewer than 3 positive values. ``start`` is a hundredth of the last
        time unless given: the last two decades.
        """
        if start is not None and (isinstance(start, bool) or not isinstance(start, Real)):
            raise OptionError(
                f"slope: start must be a number of steps; got {start!r}. Leave it out for the last two decades."
            )
        blocks = []
        for group, t, values in self._arrays(value):
            used = t >= (t[-1] / 100.0 if start is None else float(start))
            late = values[:, used]
            is_positive = (late.mean(axis=0) > 0.0).all()
            slopes = statistics.log_log_slopes(
                t[used].astype(np.float64), late if is_positive else np.full_like(late, np.nan)
            )
            found = statistics.mean_interval(slopes[:, None], level=level)
            blocks.append(
                self._head(group) | {"n": len(values), "slope": found.mean, "low": found.low, "high": found.high}
            )
        return self._frame(_GROUP | {"n": int} | dict.fromkeys(("slope", "low", "high"), float), blocks)

    def plot(self, ax: Any = None, *, env: str | None = None, value: str = "regret", scale: str = "linear") -> Any:
        """Draw the mean of a value over time, a line per agent, with its 95 % interval as a band; return the axes.

        Args:
            ax: where to draw; new axes where left out.
            env: id of the environment; may be left out where there is one.
            value: reward, regret, pseudo_regret, span or n_episodes; where g* is not known, the reward is drawn in place of a regret.
            scale: "linear", on which a steady loss is a straight line, or "log" for both axes.

        Agents whose lines lie on each other share an entry of the legend.
        """
        return plot_means(self, ax, env, value, scale)

    def to_csv(self, folder: str | os.PathLike[str]) -> None:
        """Write cells.csv, curves.csv, mean_regret.csv and mean_pseudo_regret.csv into ``folder``, over older ones."""
        target = Path(folder)
        try:
            target.mkdir(parents=True, exist_ok=True)
            tables.write_csv(target / "cells.csv", self.cells)
            tables.write_csv(target / "curves.csv", self.curves())
            for value in ("regret", "pseudo_regret"):
                tables.write_csv(target / f"mean_{value}.csv", self.mean(value))
        except OSError as error:
            raise RunFileError(f"to_csv: cannot write into {target} ({error.strerror or error}).") from None

    def to_pandas(self) -> Any:
        """Return the table of :meth:`curves` as a pandas DataFrame."""
        return tables.to_pandas(self.curves())

    def _table(self) -> Table:
        """Return the regrets at the horizon."""
        rows = []
        for row in self.final().iter_rows(named=True):
            interval = "–" if np.isnan(row["low"]) else f"{row['low']:.4g} … {row['high']:.4g}"
            rows.append((row["env"], row["label"], f"{row['n']}", f"{row['t']:,}", f"{row['mean']:.4g}", interval))
        return Table(("env", "agent", "runs", "t", "regret", "95 % interval"), rows)

    def __str__(self) -> str:
        """Summarise in a table of final regrets."""
        table = self._table()
        return "\n".join([self._summary(), *([as_text(table)] if table.rows else [])])

    def _repr_html_(self) -> str:
        table, most = self._table(), 3 * SHOWN_IN_HTML
        shown = table._replace(rows=table.rows[:most], more=left_out(len(table.rows), most, "groups"))
        return as_html(self._summary(), shown if table.rows else None)

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<{self._summary()}>"

    def _summary(self) -> str:
        done = sum(len(group.cells) for group in self.groups)
        total = done + len(self.failed) + len(self.missing)
        failed = f", {len(self.failed):,} failed" if self.failed else ""
        return f"Results: {self.name}, {done:,} of {total:,} cells done{failed}"

    @cached_property
    def _sweep(self) -> Sweep:
        return sweep(self.envs, self.agents, self.groups)

    def _head(self, group: Group) -> dict[str, Any]:
        """Return what stands in every row of a group."""
        who = {"env": group.env.id, "agent": group.agent.id, "label": group.agent.label}
        return who | self._sweep.of(group.env.id, group.agent.id)

    def _frame(self, kinds: Mapping[str, type[Any]], blocks: Iterable[Mapping[str, Any]]) -> Any:
        """Return a table of groups, with a column for each parameter that the experiment varies."""
        return tables.frame({**kinds, **self._sweep.kinds}, blocks)

    def _group(self, env: str, agent: str) -> Group:
        wanted = _entry("environment", env, self.envs), _entry("agent", agent, self.agents)
        found = (group for group in self.groups if (group.env, group.agent) == wanted)
        return next(found, Group(*wanted, []))

    def _arrays(self, value: str) -> Iterator[tuple[Group, NDArray[np.int64], Floats]]:
        _row(value)  # a wrong name is told also where nothing is finished
        for group in self.groups:
            curves = self._curves(group)
            yield group, _times(curves), _at(curves, value)

    @cached_property
    def _read(self) -> dict[str, Curve]:
        return {}

    def _curves(self, group: Group) -> list[Curve]:
        """Return the curves of a group, each read once."""
        for found in group.cells:
            if found.cell.id not in self._read:
                folder = self.dir / "cells" / found.cell.folder
                self._read[found.cell.id] = read_curve(folder, found.sha256, found.horizon)
        curves = [self._read[found.cell.id] for found in group.cells]
        odd = next((i for i, curve in enumerate(curves) if not np.array_equal(curve.t, curves[0].t)), None)
        if odd is not None:
            raise RunFileError(
                f"load_results: {group.cells[odd].cell.id} is measured at other times than {group.cells[0].cell.id}. "
                "Run the experiment again to recompute it."
            )
        return curves


def load_results(dir: str | os.PathLike[str]) -> Results:  # noqa: A002
    """Return the results of the experiment in ``dir``, finished or not.

    Args:
        dir: the directory of an experiment.

    Returns:
        A :class:`Results`.

    Raises:
        RunFileError: it is not one, or cannot be read.

    >>> import spanrl
    >>> spanrl.load_results("nowhere")
    Traceback (most recent call last):
        ...
    spanrl.errors.RunFileError: load_results: nowhere is no experiment (it has no spec.toml). Give the folder that was --out of spanrl run.
    """
    return Results(**read_cells(Path(os.path.normpath(dir))))  # x/../y is y, as for those who write there


def _row(value: str) -> int:
    if value not in VALUES:
        raise names.unknown("results", "value", str(value), VALUES)
    return VALUES.index(value)


def _entry(what: str, name: str, entries: Sequence[SpecEntry]) -> SpecEntry:
    for entry in entries:
        if entry.id == name:
            return entry
    raise names.unknown("results", what, str(name), [entry.id for entry in entries])


def _named(values: Floats) -> dict[str, Any]:
    """Return the rows of ``values`` [5, …] by their names."""
    out: dict[str, Any] = dict(zip(VALUES, values, strict=True))
    return out | {"n_episodes": out["n_episodes"].astype(np.int64)}


def _seeds(cells: Sequence[StoredCell]) -> NDArray[np.int64]:
    return np.array([found.cell.seed for found in cells], dtype=np.int64)


def _at(curves: Sequence[Curve], value: str) -> Floats:
    """Return one value of each curve: [k, n]."""
    row = _row(value)
    return np.array([curve.values[row] for curve in curves]) if curves else np.empty((0, 0))


def _times(curves: Sequence[Curve]) -> NDArray[np.int64]:
    """Return the measurement times, which all cells of one horizon share."""
    return curves[0].t if curves else np.zeros(0, dtype=np.int64)
