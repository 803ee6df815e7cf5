"""Every error that spanrl raises on purpose.

::

    SpanrlError
    ├── InputError (also ValueError)      something given to us breaks a rule
    │   ├── ModelError                    a model, policy or vector is not what it must be
    │   │   └── ModelFileError            a file is damaged, of another format, or no model at all
    │   ├── RunFileError                  a saved run is damaged, of another format version, or none at all
    │   │   └── RunFileAccessError        it may be whole, but is of another format version or the system does not let us read it
    │   ├── OptionError                   an option has a value that is not allowed
    │   │   └── DirectoryInUseError       another driver works in the directory of an experiment
    │   └── UnknownNameError              no environment, parameter, … of that name; suggests the nearest
    ├── NotConvergedError                 carries the partial ``solution``
    │   └── MultichainError               the optimal gain is not constant: no single number to find
    ├── CellsFailedError                  cells of an experiment failed; carries the ``results`` of the others
    └── MissingExtraError (also ImportError)   an optional dependency is not installed

A message says who speaks, the rule, what came, where first and how often, and the remedy, in one sentence or two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spanrl.experiments.results import Results
    from spanrl.models.solution import Solution


class SpanrlError(Exception):
    """Root of all errors raised on purpose."""


class InputError(SpanrlError, ValueError):
    """Something given to spanrl breaks a rule."""


class ModelError(InputError):
    """A model, policy or vector is not what it must be."""


class ModelFileError(ModelError):
    """A file is damaged, of another format version, or not a model."""


class RunFileError(InputError):
    """A saved run is damaged, of another format version, or none at all."""


class RunFileAccessError(RunFileError):
    """A saved run may be whole, but this spanrl cannot read it: another format version, or the system refuses."""


class OptionError(InputError):
    """An option has a value that is not allowed."""


class DirectoryInUseError(OptionError):
    """Another driver works in the directory of an experiment."""


class UnknownNameError(InputError):
    """A name is not known; the message suggests the nearest one."""


class NotConvergedError(SpanrlError):
    """The solver stopped before its certificate closed; ``solution`` holds what it had."""

    def __init__(self, message: str, solution: Solution | None) -> None:
        """Keep the partial ``solution``, if there is one, beside the message."""
        super().__init__(message, solution)  # both, so that the error survives a way between processes
        self.solution = solution

    def __str__(self) -> str:
        """Return the message alone."""
        return str(self.args[0])


class MultichainError(NotConvergedError):
    """The optimal gain differs between states, so that no single gain exists."""


class CellsFailedError(SpanrlError):
    """Some cells of an experiment failed; ``results`` holds the others."""

    def __init__(self, message: str, results: Results | None) -> None:
        """Keep the ``results`` beside the message."""
        super().__init__(message, results)
        self.results = results

    def __str__(self) -> str:
        """Return the message alone."""
        return str(self.args[0])


class MissingExtraError(SpanrlError, ImportError):
    """An optional dependency is not installed."""


def missing_extra(who: str, package: str, extra: str) -> MissingExtraError:
    """Return the error for a ``package`` that is not installed; spanrl itself is on no index, so its extras come from its sources."""
    return MissingExtraError(
        f"{who}: {package} is not installed. Run: pip install {package} (or, in spanrl's sources, pip install '.[{extra}]')."
    )
