"""Tensors as arrays and back, without a copy; what either side calls its types."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.numbers import BFLOAT16, overflow

DTYPES: Final[Mapping[str, torch.dtype]] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
"""The types that merges can read, by their name in a safetensors header."""

KIND_OF: Final = {dtype: kind for kind, dtype in DTYPES.items()}
"""The name of each of those types in a safetensors header."""

FLOATS: Final = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""The floating-point types that can be merged."""


def check_type(name: str, label: str, dtype: torch.dtype) -> None:
    """Raise MergeError for a floating-point type that nothing can be computed in, as float8."""
    if dtype.is_floating_point and dtype not in FLOATS:
        raise MergeError(
            f'tensor "{name}" of {label} has type {dtype}, which cannot be merged.',
            hint="quantised weights cannot be merged; use the weights before quantisation.",
        )


def as_array(tensor: Shaped[Tensor, "..."]) -> np.ndarray:
    """Return the memory of a tensor on the CPU as an array; bfloat16 as its bits."""
    own = tensor.detach()
    if own.dtype == torch.bfloat16:
        own = own.view(torch.uint16)
    return own.numpy()


def as_tensor(array: np.ndarray) -> Shaped[Tensor, "..."]:
    """Return the memory of an array as a tensor; bits of bfloat16 as numbers."""
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if array.dtype == BFLOAT16 else tensor


def rounded(tensor: Shaped[Tensor, "..."], dtype: torch.dtype, name: str) -> Shaped[Tensor, "..."]:
    """Return a copy of `tensor` in the type `dtype`.

    Raises:
        MergeError: a value of tensor `name` is too large for the type.
    """
    result = tensor.to(dtype, copy=True)
    if not bool(torch.isfinite(result).all()):
        raise overflow(name, KIND_OF[dtype])
    return result


def flat_cpu(tensor: Shaped[Tensor, "..."]) -> Shaped[Tensor, " entry"]:
    """Return `tensor` detached, on the CPU, as one vector; it shares memory where it can."""
    return tensor.detach().to("cpu").reshape(-1)
