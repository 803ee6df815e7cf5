"""Threads: the same bits whatever their number, blocks that cover every state once, and nothing left behind."""

import threading

import numpy as np
import pytest
from planning_models import garnet

from spanrl import BoundedMDP, make, scopt, solve
from spanrl.planning import threads
from spanrl.planning.problem import prepare


def boxed(mdp, width=0.1, rest=0.02):
    low, high = np.maximum(mdp.prob - width, 0), np.minimum(mdp.prob + width, 1)
    table = (mdp.pair_state, mdp.action, mdp.succ_ptr, mdp.succ)
    rests = np.full(mdp.n_pairs, rest)
    return BoundedMDP.from_pairs(*table, low, high, rests, mdp.reward * 0.9, mdp.reward)


def models():
    mdp = garnet(np.random.default_rng(0), 211, 3, 4)
    ball = BoundedMDP.l1_ball(mdp, 0.3, mdp.reward * 0.9, mdp.reward)
    return {"plain": mdp, "box": boxed(mdp), "ball": ball}


@pytest.fixture
def always(monkeypatch):
    """Use threads for every model, and count the blocks that were handed to other threads."""
    handed = []

    def spied(kernel):
        def spy(*args):
            handed.append(threading.current_thread() is not threading.main_thread())
            return kernel(*args)

        return spy

    monkeypatch.setattr(threads, "PAYS", 0)
    for name in ("block_backup", "block_improve"):
        monkeypatch.setattr(threads, name, spied(getattr(threads, name)))
    return handed


@pytest.mark.parametrize("sense", ["optimistic", "pessimistic"])
@pytest.mark.parametrize("span_bound", [np.inf, 0.2])
@pytest.mark.parametrize("kind", ["plain", "box", "ball"])
def test_the_number_of_threads_changes_no_bit(kind, span_bound, sense, always):
    model = models()[kind]
    for options in ({}, {"method": "value-iteration"}, {"method": "modified-policy-iteration"}, {"contraction": 0.9}):
        solutions = [scopt(model, span_bound, sense=sense, threads=n, tol=1e-5, **options) for n in (1, 2, 3, 7)]
        for one in solutions[1:]:
            assert one.bias.tobytes() == solutions[0].bias.tobytes()
            assert (one.gain_bounds, one.sweeps) == (solutions[0].gain_bounds, solutions[0].sweeps)
            assert one.policy == solutions[0].policy
    assert any(always)


@pytest.mark.parametrize(
    ("name", "span_bound"),
    [
        ("riverswim[n_states=200]", np.inf),
        ("riverswim[n_states=200]", 3.0),
        ("two-queues", np.inf),
        ("knight-quest", 2.0),
    ],
)
def test_nor_where_linear_systems_are_solved(name, span_bound, always):
    mdp = make(name).mdp
    solutions = [scopt(mdp, span_bound, threads=n) for n in (1, 2, 7)]
    for one in solutions:
        assert one.method.startswith("policy-iteration")
        assert one.bias.tobytes() == solutions[0].bias.tobytes()
        assert (one.gain_bounds, one.sweeps) == (solutions[0].gain_bounds, solutions[0].sweeps)
    assert any(always)


def test_small_models_are_swept_by_one_thread(monkeypatch):
    monkeypatch.setattr(threads, "ThreadPoolExecutor", lambda *args, **options: pytest.fail("a pool was made"))
    assert solve(models()["plain"], threads=4).converged


@pytest.mark.parametrize("kind", ["plain", "box"])
@pytest.mark.parametrize("n", [1, 2, 5, 211, 400])
def test_blocks_hold_every_state_once_and_about_equal_numbers_of_entries(kind, n):
    problem = prepare(models()[kind])
    cut = threads.blocks(problem, n)
    assert len(cut) <= n
    states = np.concatenate([np.arange(problem.n_states)[part] for _, _, part in cut])
    assert states.tolist() == list(range(problem.n_states))
    m = problem.arrays
    sizes = [m.succ_ptr[block.pair_ptr[-1]] - m.succ_ptr[block.pair_ptr[0]] for block, _, _ in cut]
    assert sum(sizes) == m.succ.size
    assert max(sizes) <= m.succ.size / n + 3 * 4  # one state more at the most
    if kind == "box":
        assert np.concatenate([ws.pairs for _, ws, _ in cut]).tolist() == list(range(problem.n_pairs))


def test_an_interrupt_ends_the_solve_and_its_threads(always, monkeypatch):
    sweeps = []

    def finish(*args):
        sweeps.append(1)
        if len(sweeps) == 5:
            raise KeyboardInterrupt
        return kernel(*args)

    kernel = threads.block_improve
    monkeypatch.setattr(threads, "block_improve", finish)
    with pytest.raises(KeyboardInterrupt):
        solve(models()["plain"], threads=3)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("spanrl")]


def test_states_without_listed_successors_at_the_end_are_swept(monkeypatch):
    """The last state may stay where it is and is paid 1: a block that ends before it would miss that."""
    monkeypatch.setattr(threads, "PAYS", 0)
    ends = np.array([0.0, 0.0, 0.0])
    box = BoundedMDP.from_pairs(
        np.arange(4), np.zeros(4, dtype=int), np.array([0, 1, 2, 3, 3]), np.arange(3), ends, ends + 0.5,
        np.array([0.5, 0.5, 0.5, 1.0]), np.array([0.0, 0.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0]),
    )  # fmt: skip
    for method in ("auto", "value-iteration"):
        for n in (1, 2, 3, 4):
            assert solve(box, threads=n, method=method).gain == pytest.approx(1.0, abs=1e-6)
