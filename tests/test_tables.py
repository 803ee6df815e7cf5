"""Tables on disk: every bit kept, the same bytes for the same columns, and one sentence for what is no table."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spanrl.errors import InputError, MissingExtraError, RunFileError, SpanrlError
from spanrl.tables import read_table, require_polars, write_table


def columns(n: int = 200) -> dict[str, Any]:
    x = np.random.default_rng(3).normal(size=n)
    x[:4] = -0.0, 0.0, np.nan, np.inf
    x.view(np.uint64)[4] = 0xFFF8_0000_0000_0123  # a NaN with a sign and a payload
    return {
        "env": "three-state[delta=0.01]",
        "seed": 7,
        "big": 2**63 - 1,
        "on": True,
        "half": 0.5,
        "t": np.arange(n, dtype=np.int64) * 10**15,
        "x": x,
        "few": np.repeat(x[:5], n // 5),
        "b": x > 0,
        "word": np.array(["a", "ü b"] * (n // 2)),
    }


def test_every_bit_comes_back(tmp_path: Path) -> None:
    written = columns()
    write_table(tmp_path / "a.parquet", written)
    found = read_table(tmp_path / "a.parquet")
    assert list(found) == list(written)
    for name, value in written.items():
        expected = value if isinstance(value, np.ndarray) else np.full(200, value)
        assert found[name].dtype.kind == expected.dtype.kind, name
        if expected.dtype.kind == "U":
            assert found[name].tolist() == expected.tolist()
        else:
            assert found[name].dtype == expected.dtype, name
            assert found[name].tobytes() == expected.tobytes(), name


def test_columns_have_the_types_that_others_read(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", columns())
    polars = require_polars()
    types = polars.read_parquet(tmp_path / "a.parquet").schema
    assert [str(types[name]) for name in ("env", "seed", "t", "x", "b", "word")] == [
        "String", "Int64", "Int64", "Float64", "Boolean", "String",
    ]  # fmt: skip


def test_numpy_scalars_are_constants_too(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", {"seed": np.int64(3), "name": np.str_("x"), "t": np.arange(2)})  # type: ignore[dict-item]
    found = read_table(tmp_path / "a.parquet")
    assert found["seed"].tolist() == [3, 3]
    assert found["name"].tolist() == ["x", "x"]


def test_no_rows(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", {"seed": 3, "t": np.zeros(0, dtype=np.int64)})
    found = read_table(tmp_path / "a.parquet")
    assert [found[name].size for name in ("seed", "t")] == [0, 0]
    assert found["t"].dtype == np.int64


# --- bytes ----------------------------------------------------------------------------------------------------------


def test_the_same_columns_give_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "else where").mkdir()
    paths = tmp_path / "a.parquet", tmp_path / "else where" / "b.parquet"
    for path in paths:
        write_table(path, columns())
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_layout_in_memory_is_not_in_the_bytes(tmp_path: Path) -> None:
    x = columns()["x"]
    wide = np.stack([x, x], axis=1)
    write_table(tmp_path / "a.parquet", {"x": x})
    write_table(tmp_path / "b.parquet", {"x": wide[:, 0]})
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_other_numbers_give_other_bytes(tmp_path: Path) -> None:
    changed = columns()
    changed["x"] = changed["x"].copy()
    changed["x"][0] = 0.0  # was −0.0
    write_table(tmp_path / "a.parquet", columns())
    write_table(tmp_path / "b.parquet", changed)
    assert (tmp_path / "a.parquet").read_bytes() != (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_number_of_threads_is_not_in_the_bytes(tmp_path: Path, threads: str) -> None:
    code = (
        "import sys, numpy as np; from pathlib import Path; from spanrl.tables import write_table;"
        "n = 300_000; write_table(Path(sys.argv[1]), {'seed': 1, 't': np.arange(n), 'x': np.sqrt(np.arange(n))})"
    )
    path = tmp_path / "a.parquet"
    environment = {**os.environ, "POLARS_MAX_THREADS": threads, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": threads}
    subprocess.run([sys.executable, "-c", code, str(path)], env=environment, check=True, timeout=60)
    n = 300_000
    write_table(tmp_path / "b.parquet", {"seed": 1, "t": np.arange(n), "x": np.sqrt(np.arange(n))})
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (path, tmp_path / "b.parquet")]
    assert digests[0] == digests[1]


# --- what is refused ------------------------------------------------------------------------------------------------


def test_arrays_of_several_lengths(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must have one length; got {'t': 2, 'x': 3}"):
        write_table(tmp_path / "a.parquet", {"seed": 1, "t": np.arange(2), "x": np.arange(3)})
    with pytest.raises(InputError, match="must have one length; got no array"):
        write_table(tmp_path / "a.parquet", {"seed": 1})
    assert list(tmp_path.iterdir()) == []


def test_a_seed_of_more_than_64_bits(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"seed must fit into 64 bits .*; got 18446744073709551616"):
        write_table(tmp_path / "a.parquet", {"seed": 2**64, "t": np.arange(2)})


def test_brackets_and_equal_signs_in_a_path_mean_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "env=three[a]" / "*"
    folder.mkdir(parents=True)
    write_table(folder / "a.parquet", {"t": np.arange(2)})
    assert list(read_table(folder / "a.parquet")) == ["t"]


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"none.parquet is missing. Give the folder of a saved run"):
        read_table(tmp_path / "none.parquet")


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"cannot be read \(Is a directory\)"):
        read_table(tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello\n", b"PAR1", b"PAR1" + b"\x00" * 50 + b"PAR1"])
def test_other_files_are_no_tables(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(RunFileError, match=r"a.parquet is damaged or no Parquet file") as caught:
        read_table(tmp_path / "a.parquet")
    assert "\n" not in str(caught.value)


def test_without_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        MissingExtraError, match=r"polars is not installed. Run: pip install polars .*pip install '\.\[experiments\]'"
    ):
        write_table(tmp_path / "a.parquet", {"t": np.arange(2)})
    with pytest.raises(MissingExtraError, match="polars"):
        read_table(tmp_path / "a.parquet")


def test_more_rows_than_a_file_of_ours_could_hold_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_table(path, {"t": np.zeros(2 * 10**6, dtype=np.int64)})
    with pytest.raises(RunFileError, match=r"t.parquet declares more than \d+ rows in \d+ bytes"):
        read_table(path)


def test_a_forked_child_is_refused_instead_of_hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child inherits what its parent used; polars' threads it does not."""
    write_table(tmp_path / "a.parquet", {"t": np.arange(2)})
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    for use in (read_table, lambda path: write_table(path, {"t": np.arange(2)})):
        with pytest.raises(SpanrlError, match=rf"forked \(from {parent}\).*spawn or forkserver, or save in the parent"):
            use(tmp_path / "a.parquet")
