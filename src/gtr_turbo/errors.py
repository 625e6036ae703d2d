"""The exception family of gtr-turbo.

    GtrTurboError
    ├── ConfigError             (ValueError)    a field, a combination of fields, an unknown key
    ├── UnknownNameError        (LookupError)   a name that is in no registry
    ├── TaskError               (RuntimeError)  an environment was misused or broke its contract
    ├── MergeError              (ValueError)    checkpoints that must not be merged
    ├── ModelError              (ValueError)    a model directory that cannot be loaded or used
    ├── VisionMismatchError     (RuntimeError)  picture tokens and picture features disagree
    ├── SpanError               (RuntimeError)  thought and action tokens cannot be told apart
    ├── LogprobMismatchError    (RuntimeError)  recomputed and sampled log-probabilities differ
    ├── NonFiniteError          (ArithmeticError)  a loss, gradient or weight is NaN or infinite
    ├── StaleTeacherError       (RuntimeError)  a merge did not change the teacher
    ├── StaleAdapterError       (RuntimeError)  the weights that sample are not those that train
    ├── CheckpointError         (OSError)       a checkpoint is missing, incomplete or damaged
    ├── ResumeError             (RuntimeError)  a run cannot be continued as asked
    ├── RunLockedError          (RuntimeError)  another process owns the run directory
    └── CorrectorError          (RuntimeError)  the corrector is down, or its budget is spent

Every message says what was wrong (with the value) and what is allowed; the optional hint says how
to repair it and is printed after a blank line.
"""

import difflib
from collections.abc import Iterable


class GtrTurboError(Exception):
    """Base of every error that gtr-turbo raises on purpose."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        """Store the message and the hint; both are shown by `str`."""
        self.message = message
        self.hint = hint
        text = message if hint is None else f"{message}\n\nhint: {hint}"
        Exception.__init__(self, text)


class ConfigError(GtrTurboError, ValueError):
    """A configuration that cannot be used."""


class UnknownNameError(GtrTurboError, LookupError):
    """A name that is not in a registry."""


class TaskError(GtrTurboError, RuntimeError):
    """An environment was used against its contract, or broke it."""


class MergeError(GtrTurboError, ValueError):
    """Checkpoints that must not be merged."""


class ModelError(GtrTurboError, ValueError):
    """A model directory that cannot be loaded or used."""


class VisionMismatchError(GtrTurboError, RuntimeError):
    """Picture placeholders, picture features or picture hashes disagree."""


class SpanError(GtrTurboError, RuntimeError):
    """Thought and action tokens do not cover the response."""


class LogprobMismatchError(GtrTurboError, RuntimeError):
    """Recomputed log-probabilities are not the ones that were sampled from."""


class NonFiniteError(GtrTurboError, ArithmeticError):
    """A loss, a gradient or a weight is NaN or infinite."""


class StaleTeacherError(GtrTurboError, RuntimeError):
    """The teacher did not change where it had to."""


class StaleAdapterError(GtrTurboError, RuntimeError):
    """The weights that sample are not the weights that train."""


class CheckpointError(GtrTurboError, OSError):
    """A checkpoint is missing, incomplete or damaged."""


class ResumeError(GtrTurboError, RuntimeError):
    """A run cannot be continued as asked."""


class RunLockedError(GtrTurboError, RuntimeError):
    """Another process owns the run directory."""


class CorrectorError(GtrTurboError, RuntimeError):
    """The corrector gives no more answers, and the run was told to stop then."""


def nearest_hint(name: str, known: Iterable[str], what: str) -> str:
    """Return a hint that names the closest member of `known`, and all of them.

    >>> nearest_hint("point24", ["points24", "ezpoints"], "tasks")
    'did you mean "points24"? Known tasks: ezpoints, points24.'
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    start = f'did you mean "{close[0]}"? ' if close else ""
    return f"{start}Known {what}: {', '.join(names)}."
