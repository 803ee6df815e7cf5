"""Varied parameters as columns, constants of the environments, and the chart of the means, from experiments made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiment_samples import reseal
from matplotlib.colors import to_hex

from spanrl.axes import PALETTE, new_axes
from spanrl.errors import OptionError, UnknownNameError
from spanrl.experiments.results import Results, load_results
from spanrl.experiments.spec import Cell, Spec, SpecEntry
from spanrl.experiments.sweep import varied
from spanrl.learning.run import Run

TIMES = np.array([1, 10, 100, 1000])


def entries(*ids: str) -> tuple[SpecEntry, ...]:
    return tuple(SpecEntry(text, text) for text in ids)


def write(folder: Path, envs: tuple[SpecEntry, ...], agents: tuple[SpecEntry, ...], seeds: int = 2) -> Path:
    """Write an experiment in which the agent at place i loses (1 + i)·t·0.1 in t steps, the last two the same."""
    spec = Spec("swept", 1000, 1, tuple(range(seeds)), envs, agents)
    folder.mkdir()
    (folder / "spec.toml").write_text(spec.to_toml(), "utf-8")
    for cell in spec.cells():
        save(folder, cell, 0.1 * (1 + min(agents.index(cell.agent), max(len(agents) - 2, 0))) * TIMES)
    return folder


def save(folder: Path, cell: Cell, regret: np.ndarray) -> None:
    gain = None if np.isnan(regret).all() else 0.75
    meta = {
        "env": cell.env.id, "agent": cell.agent.id, "seed": cell.seed, "horizon": 1000, "points": 1, "gain": gain,
        "interrupted": False, "audit": False, "r_min": 0.0, "r_max": 1.0, "n_states": 3, "n_actions": 2,
        "seconds": {"planning": 0.25, "simulating": 0.125, "total": 8.0}, "optimal_span": 1.5, "diameter": "inf",
    }  # fmt: skip
    episodes = {"start": [0], "gain": [1.0], "span": [2.0], "sweeps": [3], "deterministic": [True]}
    Run(
        t=TIMES, reward=0.75 * TIMES - np.nan_to_num(regret) + cell.seed, regret=regret, pseudo_regret=regret, span=2.0 + 0.0 * TIMES,
        n_episodes=np.arange(4) + 1, episodes={name: np.array(column) for name, column in episodes.items()}, meta=meta,
    ).save(folder / "cells" / cell.folder)  # fmt: skip


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Results:
    envs = entries("three-state", "three-state[delta=0.01]", "riverswim")
    agents = entries("scal[span_bound=2]", "scal[span_bound=7.5]", "ucrl[bounds=kt]", "ucrl2")
    return load_results(write(tmp_path_factory.mktemp("swept") / "DIR", envs, agents))


@pytest.mark.parametrize(
    ("ids", "keys"),
    [
        (("scal[span_bound=2]", "ucrl"), []),
        (("scal[span_bound=2]", "scal[span_bound=2,bounds=kt]"), ["bounds"]),
        (("scal[span_bound=2]", "scal[span_bound=5,bounds=kt]"), ["span_bound", "bounds"]),
        (("ucrl[delta=0.1]", "scal[span_bound=2]", "scal[span_bound=3,delta=0.1]"), ["span_bound", "delta"]),
        (("gym:A-v0[x=1]", "gym:A-v0"), ["x"]),
    ],
)
def test_what_is_varied(ids: tuple[str, ...], keys: list[str]) -> None:
    assert varied(entries(*ids)) == keys


def test_a_model_has_no_parameters() -> None:
    assert varied((SpecEntry("a.b", "a", "/x/a.b.npz", "0" * 64), SpecEntry("three-state[delta=0.1]", "b"))) == []


@pytest.mark.parametrize("frame", ["cells", "curves", "mean", "final", "quantiles", "slope"])
def test_every_table_has_the_columns(swept: Results, frame: str) -> None:
    found = getattr(swept, frame)
    table = found if frame == "cells" else found()
    assert table.columns[-2:] == ["env.delta", "agent.span_bound"]
    assert {str(table[name].dtype) for name in table.columns[-2:]} == {"Float64"}
    rows = set(table.select("env", "agent", "env.delta", "agent.span_bound").rows())
    assert ("three-state[delta=0.01]", "scal[span_bound=2]", 0.01, 2.0) in rows
    assert ("riverswim", "ucrl2", None, None) in rows
    assert ("three-state", "scal[span_bound=7.5]", None, 7.5) in rows, "an old cell does not say its defaults"


def test_cells_know_their_defaults(tmp_path: Path) -> None:
    envs = entries("three-state", "three-state[delta=0.01]", "gym:Lake-v1[slips=false]", "gym:Lake-v1")
    folder = write(tmp_path / "DIR", envs, entries("ucrl"), seeds=1)
    for env, told in (("three-state", {"delta": "0.005"}), ("gym+Lake-v1", {"slips": "true", "desc": "a b"})):
        reseal(folder / "cells" / env / "ucrl" / "000", lambda c, told=told: c["run"].update(parameters={"env": told}))
    cells = load_results(folder).cells
    assert cells["env.delta"].to_list() == [0.005, 0.01, None, None]
    assert cells["env.slips"].to_list() == [None, None, False, True]


def test_values_of_several_types_are_text(tmp_path: Path) -> None:
    folder = write(tmp_path / "DIR", entries("riverswim"), entries("ucrl[delta=0.1]", "ucrl[delta=rsqrt]"), seeds=1)
    assert load_results(folder).cells["agent.delta"].to_list() == ["0.1", "rsqrt"]
    pandas = pytest.importorskip("pandas")
    assert isinstance(load_results(folder).to_pandas(), pandas.DataFrame)


def test_without_a_sweep_there_are_no_columns(tmp_path: Path) -> None:
    folder = write(tmp_path / "DIR", entries("riverswim"), entries("ucrl", "scal[span_bound=2]"), seeds=1)
    assert load_results(folder).cells.columns[-1] == "total"


def test_constants_of_the_environments(swept: Results) -> None:
    table = swept.problems
    assert table.columns == ["env", "label", "n_states", "n_actions", "gain", "span", "diameter", "exact", "costs"]
    assert table.rows()[0] == ("three-state", "three-state", 3, 2, 0.75, 1.5, np.inf, True, False)
    assert len(table) == 3


def test_what_an_old_cell_does_not_say(tmp_path: Path) -> None:
    folder = write(tmp_path / "DIR", entries("riverswim"), entries("ucrl"), seeds=1)

    def older(content: dict) -> None:
        content["run"] = {
            name: value for name, value in content["run"].items() if name not in ("optimal_span", "diameter")
        }
        content["run"]["regret_exact"] = False

    reseal(folder / "cells" / "riverswim" / "ucrl" / "000", older)
    (row,) = load_results(folder).problems.rows()
    assert np.isnan(row[5:7]).all()
    assert row[7] is False


class TestPlot:
    def test_a_line_and_a_band_per_agent(self, swept: Results) -> None:
        ax = swept.plot(env="riverswim")
        assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear"), "a steady loss is a straight line"
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels == ["scal[span_bound=2]", "scal[span_bound=7.5]", "ucrl[bounds=kt] = ucrl2"], (
            "coinciding curves are named"
        )
        assert [to_hex(line.get_color()) for line in ax.lines] == list(PALETTE[:3])
        np.testing.assert_allclose(ax.lines[1].get_xydata(), np.transpose([TIMES, 0.2 * TIMES]))
        assert len(ax.collections) == 3
        assert (ax.get_title(), ax.get_ylabel(), ax.get_xlabel()) == ("riverswim", "regret", "step t")

    def test_on_given_axes_and_logarithmic(self, swept: Results) -> None:
        ax = new_axes()
        assert swept.plot(ax, env="riverswim", scale="log") is ax
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        ax = swept.plot(env="riverswim", value="n_episodes", scale="log")
        assert (ax.get_xscale(), ax.get_yscale(), ax.get_ylabel()) == ("log", "linear", "episodes")

    def test_one_environment_needs_no_name(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "DIR", (SpecEntry("riverswim", "_a $x$"),), entries("ucrl"), seeds=1)
        ax = load_results(folder).plot()
        assert ax.get_title() == r" _a \$x\$", "as it stands, no formula"
        assert len(ax.collections) == 0, "one run has no band"

    def test_an_unknown_gain(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "DIR", entries("riverswim"), entries("ucrl"), seeds=1)
        (folder / "cells").rename(tmp_path / "old")
        save(folder, Cell(*entries("riverswim", "ucrl"), 0), np.full(4, np.nan))
        assert load_results(folder).plot().get_ylabel() == "cumulative reward (gain unknown)"

    def test_costs(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "DIR", entries("riverswim"), entries("ucrl"))
        for seed in range(2):
            reseal(
                folder / "cells" / "riverswim" / "ucrl" / f"00{seed}", lambda content: content["run"].update(costs=True)
            )
        ax = load_results(folder).plot(value="reward")
        assert ax.get_ylabel() == "cumulative cost"
        np.testing.assert_allclose(ax.lines[0].get_ydata(), 0.1 * TIMES - 0.75 * TIMES - 0.5)

    def test_nothing_positive_stays_linear(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "DIR", entries("riverswim"), entries("ucrl"), seeds=1)
        (folder / "cells").rename(tmp_path / "old")
        save(folder, Cell(*entries("riverswim", "ucrl"), 0), -1.0 * TIMES)
        assert load_results(folder).plot(scale="log").get_yscale() == "linear"

    def test_refused(self, swept: Results, tmp_path: Path) -> None:
        with pytest.raises(
            OptionError, match=r"plot: env must be one of the 3 environments, three-state, .*; got none"
        ):
            swept.plot()
        with pytest.raises(
            UnknownNameError, match=r"plot: unknown environment 'riverswam'\. Did you mean 'riverswim'\?"
        ):
            swept.plot(env="riverswam")
        with pytest.raises(UnknownNameError, match=r"unknown value 'regrets'\. Did you mean 'regret'\?"):
            swept.plot(env="riverswim", value="regrets")
        with pytest.raises(OptionError, match="plot: scale must be linear or log; got 'cubic'"):
            swept.plot(env="riverswim", scale="cubic")
        folder = write(tmp_path / "DIR", entries("riverswim"), entries("ucrl"), seeds=1)
        (folder / "cells").rename(tmp_path / "old")
        with pytest.raises(OptionError, match="plot: no cell on riverswim is finished"):
            load_results(folder).plot()
