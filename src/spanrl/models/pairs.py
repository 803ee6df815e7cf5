"""What MDPs and bounded-parameter MDPs share: the ragged table states → pairs, frozen arrays, equality."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import ModelError
from spanrl.models import checks


class PairTable:
    """Base of the frozen model classes.

    ``ARRAYS`` names their array fields and the one type of each, ``LENGTHS`` all arrays of a file and how long they are: S states, n pairs,
    m successors; "" is a single number.
    """

    ARRAYS: ClassVar[dict[str, Any]]
    LENGTHS: ClassVar[dict[str, str]] = {
        "pair_ptr": "S+1", "action": "n", "succ_ptr": "n+1", "succ": "m", "range": "2", "n_actions": "",
    }  # fmt: skip
    pair_ptr: NDArray[np.int64]
    action: NDArray[np.int64]
    succ_ptr: NDArray[np.int64]
    succ: NDArray[np.uint32]

    def __post_init__(self) -> None:
        """Freeze the arrays, each in its one type, and check that they make a model, however they came."""
        for name, dtype in self.ARRAYS.items():
            object.__setattr__(self, name, checks.immutable(getattr(self, name), dtype))
        fits = checks.rises(self.pair_ptr, self.n_pairs, 1) and checks.rises(self.succ_ptr, self.succ.size)
        if not fits or self.succ_ptr.size != self.n_pairs + 1:
            raise ModelError(f"{type(self).__name__}: the arrays do not fit together. Use from_pairs or from_dense.")
        self.check()

    def check(self) -> None:
        """Check the numbers; each kind of model has its own rules."""

    def where(self, i: int) -> str:
        """Name pair i in an error."""
        s = int(np.searchsorted(self.pair_ptr, i, side="right")) - 1
        return f"[s={self.name_of_state(s)}, a={self.name_of_action(int(self.action[i]))}]"

    def name_of_state(self, s: int) -> str:
        """Return what an error calls state s."""
        return str(s)

    def name_of_action(self, a: int) -> str:
        """Return what an error calls action a."""
        return str(a)

    @property
    def n_states(self) -> int:
        """S, the number of states."""
        return self.pair_ptr.size - 1

    @property
    def n_pairs(self) -> int:
        """The number of available pairs (s, a)."""
        return self.action.size

    @property
    def pair_state(self) -> NDArray[np.int64]:
        """The state of each pair, [n_pairs]."""
        return np.repeat(np.arange(self.n_states), np.diff(self.pair_ptr))

    def __eq__(self, other: object) -> bool:
        """Equal when the kind of model and every field are equal."""
        if other is self:
            return True
        if type(other) is not type(self):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name))
            if f.name in self.ARRAYS
            else getattr(self, f.name) == getattr(other, f.name)
            for f in fields(self)  # type: ignore[arg-type]
        )

    def __hash__(self) -> int:
        """Hash by size and successors (arrays are read-only)."""
        return hash((self.n_states, self.n_pairs, self.succ.tobytes()))
