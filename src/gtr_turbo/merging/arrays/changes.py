"""One checkpoint's change of one tensor, read in small pieces and checked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.kernels import CHUNK, Scratch, count_zeros, spans
from gtr_turbo.merging.arrays.native import native_kernels
from gtr_turbo.merging.arrays.numbers import (
    BFLOAT16,
    count_not_finite,
    narrow,
    overflow,
    subtract,
    widen,
)
from gtr_turbo.merging.arrays.trimming import num_kept, select_threshold
from gtr_turbo.merging.weights import Real


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayChange:
    """checkpoint - base of one flat array in float32; the checkpoint where `base` is None."""

    name: str
    label: str
    """Which checkpoint this is, for messages."""
    checkpoint: np.ndarray
    base: np.ndarray | None

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return self.checkpoint.size

    def chunk(self, start: int, stop: int, buffer: np.ndarray) -> np.ndarray:
        """Return entries [start, stop) of the change, written into the head of `buffer`."""
        head, part = buffer[: stop - start], self.checkpoint[start:stop]
        if self.base is None:
            return widen(part, head)
        return subtract(part, self.base[start:stop], head)

    def look(self, start: int, stop: int, buffer: np.ndarray) -> np.ndarray:
        """Return entries [start, stop), which must not be changed: a view where there is one."""
        if self.base is None and self.checkpoint.dtype == np.float32:
            return self.checkpoint[start:stop]
        return self.chunk(start, stop, buffer)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is known of a change before anything is added."""

    threshold: Real
    """Magnitude from which entries are kept."""
    num_zero: int
    """Entries that did not change at all."""
    largest: Real
    """The largest magnitude."""


def measure(change: ArrayChange, density: Real, scratch: Scratch | None = None) -> Measure:
    """Return the trim threshold of `change` and its number of zeros.

    Nothing but one piece is held when `density` is 0 or 1; otherwise `scratch` lends the memory.

    Raises:
        MergeError: the checkpoint holds NaN or an infinite value; tensor, checkpoint and count are
            in the message.
    """
    kept = num_kept(change.num_entries, density)
    if kept in (0, change.num_entries):
        num_zero, largest = fill_magnitude(change, None)
        threshold = select_threshold(np.empty(0, np.float32), kept)
        return Measure(threshold=threshold, num_zero=num_zero, largest=largest)
    magnitude = (scratch or Scratch()).floats(change.num_entries)
    num_zero, largest = fill_magnitude(change, magnitude)
    threshold = select_threshold(magnitude, kept)
    return Measure(threshold=threshold, num_zero=num_zero, largest=largest)


def fill_magnitude(change: ArrayChange, magnitude: np.ndarray | None) -> tuple[int, float]:
    """Write |d| into `magnitude`, if given; return how many d are 0, and the largest |d|.

    Raises:
        MergeError: an entry of the checkpoint or the base is NaN or infinite.
    """
    buffer = np.empty(min(CHUNK, change.num_entries), np.float32)
    num_zero, largest = 0, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for start, stop in spans(change.num_entries):
            own = buffer if magnitude is None else magnitude[start:stop]
            piece = change.chunk(start, stop, own)
            np.abs(piece, out=piece)
            here = float(piece.max())
            if not math.isfinite(here):
                _refuse_non_finite(change)
            largest = max(largest, here)
            num_zero += count_zeros(piece)
    return num_zero, largest


def measure_globally(changes: Mapping[str, ArrayChange], density: Real) -> dict[str, Measure]:
    """Return measures with one threshold: that of all tensors laid end to end."""
    num_entries = sum(change.num_entries for change in changes.values())
    magnitude = np.empty(num_entries, np.float32)
    start, found = 0, dict[str, tuple[int, float]]()
    for name, change in changes.items():
        stop = start + change.num_entries
        found[name] = fill_magnitude(change, magnitude[start:stop])
        start = stop
    threshold = select_threshold(magnitude, num_kept(num_entries, density))
    return {
        name: Measure(threshold=threshold, num_zero=num_zero, largest=largest)
        for name, (num_zero, largest) in found.items()
    }


def apply_delta(base: np.ndarray, delta: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    """Return base + delta rounded once to `dtype`; where the delta is 0, the base bit for bit.

    Raises:
        MergeError: the sum is too large for `dtype`; tensor `name` is in the message.
    """
    result = np.empty(base.size, dtype)
    native = native_kernels() if base.dtype == dtype == BFLOAT16 else None
    if native is not None:
        if not native.apply(base, delta, result):
            raise overflow(name, "BF16")
        return result
    wide = np.float64 if base.dtype == np.float64 else np.float32
    summed = np.empty(min(CHUNK, base.size), wide)
    for start, stop in spans(base.size):
        change = delta[start:stop]
        piece = widen(base[start:stop], summed[: stop - start])
        # -0.0 + 0.0 is 0.0, so an unchanged zero must not go through the sum.
        reference = piece.copy() if count_zeros(piece) > 0 else None
        with np.errstate(over="ignore"):
            piece += change
        if reference is not None:
            np.copyto(piece, reference, where=change == 0.0)
        narrow(piece, result[start:stop], name)
    return result


def _refuse_non_finite(change: ArrayChange) -> None:
    culprits = [(change.label, change.checkpoint)]
    if change.base is not None:
        culprits.insert(0, ("the base", change.base))
    for label, values in culprits:
        num_bad = count_not_finite(values)
        if num_bad:
            raise MergeError(
                f'tensor "{change.name}" of {label} has {num_bad} NaN or infinite'
                f" {'entry' if num_bad == 1 else 'entries'} of {values.size}.",
                hint="leave this checkpoint out, and find the update that broke it.",
            )
    raise MergeError(
        f'the change of tensor "{change.name}" in {change.label} overflows float32.',
        hint="weights this large cannot come from a working model; check the base.",
    )
