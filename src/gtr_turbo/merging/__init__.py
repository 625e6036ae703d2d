"""Merging of a run's own checkpoints: exact, and at a cost constant in their number."""

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.accumulate import (
    ACCUMULATORS,
    AbstractAccumulator,
    LinearAccumulator,
    TiesAccumulator,
    load_accumulator,
    make_accumulator,
    restore_accumulator,
)
from gtr_turbo.merging.changes import MergeWarning
from gtr_turbo.merging.io import fingerprint
from gtr_turbo.merging.settings import TiesOptions
from gtr_turbo.merging.weights import ema_weights, sma_weights

__all__ = [
    "ACCUMULATORS",
    "AbstractAccumulator",
    "LinearAccumulator",
    "MergeError",
    "MergeWarning",
    "TiesAccumulator",
    "TiesOptions",
    "ema_weights",
    "fingerprint",
    "load_accumulator",
    "make_accumulator",
    "restore_accumulator",
    "sma_weights",
]
