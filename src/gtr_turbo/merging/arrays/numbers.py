"""Floating-point numbers as numpy holds them; bfloat16, which numpy lacks, stands as its bits.

A uint16 array is bfloat16 throughout: merges run over floating-point numbers, and no other type of
theirs looks like that.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.native import native_kernels

BFLOAT16: Final = np.dtype(np.uint16)
"""What stands for bfloat16."""

FLOATS: Final[Mapping[str, np.dtype]] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": BFLOAT16,
}
"""The floating-point types that can be merged, by their name in a safetensors header."""

_HALF: Final = np.uint32(16)
_BELOW_HALF: Final = np.uint32(0x7FFF)
_ONE: Final = np.uint32(1)
_MAGNITUDE: Final = np.uint16(0x7FFF)
_INFINITE: Final = 0x7F80


def widen(values: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write `values` as float32 or float64 into `out`, exactly where it is not narrower."""
    if values.dtype != BFLOAT16:
        out[...] = values
    elif out.dtype == np.float32:
        bits = out.view(np.uint32)
        bits[...] = values
        bits <<= _HALF
    else:
        with np.errstate(invalid="ignore"):
            out[...] = widen(values, np.empty(values.shape, np.float32))
    return out


def subtract(values: np.ndarray, reference: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write values - reference into `out`, float32.

    Through float32 even for two bfloat16 arrays, whose own difference would be rounded; through
    float64 where one of them is.
    """
    if np.float64 in (values.dtype, reference.dtype):
        wide = widen(values, np.empty(values.shape, np.float64))
        wide -= widen(reference, np.empty(values.shape, np.float64))
        out[...] = wide
        return out
    native = native_kernels() if values.dtype == reference.dtype == BFLOAT16 else None
    if native is not None:
        native.subtract(values, reference, out)
        return out
    widen(values, out)
    if reference.dtype != np.float32:
        reference = widen(reference, np.empty(values.shape, np.float32))
    out -= reference
    return out


def narrow(values: np.ndarray, out: np.ndarray, name: str) -> np.ndarray:
    """Write float32 or float64 `values` into `out`, rounded to the nearest, ties to even.

    Raises:
        MergeError: a value of tensor `name` is too large for the type of `out`.
    """
    if values.dtype == np.float64 and out.dtype != np.float64:
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
    if out.dtype == BFLOAT16:
        bits = values.view(np.uint32)
        rounded = bits >> _HALF
        rounded &= _ONE
        rounded += _BELOW_HALF
        rounded += bits
        rounded >>= _HALF
        out[...] = rounded
    else:
        with np.errstate(over="ignore"):
            out[...] = values
    if not is_finite(out):
        raise overflow(name, next(kind for kind, own in FLOATS.items() if own == out.dtype))
    return out


def overflow(name: str, kind: str) -> MergeError:
    """Return the refusal of a merged tensor that is too large for the type `kind`."""
    return MergeError(
        f'the merged tensor "{name}" is not finite in {kind}: it is too large for that type.',
        hint="write float32 or bfloat16, or lower the scale.",
    )


def converted(values: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    """Return `values` in the type `dtype`, rounded once; themselves where they have it.

    Raises:
        MergeError: a value of tensor `name` is too large for the type.
    """
    if values.dtype == dtype:
        return values
    wide = np.float64 if values.dtype == np.float64 else np.float32
    return narrow(widen(values, np.empty(values.shape, wide)), np.empty(values.shape, dtype), name)


def is_finite(values: np.ndarray) -> bool:
    """Return whether no entry is NaN or infinite."""
    if values.dtype == BFLOAT16:
        return values.size == 0 or int((values & _MAGNITUDE).max()) < _INFINITE
    return bool(np.isfinite(values).all())


def count_not_finite(values: np.ndarray) -> int:
    """Return how many entries are NaN or infinite."""
    if values.dtype == BFLOAT16:
        return int(np.count_nonzero((values & _MAGNITUDE) >= _INFINITE))
    return int(values.size - np.count_nonzero(np.isfinite(values)))
