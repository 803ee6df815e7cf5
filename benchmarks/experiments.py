"""Experiments: what the runner costs besides learning, and a report over thousands of cells."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from harness import REPEATS, Row, value_row

_GIB = 2**30


def runner_rows(smoke: bool) -> list[Row]:
    """One worker; the time of learning is what the cells themselves say, within the same run."""
    tiny, long, length = (20, 1, 2 * 10**7) if smoke else (50, 2, 5 * 10**8)
    start, cell, share = [], [], []
    for _ in range(1 if smoke else REPEATS):
        start.append(_wall(_spec(1, 10**3))[0])
        wall, learning = _wall(_spec(tiny, 10**3))
        cell.append(1e3 * (wall - start[-1] - learning) / (tiny - 1))
        wall, learning = _wall(_spec(long, length))
        share.append(100 * (wall - start[-1] - learning) / learning)
    group = "Experiments, one worker: all but learning"
    return [
        value_row(group, f"tiny cells (T = 1000), {tiny} of them", cell, "ms per cell", target=50.0),
        value_row(group, "start of driver and worker, one tiny cell", start, "s"),
        value_row(group, f"cells of {learning / long:.2g} s", share, "%", target=3.0),
    ]


def report_rows(smoke: bool) -> list[Row]:
    """A report over 5 000 cells; they are one computed cell each of 50 kinds, copied with other seeds."""
    seeds = 3 if smoke else 100
    group = f"Report over {50 * seeds} cells"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        _many_cells(out, seeds)
        begun = perf_counter()
        code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from memory import peak_memory; "
        code += "from spanrl.cli import main; main(['report', sys.argv[1], '--quiet']); print(peak_memory())"
        done = subprocess.run([sys.executable, "-c", code, str(out)], capture_output=True, text=True, check=True)
        seconds, memory = perf_counter() - begun, int(done.stdout.split()[-1])
        size = (out / "report.html").stat().st_size
    label = {"readme": "Peak memory of a report over 5 000 cells"}
    return [
        Row(group, "figures and page", seconds, "s", 60.0, note=f"one run; {size / 2**20:.1f} MiB of HTML"),
        Row(group, "peak memory", memory / _GIB, "GiB", 1.0, data=label),
    ]


def _spec(seeds: int, horizon: int) -> dict[str, Any]:
    return {
        "name": "bench", "horizon": horizon, "seeds": seeds,
        "env": [{"id": "three-state"}], "agent": [{"id": "scal", "span_bound": 5}],
    }  # fmt: skip


def _wall(spec: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds of the whole run, and those of learning that the cells tell."""
    from spanrl.experiments.run import drive
    from spanrl.experiments.spec import read_spec

    with tempfile.TemporaryDirectory() as folder:
        begun = perf_counter()
        drive(read_spec(spec), out=folder, workers=1)
        wall = perf_counter() - begun
        metas = [json.loads(path.read_text())["seconds"] for path in Path(folder).glob("cells/*/*/*/meta.json")]
    return wall, sum(meta["planning"] + meta["simulating"] for meta in metas)


def _many_cells(out: Path, seeds: int) -> None:
    """Write an experiment of 2 environments × 25 agents with curves that differ a little from seed to seed."""
    import numpy as np

    from spanrl import Run, learn
    from spanrl.experiments.spec import read_spec

    spec = read_spec(
        {
            "name": "many",
            "horizon": 10**6,
            "seeds": seeds,
            "env": [{"id": "three-state", "delta": [0.01, 0.02]}],
            "agent": [{"id": "scal", "span_bound": [1 + i / 4 for i in range(25)]}],
        }
    )
    out.mkdir()
    (out / "spec.toml").write_text(spec.to_toml())
    first: dict[tuple[str, str], Run] = {}
    rng = np.random.default_rng(0)
    for cell in spec.cells():
        kind = cell.env.id, cell.agent.id
        if kind not in first:
            first[kind] = learn(cell.env.id, cell.agent.id, horizon=spec.horizon, seed=0, points=spec.points)
        run = first[kind]
        noise = rng.normal(size=run.t.size).cumsum()
        columns = {name: getattr(run, name) for name in ("t", "reward", "span", "n_episodes", "episodes")}
        regrets = {"regret": run.regret + noise, "pseudo_regret": run.pseudo_regret + noise}
        Run(**columns, **regrets, meta=run.meta | {"seed": cell.seed}).save(out / "cells" / cell.folder)
