"""Random numbers: one seed, two independent streams, one for the environment and one for the agent.

The bit generator is SFC64: its state is four 64-bit words and its step a handful of operations, so that compiled loops draw from the
very stream that the numpy ``Generator`` would give, without a call.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from spanrl.errors import OptionError


def streams(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Return (env_rng, agent_rng): ``SeedSequence(seed, spawn_key=(0,))`` for the environment, ``(1,)`` for the agent.

    Args:
        seed: a whole number ≥ 0.

    Returns:
        Two generators.

    Raises:
        OptionError: the seed is no such number.

    >>> env_rng, agent_rng = streams(0)
    >>> env_rng.random() != agent_rng.random()
    True
    """
    whole = check_seed("streams", seed)
    env_rng, agent_rng = (_generator(np.random.SeedSequence(whole, spawn_key=(key,))) for key in (0, 1))
    return env_rng, agent_rng


def generator(who: str, rng: Any) -> np.random.Generator:
    """Return ``rng`` itself where it is a Generator, a fresh one where it is a seed."""
    if isinstance(rng, np.random.Generator):
        return rng
    return _generator(np.random.SeedSequence(check_seed(who, rng)))


def check_seed(who: str, seed: Any) -> int:
    """Return the seed as an int, or say what a seed is."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise OptionError(f"{who}: the seed must be a whole number ≥ 0; got {seed!r}. Give 0, say.")
    return int(seed)


def is_compilable(rng: np.random.Generator) -> bool:
    """Tell whether compiled loops can draw from the generator: its bits are those of SFC64."""
    return isinstance(rng.bit_generator, np.random.SFC64)


def get_state(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the four words of an SFC64 generator, as the kernels take them."""
    words: np.ndarray[Any, np.dtype[np.uint64]] = rng.bit_generator.state["state"]["state"].copy()
    return words


def set_state(rng: np.random.Generator, words: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
    """Put the words that a kernel left back into the generator."""
    state = rng.bit_generator.state
    state["state"]["state"] = words.copy()
    rng.bit_generator.state = state


def _generator(sequence: np.random.SeedSequence) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(sequence))
