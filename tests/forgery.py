"""Files that lie: states, meta.json, tables and models with something changed at random, under a right seal.

``attack_…(rng, …)`` makes one, hands it to whoever reads it, and tells whether it was refused. It must be refused with an error of
ours or be as good as any other: what reads it must then be able to work with it. Anything else is an error that passes through.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from spanrl import MDP, tables
from spanrl.agents.registry import agent_id, make_agent
from spanrl.errors import ModelFileError, RunFileError
from spanrl.experiments.results import load_results
from spanrl.learning.run import Run
from spanrl.learning.session import Session
from spanrl.learning.snapshot import pack, unpack
from spanrl.learning.worlds import TableWorld

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 7, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 2**64, 10**30, 0.5, -0.5, 1e-300, 1e308, -1e308,
    float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
OTHERS: tuple[Any, ...] = (10**400, None, True, False, "", "x", [], [1], [[]], {}, {"a": 1}, [0.5, 0.5], [1, 2, 3, 4])
KINDS = ("i8", "i4", "u4", "u8", "f8", "f4", "?", ">i8", ">f8", "c16", "S3", "U3", "i1")


def mutated(rng: Random, value: Any) -> Any:
    """Return something else in place of ``value``: of its kind most of the time."""
    if isinstance(value, np.ndarray):
        return _mutated_array(rng, value)
    if isinstance(value, dict | list) and value and rng.random() < 0.8:
        return _mutated_inside(rng, value)
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.3:
        return value + rng.choice((-1, 1, 10, 0.5))
    return rng.choice(NUMBERS) if rng.random() < 0.7 else deepcopy(rng.choice(OTHERS))


def _mutated_inside(rng: Random, value: Any) -> Any:
    out = value.copy()
    key = rng.choice(sorted(value) if isinstance(value, dict) else range(len(value)))
    if rng.random() < 0.2:
        del out[key]
    else:
        out[key] = mutated(rng, value[key])
    return out


def _mutated_array(rng: Random, value: np.ndarray) -> Any:
    way, value = rng.randrange(8), value.ravel()
    with np.errstate(all="ignore"):
        if way == 0:
            return value.astype(rng.choice(KINDS if value.dtype.kind != "U" else ("S9", "U2")), casting="unsafe")
        if way == 1:
            return value[: rng.randrange(value.size + 1)].copy()
        if way == 2:
            return np.concatenate((value, value[: rng.randrange(1, value.size + 2)]))
        if way == 3:
            return np.resize(value, rng.choice(((), (0,), (1, value.size), (value.size, 1), (0, 10**9), (10**5,))))
        if way == 4 and value.size > 1:
            return np.array(rng.sample(value.tolist(), value.size), dtype=value.dtype)
        out = value.copy()
        for _ in range(rng.choice((1, 1, 2, value.size))):
            if value.size:
                out[rng.randrange(value.size)] = _fitting(rng, value.dtype)
        return out


def _fitting(rng: Random, dtype: np.dtype[Any]) -> Any:
    """Return a number that an array of this type can hold."""
    number = rng.choice(NUMBERS)
    if dtype.kind in "iu":
        most = np.iinfo(dtype)
        return int(min(max(number, most.min), most.max)) if not np.isnan(float(number)) else 3
    return number if dtype.kind == "f" else bool(number) if dtype.kind == "b" else str(number)


# --- checkpoints ----------------------------------------------------------------------------------------------------


def new_session(world: TableWorld, agent: str) -> Session:
    """Return a run of 400 steps."""
    return Session(world, make_agent(agent), agent_id(agent), horizon=400, seed=3, points=20)


def attack_checkpoint(rng: Random, world: TableWorld, agent: str, state: dict[str, Any]) -> bool:
    """Resume from a forged state, and run to the end where it is taken for a good one."""
    forged = dict(state)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        key = rng.choice(sorted(forged))
        if rng.random() < 0.05:
            del forged[key]
        else:
            forged[key] = mutated(rng, forged[rng.choice(sorted(forged))] if rng.random() < 0.05 else forged[key])
    session = new_session(world, agent)
    try:
        session.restore(unpack(pack(forged)))
    except RunFileError as error:
        return _is_one_line(error)
    session.run(0.5, lambda t: None)
    run = session.result(interrupted=False)
    assert run.t[-1] == 400
    return False


# --- models ---------------------------------------------------------------------------------------------------------


def attack_model(rng: Random, raw: bytes, path: Path) -> bool:
    """Load a forged model: bytes changed, or arrays."""
    if rng.random() < 0.3:
        out = bytearray(raw)
        for _ in range(rng.choice((1, 3, 30))):
            out[rng.randrange(len(out))] = rng.randrange(256)
        path.write_bytes(out[: rng.randrange(len(out))] if rng.random() < 0.2 else out)
    else:
        with np.load(io.BytesIO(raw)) as data:
            arrays = dict(data)
        key = rng.choice(sorted(arrays))
        value = mutated(rng, arrays[key] if arrays[key].ndim else arrays[key].item())
        with path.open("wb") as stream:
            np.savez_compressed(stream, **arrays | {key: _as_array(value)})
        if rng.random() < 0.2:
            _lie_about_a_shape(rng, path)
    try:
        mdp = MDP.load(path)
    except ModelFileError:
        return True
    assert np.allclose(np.add.reduceat(mdp.prob, mdp.succ_ptr[:-1]), 1.0)
    return False


def _as_array(value: Any) -> Any:
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        return np.zeros(3)
    return array if not array.dtype.hasobject else np.array(str(value))


def _lie_about_a_shape(rng: Random, path: Path) -> None:
    """Put an array file of an enormous or odd shape in place of one of a model, with a checksum that fits."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    shape = rng.choice(((10**9,), (2**62,), (2**40, 2**40), (-1,), (0,), (), (3, 0, 10**12)))
    stream = io.BytesIO()
    header = {
        "descr": rng.choice(("<f8", "<i8", "|O", "<U0", "<U1000000", "|V8")),
        "fortran_order": False,
        "shape": shape,
    }
    np.lib.format.write_array_header_1_0(stream, header)
    members[name] = stream.getvalue() + members[name][128:]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)


# --- saved runs -----------------------------------------------------------------------------------------------------


def attack_run(rng: Random, files: dict[str, bytes], experiment: Path, cell: str) -> bool:
    """Load a forged run and the experiment that it is a cell of, and look at all of it."""
    forged, content = dict(files), json.loads(files["meta.json"])
    del content["sha256"]["meta.json"]
    if rng.random() < 0.5:
        name = rng.choice(("curve.parquet", "episodes.parquet"))
        forged[name] = _forged_table(rng, files[name])
        content["sha256"][name] = hashlib.sha256(forged[name]).hexdigest()
    else:
        content = mutated(rng, content)
    text = json.dumps(content)
    if isinstance(content, dict) and isinstance(content.get("sha256"), dict):
        content["sha256"]["meta.json"] = hashlib.sha256(text.encode()).hexdigest()
    forged["meta.json"] = json.dumps(content).encode()
    folder = experiment / "cells" / cell
    for name, data in forged.items():
        (folder / name).write_bytes(data)
    return all([_is_refused(lambda: str(Run.load(folder))), _is_refused(lambda: _look_at(experiment))])


def _is_refused(read: Any) -> bool:
    try:
        read()
    except RunFileError as error:
        return _is_one_line(error)
    return False


def _is_one_line(error: RunFileError) -> bool:
    assert "\n" not in str(error)
    return True


def _look_at(experiment: Path) -> None:
    with np.errstate(all="ignore"):
        results = load_results(experiment)
        assert results.cells.height <= 2
        results.curves()
        results.mean()


def _forged_table(rng: Random, data: bytes) -> bytes:
    import polars

    table = polars.read_parquet(io.BytesIO(data))
    name = rng.choice(table.columns)
    way = rng.randrange(7)
    if way == 0:
        table = table.drop(name)
    elif way == 1:
        table = table.with_columns(polars.lit(None).cast(table[name].dtype).alias(name))
    elif way == 2:
        table = table.with_columns(
            table[name].cast(rng.choice((polars.String, polars.Float32, polars.Int8)), strict=False)
        )
    elif way == 3:
        table = table.head(rng.randrange(table.height + 1))
    elif way == 4:
        table = polars.concat([table] * rng.choice((2, 3)))
    elif way == 5:
        values: list[Any] = table[name].to_list()
        values[rng.randrange(len(values))] = rng.choice((None, *NUMBERS, "x"))
        table = table.with_columns(polars.Series(name, values, strict=False))
    else:
        table = table.with_columns(polars.Series(name, [[1]] * table.height))
    stream = io.BytesIO()
    table.write_parquet(stream)
    out = bytearray(stream.getvalue())
    if rng.random() < 0.2:
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a saved run."""
    return {name: tables.read_bytes(folder / name) for name in ("curve.parquet", "episodes.parquet", "meta.json")}
