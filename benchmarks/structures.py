"""Models of real structure: queues, stocks, machines, mazes, walks, communities, and what else people plan in.

Each function builds an :class:`~spanrl.MDP` whose optimal gain is the same from every state. Nothing in it is tuned to a solver: the
models mix slowly, are periodic, have ragged actions or long rows because their kind does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import geom, poisson

from spanrl import MDP
from spanrl.bench import garnet

Array = NDArray[Any]
Make = Callable[[], MDP]


def queues(sizes: Sequence[int], arrivals: Sequence[float], services: Sequence[float], costs: Sequence[float]) -> MDP:
    """Return parallel queues and one server that chooses whom to serve; the reward falls with the weighted queue lengths.

    Uniformised: in a slot either a customer arrives at queue i (rate ``arrivals[i]``, lost where it is full), or the service at the chosen
    queue is completed (rate ``services[a]``), or nothing happens.
    """
    shape, A = tuple(sizes), len(sizes)
    total = sum(arrivals) + max(services)
    length = np.indices(shape).reshape(A, -1).T  # [S, A]
    S = len(length)
    step = np.array([int(np.prod(shape[i + 1 :])) for i in range(A)])
    here = np.arange(S)
    arrived = [here + step[i] * (length[:, i] + 1 < shape[i]) for i in range(A)]
    served = [here - step[a] * (length[:, a] > 0) for a in range(A)]
    succ = np.stack([np.stack([*arrived, served[a], here], axis=1) for a in range(A)], axis=1)
    prob = np.array([[*arrivals, services[a], max(services) - services[a]] for a in range(A)]) / total
    reward = 1.0 - length @ np.array(costs) / np.dot(np.array(shape) - 1, costs)
    return _table(succ, np.broadcast_to(prob, succ.shape), np.repeat(reward[:, None], A, axis=1))


def loaded(sizes: Sequence[int], load: float) -> MDP:
    """Return :func:`queues` with a given load ρ = Σ λ/μ, of customers who differ in how long they take and what they cost."""
    n = len(sizes)
    services = np.linspace(1.0, 0.6, n)
    return queues(sizes, (load / n * services).tolist(), services.tolist(), np.linspace(1.0, 2.5, n).tolist())


def tandem(n: int, load: float = 0.95) -> MDP:
    """Return two stations in a row with n − 1 places each: admit or reject, and let the second work slowly or, at a price, fast."""
    S, A = n * n, 4
    first, second = np.divmod(np.arange(S), n)
    here = np.arange(S)
    succ, prob = np.empty((S, A, 4), dtype=np.int64), np.empty((S, A, 4))
    reward = np.empty((S, A))
    for a in range(A):
        admits, fast = divmod(a, 2)
        speed = (0.9, 1.3)[fast]
        enters = admits * (first + 1 < n)
        succ[:, a] = np.stack(
            (here + n * enters, here - (n - 1) * ((first > 0) & (second + 1 < n)), here - (second > 0), here), axis=1
        )
        prob[:, a] = np.array([load, 1.0, speed, 1.3 - speed]) / (load + 2.3)
        reward[:, a] = 20.0 * load * enters - 0.05 * n * fast - (first + 2.0 * second) / n * 8.0
    return _table(succ, prob, _unit(reward))


def admission(K: int, load: float = 1.0) -> MDP:
    """Return admission control of an M/M/1/K queue: reject or admit, for a fee and a cost per customer in the system."""
    n = np.arange(K + 1)
    reject = np.stack((n, np.maximum(n - 1, 0), n), axis=1)
    admit = np.stack((np.minimum(n + 1, K), np.maximum(n - 1, 0), n), axis=1)
    prob = np.broadcast_to(np.array([load, 1.0, 0.0]) / (load + 1.0), (K + 1, 2, 3))
    reward = np.stack((-0.02 * n, 0.05 * K * load - 0.02 * n), axis=1)
    available = np.stack((n >= 0, n < K), axis=1)
    return _table(np.stack((reject, admit), axis=1), prob, _unit(reward), available)


def inventory(
    capacity: int, demand: str = "poisson", mean: float = 8.0, max_order: int | None = None, fixed: float = 40.0
) -> MDP:
    """Return a stock 0 … capacity with lost sales: any order that fits, a fixed cost per order, holding costs, random demand."""
    law = poisson(mean) if demand == "poisson" else geom(1 / (1 + mean), loc=-1)
    n = int(law.isf(1e-9)) + 1
    p = np.append(law.pmf(np.arange(n)), law.sf(n - 1))
    stock, order = np.indices((capacity + 1, (max_order or capacity) + 1)).reshape(2, -1)
    fits = stock + order <= capacity
    stock, order = stock[fits], order[fits]
    rows = np.maximum(np.arange(capacity + 1)[:, None] - np.arange(n + 1), 0)  # [stock after the order, demand]
    sold = (np.arange(capacity + 1)[:, None] - rows) @ p
    after = stock + order
    reward = 4.0 * sold[after] - fixed * (order > 0) - 2.0 * order - 0.05 * (after - sold[after])
    return _rows(stock, order, rows[after], np.broadcast_to(p, (after.size, n + 1)), _unit(reward))


def machine_replacement(n: int, wear: float = 0.1) -> MDP:
    """Return a machine with wear 0 … n that grows slowly: keep it, overhaul it to half its wear, or replace it."""
    s = np.arange(n + 1)
    succ = np.zeros((n + 1, 3, 3), dtype=np.int64)
    prob = np.zeros((n + 1, 3, 3))
    succ[:, 0] = np.minimum(s[:, None] + np.arange(3), n)
    prob[:, 0] = 1 - wear, wear * 0.8, wear * 0.2
    succ[:, 1, 0], prob[:, 1, 0] = s // 2, 1.0
    prob[:, 2, 0] = 1.0
    running = 1.0 - 0.8 * (s / n) ** 2
    reward = np.stack((running, running - 0.05 * n, running - 0.08 * n), axis=1)
    available = np.stack((s < n, s > 0, s > 0), axis=1)
    return _table(succ, prob, _unit(reward), available)


def maze(n: int, slip: float = 0.2, opened: float = 0.1, seed: int = 0) -> MDP:
    """Return an n × n maze: a random spanning tree of passages, some walls opened, steps that slip sideways, and a goal that pays 1."""
    rng = np.random.default_rng(seed)
    S = n * n
    cell = np.arange(S).reshape(n, n)
    one = np.concatenate((cell[:, :-1].ravel(), cell[:-1].ravel()))
    two = np.concatenate((cell[:, 1:].ravel(), cell[1:].ravel()))
    length = rng.uniform(0.1, 1.0, one.size) + (two == S - 1)  # nothing lies behind the goal
    tree = minimum_spanning_tree(coo_array((length, (one, two)), shape=(S, S)).tocsr()).tocoo()
    more = rng.random(one.size) < opened
    one, two = np.concatenate((tree.coords[0], one[more])), np.concatenate((tree.coords[1], two[more]))
    to = np.repeat(np.arange(S)[:, None], 4, axis=1)  # to the north, east, south, west
    across = two - one == 1
    to[one[across], 1], to[two[across], 3] = two[across], one[across]
    to[one[~across], 2], to[two[~across], 0] = two[~across], one[~across]
    succ = np.stack([to[:, [a, (a + 1) % 4, (a + 3) % 4]] for a in range(4)], axis=1)
    succ[-1] = 0
    prob = np.broadcast_to(np.array([1 - slip, slip / 2, slip / 2]), succ.shape)
    reward = np.zeros((S, 4))
    reward[-1] = 1.0
    return _table(succ, prob, reward)


def river(S: int) -> MDP:
    """Return RiverSwim of any length: swim right against the current for a reward of 1 far away, or drift left for a small one."""
    s = np.arange(S)
    succ = np.stack((np.maximum(s - 1, 0), s, np.minimum(s + 1, S - 1)), axis=1)
    prob = np.zeros((S, 2, 3))
    prob[:, 0, 0] = 1.0
    prob[:, 1] = 0.05, 0.6, 0.35
    prob[0, 1], prob[-1, 1] = (0.0, 0.4, 0.6), (0.4, 0.6, 0.0)
    reward = np.zeros((S, 2))
    reward[0, 0], reward[-1, 1] = 0.005, 1.0
    return _table(np.repeat(succ[:, None], 2, axis=1), prob, reward)


def ring(S: int, other: int = 2, seed: int = 0) -> MDP:
    """Return a deterministic ring with random rewards: go one step on, or ``other`` steps (0 stays, 2 skips a state)."""
    rng = np.random.default_rng(seed)
    succ = (np.arange(S)[:, None] + np.array([1, other])) % S
    reward = rng.random((S, 2))
    if other == 0:
        reward[:, 1] *= 0.5  # it pays to go on
    return _table(succ[:, :, None], np.ones((S, 2, 1)), reward)


def torus(n: int, control: float = 0.1) -> MDP:
    """Return a random walk on an n × n torus that each of four actions tilts a little; the rewards are smooth. Periodic for even n."""
    x, y = np.divmod(np.arange(n * n), n)
    to = np.stack(((x - 1) % n * n + y, x * n + (y + 1) % n, (x + 1) % n * n + y, x * n + (y - 1) % n), axis=1)
    prob = np.full((4, 4), (1 - control) / 4) + control * np.eye(4)
    turn = 2 * np.pi / n
    hills = np.sin(x * turn) * np.cos(2 * y * turn) + 0.5 * np.cos((3 * x + y) * turn)
    succ = np.repeat(to[:, None], 4, axis=1)
    return _table(succ, np.broadcast_to(prob, succ.shape), np.repeat(_unit(hills)[:, None], 4, axis=1))


def clusters(k: int, m: int, eps: float, A: int = 3, branches: int = 5, seed: int = 0) -> MDP:
    """Return k Garnets of m states each, left with probability ``eps`` per step for a random state: nearly decomposable."""
    rng = np.random.default_rng(seed)
    S = k * m
    first = np.arange(S) // m * m
    inside = rng.integers(0, m, (S, A, branches)) + first[:, None, None]
    prob = rng.dirichlet(np.ones(branches), size=(S, A)) * (1 - eps)
    level = np.repeat(rng.uniform(0.7, 1.0, k), m)  # some clusters are better than others
    succ = np.concatenate((inside, rng.integers(0, S, (S, A, 1))), axis=2)
    return _table(succ, np.concatenate((prob, np.full((S, A, 1), eps)), axis=2), rng.random((S, A)) * level[:, None])


def power_law(S: int, A: int = 3, community: int = 500, leave: float = 2e-3, seed: int = 0) -> MDP:
    """Return a directed graph with power laws of out- and in-degrees, in communities with hubs that are seldom left.

    A pair moves to the next state with a small probability, so that everything communicates.
    """
    rng = np.random.default_rng(seed)
    n = S * A
    state, action = np.divmod(np.arange(n), A)
    degree = np.minimum(rng.pareto(1.3, n) + 2, 80).astype(np.int64)
    pair = np.repeat(np.arange(n), degree)
    first = state[pair] // community * community
    size = np.minimum(first + community, S) - first
    near = first + (size * rng.random(pair.size) ** 3).astype(np.int64)  # the first of a community are its hubs
    weight = rng.exponential(size=pair.size)
    prob = weight / np.bincount(pair, weight, n)[pair]
    hubs = (S * rng.random(n) ** 4).astype(np.int64)
    spread = np.repeat(rng.uniform(0.7, 1.0, S // community + 1), community)[:S]
    pairs = np.concatenate((pair, np.arange(n), np.arange(n)))
    succ = np.concatenate((near, hubs, (state + 1) % S))
    prob = np.concatenate((prob * (1 - leave), np.full(n, leave * 0.8), np.full(n, leave * 0.2)))
    order = np.argsort(pairs, kind="stable")
    ptr = np.concatenate(([0], np.cumsum(degree + 2)))
    return MDP.from_pairs(state, action, ptr, succ[order], prob[order], rng.random(n) * spread[state])


def line(S: int, reach: int = 20, A: int = 3, branches: int = 4, seed: int = 0) -> MDP:
    """Return states on a line with random successors no farther than ``reach``."""
    rng = np.random.default_rng(seed)
    s = np.arange(S)
    near = np.clip(s[:, None, None] + rng.integers(-reach, reach + 1, (S, A, branches)), 0, S - 1)
    return _local(rng, near, 0.5 + 0.5 * np.sin(6 * np.pi * s / S))


def plane(n: int, reach: int = 3, A: int = 3, branches: int = 4, seed: int = 0) -> MDP:
    """Return an n × n grid of states with random successors no farther than ``reach`` in each direction."""
    rng = np.random.default_rng(seed)
    x, y = np.divmod(np.arange(n * n), n)
    to = [np.clip(z[:, None, None] + rng.integers(-reach, reach + 1, (n * n, A, branches)), 0, n - 1) for z in (x, y)]
    hills = 0.5 + 0.5 * np.sin(4 * np.pi * x / n) * np.sin(4 * np.pi * y / n)
    return _local(rng, to[0] * n + to[1], hills)


def dense_rows(S: int, A: int = 4, seed: int = 0) -> MDP:
    """Return a model in which every pair can lead to every state."""
    rng = np.random.default_rng(seed)
    succ = np.broadcast_to(np.arange(S), (S, A, S))
    return _table(succ, rng.dirichlet(np.full(S, 0.2), size=(S, A)), rng.random((S, A)))


def _local(rng: np.random.Generator, near: Array, smooth: Array) -> MDP:
    """Add the neighbours s ± 1 to the successors, so that everything communicates, and draw the rest."""
    S, A, branches = near.shape
    s = np.repeat(np.arange(S)[:, None], A, axis=1)
    succ = np.concatenate((near, np.stack((np.maximum(s - 1, 0), np.minimum(s + 1, S - 1)), axis=2)), axis=2)
    prob = np.concatenate((rng.dirichlet(np.ones(branches), size=(S, A)) * 0.9, np.full((S, A, 2), 0.05)), axis=2)
    return _table(succ, prob, 0.5 * smooth[:, None] + 0.5 * rng.random((S, A)))


def _table(succ: Array, prob: Array, reward: Array, available: Array | None = None) -> MDP:
    """Build from outcomes [S, A, k]; successors may repeat, and those of probability 0 are dropped."""
    S, A, k = succ.shape
    state, action = np.divmod(np.arange(S * A), A)
    kept = np.ones(S * A, dtype=bool) if available is None else available.ravel()
    return _rows(
        state[kept],
        action[kept],
        succ.reshape(-1, k)[kept],
        np.reshape(prob, (-1, k))[kept],
        np.reshape(reward, -1)[kept],
    )


def _rows(state: Array, action: Array, succ: Array, prob: Array, reward: Array) -> MDP:
    """Build from outcomes [n_pairs, k]."""
    n, k = succ.shape
    return MDP.from_pairs(state, action, np.arange(n + 1) * k, succ.ravel(), np.ravel(prob), reward)


def _unit(reward: Array) -> Array:
    """Scale rewards to [0, 1]; neither the policies nor the structure change."""
    scaled: Array = (reward - reward.min()) / (reward.max() - reward.min())
    return scaled


@dataclass(frozen=True)
class Kind:
    """A kind of model: how to make it in each of its sizes, and in a tiny one."""

    sizes: Mapping[str, Make]
    smoke: Make


LIGHT, HEAVY = 0.6, 0.98

KINDS: Mapping[str, Kind] = {
    "queues": Kind(
        {
            "20 × 20, heavy load": partial(loaded, (20, 20), HEAVY),
            "61 × 61, light load": partial(loaded, (61, 61), LIGHT),
            "61 × 61, heavy load": partial(loaded, (61, 61), HEAVY),
            "120 × 120, heavy load": partial(loaded, (120, 120), HEAVY),
            "16 × 16 × 16, light load": partial(loaded, (16, 16, 16), LIGHT),
            "16 × 16 × 16, heavy load": partial(loaded, (16, 16, 16), HEAVY),
            "24 × 24 × 24, heavy load": partial(loaded, (24, 24, 24), HEAVY),
        },
        partial(loaded, (5, 5), HEAVY),
    ),
    "tandem queue": Kind({"40 × 40": partial(tandem, 40)}, partial(tandem, 5)),
    "admission control": Kind({"K = 500": partial(admission, 500)}, partial(admission, 20)),
    "inventory": Kind(
        {
            "200, every order": partial(inventory, 200, "geometric"),
            "1,000, orders up to 100": partial(inventory, 1000, mean=20.0, max_order=100, fixed=200.0),
        },
        partial(inventory, 12, mean=2.0),
    ),
    "machine replacement": Kind(
        {"300": partial(machine_replacement, 300), "3,000": partial(machine_replacement, 3000)},
        partial(machine_replacement, 20),
    ),
    "maze": Kind({f"{n} × {n}": partial(maze, n) for n in (40, 100, 200)}, partial(maze, 6)),
    "RiverSwim": Kind({f"{S:,}": partial(river, S) for S in (200, 2000, 10000)}, partial(river, 20)),
    "ring": Kind(
        {"1,000, step or stay": partial(ring, 1000, 0), "10,000, step or skip": partial(ring, 10000, 2)},
        partial(ring, 21),
    ),
    "torus": Kind({f"{n} × {n}": partial(torus, n) for n in (50, 150)}, partial(torus, 6)),
    "clusters": Kind(
        {
            f"{k} of {m}, left with {eps:g}": partial(clusters, k, m, eps)
            for k, m in ((20, 50), (100, 100))
            for eps in (1e-3, 1e-5)
        },
        partial(clusters, 3, 8, 1e-3),
    ),
    "power law": Kind({f"{S:,}": partial(power_law, S) for S in (10**4, 3 * 10**5)}, partial(power_law, 90, 3, 30)),
    "local, on a line": Kind({f"{S:,}": partial(line, S) for S in (10**4, 3 * 10**5)}, partial(line, 60, 5)),
    "local, on a plane": Kind({f"{n} × {n}": partial(plane, n) for n in (100, 550)}, partial(plane, 8, 2)),
    "many actions": Kind(
        {
            "500 × 1,000": partial(garnet, 500, 1000, 5),
            "500 × 1,000, slow mixing": partial(garnet, 500, 1000, 5, stay=0.99),
        },
        partial(garnet, 20, 40, 3),
    ),
    "dense rows": Kind({f"{S:,}": partial(dense_rows, S) for S in (500, 1000)}, partial(dense_rows, 30)),
    "Garnet": Kind(
        {
            "10,000": partial(garnet, 10**4, 4, 6),
            "10,000, slow mixing": partial(garnet, 10**4, 4, 6, stay=0.99),
            "100,000": partial(garnet, 10**5, 4, 6),
        },
        partial(garnet, 50, 3, 4),
    ),
}
"""Kind → its sizes and a tiny one."""

CASES: Mapping[str, Make] = {
    f"{name}, {size}": make for name, kind in KINDS.items() for size, make in kind.sizes.items()
}
"""Kind and size → how to make the model."""
