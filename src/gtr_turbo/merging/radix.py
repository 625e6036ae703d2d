"""The exact k-th largest magnitude of numbers that pass by, without keeping them.

Magnitudes of float32 order like their bit patterns, so counting the upper 16 bits finds the bin
that holds the threshold, and counting the lower 16 bits within that bin finds the threshold itself:
two passes, whatever the size. The second is not needed for bfloat16, whose lower bits are 0.
"""

from typing import Final, final

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from gtr_turbo.merging.arrays.kernels import CHUNK, spans
from gtr_turbo.merging.arrays.trimming import SMALLEST_MAGNITUDE, select_threshold
from gtr_turbo.merging.changes import Change

_HALF_BITS: Final = 16
_NUM_HIGH: Final = 1 << 15
_NUM_LOW: Final = 1 << 16


@final
class RadixSelector:
    """Finds the k-th largest |d| over any number of pieces, each shown twice: high, then low."""

    def __init__(self, kept: int) -> None:
        """Prepare to find the `kept`-th largest magnitude."""
        self._kept = kept
        self._high = np.zeros(_NUM_HIGH, np.int64)
        self._low = np.zeros(_NUM_LOW, np.int64)
        self._bin: int | None = None
        self._rank = kept

    def count_high(self, values: Float32[Tensor, " entry"]) -> None:
        """Count the upper bits of a piece (first pass)."""
        bits = _magnitude_bits(values)
        self._high += np.bincount(bits >> _HALF_BITS, minlength=_NUM_HIGH)

    def end_first_pass(self) -> None:
        """Find the bin of the threshold."""
        if 0 < self._kept < int(self._high.sum()):
            self._bin, self._rank = _bin_of(self._high, self._kept)

    def count_low(self, values: Float32[Tensor, " entry"]) -> None:
        """Count the lower bits of the entries in the threshold's bin (second pass)."""
        if self._bin is None:
            return
        bits = _magnitude_bits(values)
        inside = bits[bits >> _HALF_BITS == self._bin] & (_NUM_LOW - 1)
        self._low += np.bincount(inside, minlength=_NUM_LOW)

    def threshold(self) -> float:
        """Return the k-th largest magnitude, at least the least positive float32."""
        if self._bin is None:
            return select_threshold(np.empty(0, np.float32), self._kept)
        low, _ = _bin_of(self._low, self._rank)
        bits = np.array([(self._bin << _HALF_BITS) | low], np.int32)
        return max(float(bits.view(np.float32)[0]), SMALLEST_MAGNITUDE)


def select_streaming(change: Change, kept: int) -> float:
    """Return the k-th largest magnitude of `change`, holding only one piece of it at a time."""
    selector = RadixSelector(kept)
    buffer = torch.empty(min(CHUNK, change.num_entries), dtype=torch.float32)
    for start, stop in spans(change.num_entries):
        selector.count_high(change.chunk(start, stop, buffer))
    selector.end_first_pass()
    for start, stop in spans(change.num_entries):
        selector.count_low(change.chunk(start, stop, buffer))
    return selector.threshold()


def _magnitude_bits(values: Float32[Tensor, " entry"]) -> np.ndarray:
    return values.numpy().view(np.int32) & np.int32(0x7FFFFFFF)


def _bin_of(counts: np.ndarray, kept: int) -> tuple[int, int]:
    """Return the bin of the `kept`-th largest, and its rank within the bin from above."""
    above = np.cumsum(counts[::-1])
    position = int(np.searchsorted(above, kept))
    before = int(above[position - 1]) if position > 0 else 0
    return counts.size - 1 - position, kept - before
