"""Compiled kernels: what is made for Python and for other kernels; a cache named by all sources; numba's own setting left as it was."""

import ast
import errno
import gc
import shutil
import stat
import tempfile
from pathlib import Path

import numba
import pytest
from numba.core import event
from numba.core.caching import IndexDataCacheFile

from spanrl.kernels import cache, jit


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A copy of the kernel sources with a cache of its own."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    sources = tmp_path / "kernels"
    shutil.copytree(Path(cache.__file__).parent, sources, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cache, "__file__", str(sources / "cache.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _forget()
    yield sources
    _forget()


def _forget():
    cache.find_cache.cache_clear()
    cache._WARNED.clear()
    cache.kernel_digest.cache_clear()


def test_any_changed_source_names_another_folder(fresh):
    before = cache.cache_dir()
    _forget()
    assert cache.cache_dir() == before
    (fresh / "order.py").write_text((fresh / "order.py").read_text() + "# changed\n")
    _forget()
    assert cache.cache_dir() != before


def test_another_numba_has_another_folder(fresh, monkeypatch):
    """In one folder two versions would throw each other's kernels away, run after run, without announcing the wait."""
    before = cache.cache_dir()
    monkeypatch.setattr(cache, "version", lambda name: {"numba": "0.1"}[name])
    _forget()
    assert cache.cache_dir() != before


def test_the_folder_is_private_and_numba_keeps_its_setting(fresh):
    before = numba.config.CACHE_DIR
    double = jit.kernel(lambda x: 2 * x)
    assert double(4) == 8
    assert before == numba.config.CACHE_DIR
    assert stat.S_IMODE(cache.cache_dir().stat().st_mode) == 0o700


def test_an_unwritable_home_only_means_no_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocker))
    _forget()
    try:
        assert cache.cache_dir() is None
        cache.mark_compiled("plan")
        assert not cache.is_compiled("plan")
        with pytest.warns(RuntimeWarning, match=rf"the cache {blocker}/spanrl/\S+ cannot be used \(Not a directory\)"):
            assert jit.kernel(lambda x: x + 1)(1) == 2
    finally:
        _forget()


def test_a_kernel_is_made_ready_when_first_called(fresh):
    double = jit.kernel(lambda x: 2 * x)
    assert double._dispatcher is None
    assert double(4) == 8
    assert double._dispatcher.signatures


def test_kernels_call_kernels(fresh):
    inner = jit.kernel(lambda x: x + 1)
    outer = jit.kernel(lambda x: 2 * inner(x))
    assert outer(3) == 8
    assert inner._inner.signatures, "compiled for its caller"
    assert inner._dispatcher is None, "but not for Python"
    with jit.interpreted():
        assert outer(0.5) == 3.0
    assert len(outer._dispatcher.signatures) == 1


def _increment(x):
    return x + 1


def test_what_is_kept_for_kernels_is_not_taken_for_python(fresh):
    first = jit.kernel(_increment)
    assert jit.kernel(lambda x: 2 * first(x))(3) == 8
    second = jit.kernel(_increment)
    assert second(3) == 4
    assert not second._dispatcher.stats.cache_hits
    third = jit.kernel(_increment)
    assert third(3) == 4
    assert third._dispatcher.stats.cache_hits


class _Watch(event.Listener):
    def __init__(self):
        self.collects = []

    def on_start(self, event):
        self.collects.append(gc.isenabled())

    def on_end(self, event):
        pass


def test_a_part_is_compiled_within_its_callers(fresh):
    inner = jit.part(lambda x: x + 1)
    outer = jit.kernel(lambda x: 2 * inner(x))
    with event.install_listener("numba:compile", watch := _Watch()):
        assert outer(3) == 8
    assert len(watch.collects) == 1
    assert inner(3) == 4, "and by itself where Python calls it"


@pytest.mark.parametrize("before", [True, False])
def test_garbage_waits_while_a_kernel_is_compiled(fresh, before):
    was, watch = gc.isenabled(), _Watch()
    fine, broken = jit.kernel(lambda x: x + 1), jit.kernel(lambda x: x.nothing)
    (gc.enable if before else gc.disable)()
    try:
        with event.install_listener("numba:compile", watch):
            fine(1)
            assert gc.isenabled() == before
            with pytest.raises(numba.TypingError):
                broken(1)
            assert gc.isenabled() == before
    finally:
        (gc.enable if was else gc.disable)()
    assert watch.collects == [False, False]


def test_kernels_that_count_no_references_are_handed_no_arrays():
    """An array from a kernel that makes it would never be given back. Who adds a call must see that nothing comes back but numbers."""
    calls, makers = set(), set()
    for folder in ("kernels", "confidence"):
        for path in (Path(cache.__file__).parents[1] / folder).glob("*.py"):
            for function in ast.parse(path.read_text("utf-8")).body:
                if not isinstance(function, ast.FunctionDef):
                    continue
                kinds = {node.id for node in function.decorator_list if isinstance(node, ast.Name)}
                if "allocating" in kinds:
                    makers.add(function.name)
                elif kinds & {"kernel", "part"}:
                    calls |= {
                        node.func.id
                        for node in ast.walk(function)
                        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                    }
    assert {"rows", "build_slots", "new_list"} <= makers
    assert calls & makers == {"list_successors", "interact", "by_length", "_assign_places"}


# --- a cache that is full, closed or damaged ------------------------------------------------------------------------


def _kept(fresh, ending):
    """Compile a kernel into the cache; return the file of it that has this ending."""
    assert jit.kernel(_increment)(3) == 4
    (path,) = cache.cache_dir().rglob(f"*._increment-*{ending}")
    return path


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[:-1],
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"garbage" * 100,
        lambda raw: raw[:300] + bytes([raw[300] ^ 1]) + raw[301:],
    ],
    ids=["empty", "a byte short", "half", "garbage", "a flipped bit"],
)
def test_a_damaged_file_is_compiled_anew_and_replaced(fresh, ending, damage):
    path = _kept(fresh, ending)
    path.write_bytes(damage(path.read_bytes()))
    again = jit.kernel(_increment)
    assert again(3) == 4
    assert not again._dispatcher.stats.cache_hits
    third = jit.kernel(_increment)
    assert third(3) == 4
    assert third._dispatcher.stats.cache_hits, "it was repaired"


def test_a_folder_in_place_of_an_index_costs_the_cache_alone(fresh):
    path = _kept(fresh, ".nbi")
    path.unlink()
    path.mkdir()
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert jit.kernel(_increment)(3) == 4


@pytest.mark.parametrize("name", ["_save_index", "_save_data"])
def test_a_full_disk_costs_the_cache_alone_and_is_told_once(fresh, monkeypatch, name):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, name, full)
    first, second = jit.kernel(_increment), jit.kernel(lambda x: 2 * x)
    with pytest.warns(RuntimeWarning) as told:
        assert (first(3), second(3)) == (4, 6)
    assert len(told) == 1
    assert str(cache.cache_dir()) in str(told[0].message)
    assert "No space left on device" in str(told[0].message)


def test_a_folder_that_was_closed_meanwhile_costs_the_cache_alone(fresh, monkeypatch):
    """numba would look for another place then, such as the folder of the sources, where kernels go stale."""

    def closed(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    cache.cache_dir()
    monkeypatch.setattr(tempfile, "TemporaryFile", closed)
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert jit.kernel(_increment)(3) == 4
    assert not list(cache.cache_dir().rglob("*.nb?"))
