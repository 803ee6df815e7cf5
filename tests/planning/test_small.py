"""Small models solved by interpreted kernels: the bits of the compiled ones, and the compiler is not even imported."""

from __future__ import annotations

import subprocess
import sys
from threading import Thread

import numpy as np
import pytest

import spanrl
from spanrl.kernels import jit
from spanrl.planning.small import solve_small

SMALL = ("two-state", "three-state", "three-state[delta=0.2]", "riverswim", "counterexample-nonfeasible")


@pytest.mark.parametrize("c", [np.inf, 2.0, 0.75, 0.1])
@pytest.mark.parametrize("name", SMALL)
def test_the_same_bits(name: str, c: float) -> None:
    mdp = spanrl.make(name).mdp
    small, usual = solve_small(mdp, max_sweeps=10**7, span_bound=c), spanrl.solve(mdp, span_bound=c)
    assert small is not None
    assert (small.gain, small.gain_bounds, small.span, small.sweeps, small.feasible) == (
        usual.gain, usual.gain_bounds, usual.span, usual.sweeps, usual.feasible,
    )  # fmt: skip
    for field in ("bias", "truncated"):
        assert getattr(small, field).tobytes() == getattr(usual, field).tobytes()
    assert small.policy.probs.tobytes() == usual.policy.probs.tobytes()


@pytest.mark.parametrize("method", ["value-iteration", "modified-policy-iteration", "policy-iteration"])
def test_every_method(method: str) -> None:
    mdp = spanrl.make("riverswim").mdp
    small, usual = solve_small(mdp, max_sweeps=10**7, method=method), spanrl.solve(mdp, method=method)
    assert small is not None
    assert (small.gain, small.sweeps) == (usual.gain, usual.sweeps)
    assert small.bias.tobytes() == usual.bias.tobytes()


def test_left_to_the_compiled_solver() -> None:
    """Large models, bounded ones, and those that do not converge in time."""
    assert solve_small(spanrl.make("knight-quest").mdp, max_sweeps=10**7) is None
    mdp = spanrl.make("two-state").mdp
    P, r, _ = mdp.to_dense()
    assert solve_small(spanrl.BoundedMDP.from_dense(P, P, r, r), max_sweeps=10**7) is None
    assert solve_small(mdp, max_sweeps=1, tol=1e-12) is None
    free = spanrl.BoundedMDP.from_pairs([0, 1], [0, 0], [0, 0, 0], [], [], [], [1.0, 1.0], [0, 0], [1, 1])
    assert solve_small(free, max_sweeps=10**7) is None  # no successor is listed


@jit.kernel
def who(here):
    """Return here + 1, and note that it was Python who did it."""
    here.append(1)
    return len(here)


def test_the_mode_ends_with_an_error() -> None:
    seen: list[int] = []
    with pytest.raises(ZeroDivisionError), jit.interpreted():  # noqa: PT012 - what stands before the error is the test
        who(seen)  # a list that starts empty cannot be compiled for
        1 / 0  # noqa: B018
    assert seen == [1]
    with pytest.raises(ValueError, match="empty"):
        who([])


def test_other_threads_go_on_compiled() -> None:
    found: list[str] = []

    def other() -> None:
        try:
            who([])
        except ValueError as error:
            found.append(str(error))

    with jit.interpreted():
        thread = Thread(target=other)
        thread.start()
        thread.join()
        assert who([]) == 1
    assert len(found) == 1


@pytest.mark.parametrize("bound", ["inf", "0.75"])
def test_the_command_does_not_import_the_compiler(bound: str) -> None:
    code = (
        "import sys; from spanrl.cli import main; main(['plan', 'two-state', '--span-bound', sys.argv[1]]);"
        "print([m for m in ('numba', 'scipy') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, bound], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.strip() == "[]"
    assert "certified in" in done.stdout
