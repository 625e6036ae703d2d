"""The inner loops of equally weighted TIES, on pieces that fit the second-level cache.

Choices are made with `where` on flags, never by indexing: a branch on a sign would be guessed wrong
half of the time. `native` holds the same loops in C; the results are the same bit for bit.
"""

from typing import Final, final

import numpy as np

from gtr_turbo.merging.arrays.direct import PAGE
from gtr_turbo.merging.arrays.native import can_handle, native_kernels

CHUNK: Final = 32_768
"""Entries handled at a time: fits the second-level cache, and torch stays on the calling thread."""

Pair = tuple[np.ndarray, np.ndarray]
"""What belongs to the positive and to the negative changes."""

_ZERO: Final = np.float32(0.0)


def spans(num_entries: int) -> list[tuple[int, int]]:
    """Return the half-open pieces of at most CHUNK entries that cover `num_entries`."""
    return [(at, min(at + CHUNK, num_entries)) for at in range(0, num_entries, CHUNK)]


@final
class Scratch:
    """Memory that is used again for one tensor after another; fresh memory costs more than work."""

    def __init__(self) -> None:
        """Start without memory."""
        self._bytes = np.empty(0, np.uint8)

    def bytes(self, num_bytes: int) -> np.ndarray:
        """Return room for `num_bytes` bytes from a page's start on, valid until the next call."""
        if self._bytes.size < num_bytes:
            whole = np.empty(num_bytes + PAGE, np.uint8)
            self._bytes = whole[-whole.ctypes.data % PAGE :][:num_bytes]
        return self._bytes[:num_bytes]

    def floats(self, num_entries: int) -> np.ndarray:
        """Return room for `num_entries` float32 numbers, valid until the next call; the same."""
        return self.bytes(num_entries * 4).view(np.float32)


def count_zeros(values: np.ndarray) -> int:
    """Return how many of `values` are 0."""
    return int(np.count_nonzero(np.equal(values, values.dtype.type(0.0))))


def add_kept(change: np.ndarray, threshold: float, masses: Pair, counts: Pair) -> None:
    """Add the entries of `change` whose magnitude reaches `threshold`, with weight 1, in place.

    Masses are float32; counts are whole numbers and have room for one more.
    """
    native = native_kernels() if can_handle(masses[0], counts[0]) else None
    if native is not None:
        native.add(change, threshold, masses, counts)
        return
    bound = np.float32(threshold)
    for is_kept, mass, count in (
        (change >= bound, masses[0], counts[0]),
        (change <= -bound, masses[1], counts[1]),
    ):
        mass += np.where(is_kept, change, _ZERO)
        count += is_kept.view(np.uint8)


def finish_matched(masses: Pair, counts: Pair, result: np.ndarray) -> None:
    """Write the mean of the elected sign, + for a sum of exactly 0, and 0 where nothing is kept."""
    native = native_kernels() if can_handle(masses[0], counts[0]) else None
    if native is not None:
        native.finish(masses, counts, result)
        return
    for start, stop in spans(result.size):
        up, down = masses[0][start:stop], masses[1][start:stop]
        is_positive = up + down >= _ZERO
        matched = np.where(is_positive, counts[0][start:stop], counts[1][start:stop])
        np.maximum(matched, 1, out=matched)
        elected = np.where(is_positive, up, down)
        np.divide(elected, matched.astype(np.float32), out=result[start:stop])
