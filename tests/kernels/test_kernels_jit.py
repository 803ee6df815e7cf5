"""Compiled kernels: for Python, for other kernels and for loops; the folder of the cache; numba's own setting left as it was."""

import ast
import errno
import gc
import shutil
import stat
import tempfile
from pathlib import Path

import numba
import numpy as np
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
    cache.compiler_digest.cache_clear()


@pytest.mark.parametrize("name", ["jit.py", "fingerprint.py", "numba_cache.py"])
def test_another_way_to_compile_has_another_folder(fresh, name):
    """What was compiled in another way, or is told apart in another, is not for us."""
    before = cache.cache_dir()
    _forget()
    assert cache.cache_dir() == before
    (fresh / name).write_text((fresh / name).read_text() + "# changed\n")
    _forget()
    assert cache.cache_dir() != before


def test_a_changed_kernel_stays_in_the_folder(fresh):
    """It alone is compiled anew: see test_stale_code."""
    before = cache.cache_dir()
    (fresh / "order.py").write_text((fresh / "order.py").read_text() + "# changed\n")
    _forget()
    assert cache.cache_dir() == before


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
    for folder in ("kernels", "confidence", "agents"):
        for path in (Path(cache.__file__).parents[1] / folder).glob("*.py"):
            for function in ast.parse(path.read_text("utf-8")).body:
                if not isinstance(function, ast.FunctionDef):
                    continue
                kinds = {node.id for node in function.decorator_list if isinstance(node, ast.Name)}
                if "allocating" in kinds:
                    makers.add(function.name)
                elif kinds & {"kernel", "part", "loop"}:
                    calls |= {
                        node.func.id
                        for node in ast.walk(function)
                        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                    }
    assert {"rows", "build_slots", "dissect"} <= makers
    assert calls & makers == {"list_successors", "interact", "by_length", "_assign_places"}


# --- functions that are handed over, and assertions ------------------------------------------------------------------


NUMBER = jit.Signature("NUMBER", "float64", lambda: (1.0,))


@jit.passed(NUMBER)
def _double(x):
    return 2.0 * x


@jit.passed(NUMBER)
def _square(x):
    return x * x


@jit.loop
def _twice(function, x):
    return function(function(x))


def test_a_loop_is_compiled_once_for_all_functions(fresh):
    with event.install_listener("numba:compile", watch := _Watch()):
        assert _twice(_double, 3.0) == 12.0
        before = len(watch.collects)
        assert _twice(_square, 3.0) == 81.0
    assert len(watch.collects) == before + 1, "the second function alone"
    assert not any(watch.collects), "garbage waits"
    assert len(_twice._dispatcher.signatures) == 1
    with pytest.raises(TypeError):
        _twice(_double, np.zeros(2))


def test_interpreted_loops_call_plain_functions():
    twice = jit.loop(_twice.py_func)
    calls = []

    @jit.passed(NUMBER)
    def noting(x):
        calls.append(x)
        return x + 1.0

    with jit.interpreted():
        assert twice(noting, 3.0) == 5.0
    assert calls == [3.0, 4.0]
    assert twice._dispatcher is None


def test_a_function_to_hand_over_is_a_kernel_as_well(fresh):
    """Python and other kernels may call it; there it takes one type of argument alone, here any."""
    halve = jit.passed(NUMBER)(lambda x: x / 2)
    outer = jit.kernel(lambda x: 2 * halve(x) + 1)
    assert halve(3.0) == 1.5
    assert outer(3) == 4.0
    with pytest.raises((TypeError, RuntimeError)):
        halve(np.zeros(2))


def test_the_signature_is_made_when_it_is_needed():
    asked = []
    signature = jit.Signature("NUMBERS", "int64", lambda: asked.append(1) or (1, 2.0))
    jit.passed(signature)(lambda i, x: i)
    assert not asked
    assert str(signature.numba) == "(int64, float64) -> int64"
    assert signature.numba is signature.numba
    assert asked == [1]


def _instructions(kernel):
    """Return what the body of a kernel does, in LLVM's words after optimization: the first function there is, without names."""
    (text,) = kernel._dispatcher.inspect_llvm().values()
    body = text[text.index("\ndefine ") :]
    lines = [line for line in body[: body.index("\n}")].splitlines()[2:] if line.startswith(" ")]
    return [line.split("=")[-1].split()[0] for line in lines]


def test_checks_run_where_kernels_are_interpreted_and_are_nothing_in_compiled_code(fresh):
    seen = []

    @jit.check
    def is_positive(x, what, _):
        seen.append({"x": x})  # none of which numba could compile
        assert x > 0, f"{what!r} must be positive"

    bare = jit.kernel(lambda x: x + 1.0)

    def with_it(x):
        is_positive(x, 3, None)
        return x + 1.0

    with_check = jit.kernel(with_it)
    assert with_check(-1.0) == 0.0
    assert not seen
    with jit.interpreted():
        assert with_check(1.0) == 2.0
        with pytest.raises(AssertionError, match="must be positive"):
            with_check(-1.0)
    assert len(seen) == 2
    with pytest.raises(AssertionError, match="must be positive"):
        is_positive(-1.0, "it", None)
    assert bare(-1.0) == 0.0
    assert _instructions(with_check) == _instructions(bare)


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


def _scaled_by(k):
    return jit.kernel(lambda x: k * x)


def test_an_index_without_its_code_finds_no_other(fresh, monkeypatch):
    """The index is written first: whoever is ended in between leaves a new one beside the code that was there."""
    assert _scaled_by(2.0)(4.0) == 8.0
    with monkeypatch.context() as ended:
        ended.setattr(IndexDataCacheFile, "_save_data", lambda *_: None)
        assert _scaled_by(3.0)(4.0) == 12.0
    again = _scaled_by(3.0)
    assert again(4.0) == 12.0
    assert not again._dispatcher.stats.cache_hits
    third = _scaled_by(3.0)
    assert third(4.0) == 12.0
    assert third._dispatcher.stats.cache_hits


def test_code_under_the_name_of_another_is_not_taken(fresh):
    """Two processes that compile a kernel for two types at the same time may choose the same name."""
    first = jit.kernel(_increment)
    assert (first(3), first(0.5)) == (4, 1.5)
    one, other = sorted(cache.cache_dir().rglob("*._increment-*.nbc"))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    again = jit.kernel(_increment)
    assert (again(3), again(0.5)) == (4, 1.5)
    assert not again._dispatcher.stats.cache_hits


def test_a_kernel_that_is_now_handed_over_is_compiled_anew(fresh):
    """What was compiled before has no wrapper for C."""
    assert jit.kernel(_double.py_func)(3.0) == 6.0
    assert jit.loop(_twice.py_func)(jit.passed(NUMBER)(_double.py_func), 3.0) == 12.0


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
