"""How much of a change is kept, and from which magnitude: the first step of TIES."""

import math
from typing import Final

import numpy as np

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.weights import Real

_SAMPLED_FROM: Final = 1 << 17
_SAMPLE_SIZE: Final = 1 << 14
_MARGIN: Final = 320
"""Places of the sample on either side of the threshold's: six standard deviations."""
_PIECE: Final = 1 << 16

SMALLEST_MAGNITUDE = 2.0**-149
"""The least positive float32: with it as threshold every change except 0 is kept."""


def check_density(density: Real) -> float:
    """Return `density`; MergeError unless it is a fraction in [0, 1]."""
    if isinstance(density, bool) or not (math.isfinite(density) and 0.0 <= density <= 1.0):
        raise MergeError(
            f"the density must lie in [0, 1], got {density}.",
            hint="density is a fraction; write 0.8 to keep the largest 80 % of each change.",
        )
    return float(density)


def num_kept(num_entries: int, density: Real) -> int:
    """Return k = max(1, int(density * n)), the number of entries that a trim aims to keep.

    Density 0 and an empty tensor keep none.

    >>> [num_kept(n, 0.8) for n in (0, 1, 5, 10)]
    [0, 1, 4, 8]
    """
    if num_entries == 0 or check_density(density) == 0.0:
        return 0
    return max(1, int(density * num_entries))


def select_threshold(magnitude: np.ndarray, kept: int) -> float:
    """Return the `kept`-th largest of `magnitude`; may reorder `magnitude` in place.

    The threshold is never below the least positive float32, so that `|d| >= threshold` also means
    d != 0; it is infinite when nothing is kept.
    """
    if kept == 0:
        return math.inf
    if kept >= magnitude.size:
        return SMALLEST_MAGNITUDE
    found = _from_sample(magnitude, kept) if magnitude.size > _SAMPLED_FROM else None
    if found is None:
        position = magnitude.size - kept
        magnitude.partition(position)
        found = float(magnitude[position])
    return max(found, SMALLEST_MAGNITUDE)


def _from_sample(magnitude: np.ndarray, kept: int) -> float | None:
    """Return the `kept`-th largest exactly, from those near a sample's; None where that fails.

    A partition takes ten times as long where many values are equal, as between 16-bit numbers. So a
    sample brackets the threshold, one pass counts what lies above, and only what lies inside the
    bracket is sorted.
    """
    sample = np.sort(magnitude[:: magnitude.size // _SAMPLE_SIZE])
    at = int(sample.size * (1.0 - kept / magnitude.size))
    low = sample[max(0, at - _MARGIN)]
    high = sample[min(sample.size - 1, at + _MARGIN)]
    num_above, num_inside, inside = 0, 0, list[np.ndarray]()
    for start in range(0, magnitude.size, _PIECE):
        piece = magnitude[start : start + _PIECE]
        is_above = piece > high
        is_inside = (piece >= low) ^ is_above
        num_above += int(np.count_nonzero(is_above))
        num_inside += int(np.count_nonzero(is_inside))
        if low < high:
            inside.append(piece[is_inside])
    if not num_above < kept <= num_above + num_inside:
        return None
    return float(np.sort(np.concatenate(inside))[num_above - kept]) if inside else float(low)
