"""How many rounds of sweeps a solve would still take, from what the last ones made of its bracket."""

from __future__ import annotations

from math import inf, log

PROGRESS = 0.9
"""A bracket this much narrower is progress."""

_SHORT = 3  # rounds that show what rounds are worth
_LEAST = 1e-12  # ratio of two widths, of which the first may be infinite


class Forecast:
    """The widths of the full brackets since the last linear system."""

    def __init__(self) -> None:
        """Begin without experience."""
        self._widths = list[float]()

    def begin_anew(self) -> None:
        """Forget the widths: a linear system was solved."""
        self._widths.clear()

    def rounds_left(self, width: float, tol: float, asked: float) -> float:
        """Note one more width, and predict how many rounds it takes to the tolerance.

        Until three are known each is assumed to narrow the bracket as the next one is asked to, ``asked``. Later the last one counts where
        it did better than three in the mean: the nearer the end, the fewer states change. Infinitely many where they make no progress: then
        a system may help even where the policy is evaluated well enough.
        """
        widths = self._widths
        widths.append(width)
        ratio = asked
        if len(widths) > _SHORT:
            ratio = min((widths[-1] / widths[-1 - _SHORT]) ** (1 / _SHORT), widths[-1] / widths[-2])
        return inf if ratio >= PROGRESS else 1.0 + max(log(width / tol), 0.0) / -log(max(ratio, _LEAST))
