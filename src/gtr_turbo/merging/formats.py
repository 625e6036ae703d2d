"""How running sums are stored: float32, float64, scaled float16 or int32 fixed point."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError, nearest_hint
from gtr_turbo.merging.weights import Real

SumFormatName = Literal["fp32", "fp64", "fp16", "int32"]

_INT32_LIMIT: Final = 2**31 - 1
_FLOAT16_LIMIT: Final = 65504.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumFormat:
    """One way to store a sum; the stored number is the sum times `unit`."""

    name: SumFormatName
    dtype: torch.dtype
    unit: Real
    weight_dtype: torch.dtype
    """What sums of weights that are not plain counts are stored in."""
    lowest_scale: Real
    """How far a decay may be postponed: sums are multiplied once the pending factor falls below."""

    def read(self, stored: Shaped[Tensor, " entry"]) -> Float[Tensor, " entry"]:
        """Return the sums as floating-point numbers; the storage itself when it holds those."""
        if self.unit == 1.0:
            return stored
        return stored.to(torch.float32 if self.dtype != torch.int32 else torch.float64) / self.unit

    def add(
        self, stored: Shaped[Tensor, " entry"], value: Float[Tensor, " entry"], weight: Real
    ) -> None:
        """Add weight * value to `stored`, in place.

        Raises:
            MergeError: the sum leaves the range of a float16 or int32 storage.
        """
        if self.unit == 1.0:
            stored.add_(value.to(stored.dtype), alpha=weight)
        elif self.dtype == torch.int32:
            step = torch.round(value.to(torch.float64) * (weight * self.unit))
            _store_integer(stored, stored.to(torch.float64) + step)
        else:
            _store_half(stored, stored.to(torch.float32).add_(value, alpha=weight * self.unit))

    def multiply(self, stored: Shaped[Tensor, " entry"], factor: Real) -> None:
        """Multiply `stored` by `factor` at most 1, in place, rounding once."""
        if self.dtype == torch.int32:
            stored.copy_(torch.round(stored.to(torch.float64) * factor))
        else:
            stored.mul_(factor)


def _store_integer(stored: Shaped[Tensor, " entry"], total: Float[Tensor, " entry"]) -> None:
    if bool((total.abs() > _INT32_LIMIT).any()):
        raise MergeError(
            f"a sum of {float(total.abs().max()) / FORMATS['int32'].unit:.3g} does not fit the"
            f" int32 format, which ends at {_INT32_LIMIT / FORMATS['int32'].unit:.3g}.",
            hint='use the "fp32" format for changes this large.',
        )
    stored.copy_(total)


def _store_half(stored: Shaped[Tensor, " entry"], total: Float[Tensor, " entry"]) -> None:
    if bool((total.abs() > _FLOAT16_LIMIT).any()):
        raise MergeError(
            f"a sum of {float(total.abs().max()) / FORMATS['fp16'].unit:.3g} does not fit the"
            f" fp16 format, which ends at {_FLOAT16_LIMIT / FORMATS['fp16'].unit:.3g}.",
            hint='use the "fp32" format for changes this large.',
        )
    stored.copy_(total)


FORMATS: Final[Mapping[str, SumFormat]] = {
    "fp32": SumFormat(
        name="fp32",
        dtype=torch.float32,
        unit=1.0,
        weight_dtype=torch.float32,
        lowest_scale=2.0**-40,
    ),
    "fp64": SumFormat(
        name="fp64",
        dtype=torch.float64,
        unit=1.0,
        weight_dtype=torch.float64,
        lowest_scale=2.0**-40,
    ),
    # 2^12 puts changes of 1e-6 to 1 well inside float16's normal range (6e-5 to 65504).
    "fp16": SumFormat(
        name="fp16",
        dtype=torch.float16,
        unit=2.0**12,
        weight_dtype=torch.float32,
        lowest_scale=1.0,
    ),
    # 2^27 resolves 7.5e-9 and leaves room for sums up to 16.
    "int32": SumFormat(
        name="int32",
        dtype=torch.int32,
        unit=2.0**27,
        weight_dtype=torch.float32,
        lowest_scale=1.0,
    ),
}
"""Every storage format by name."""


def find_format(name: str) -> SumFormat:
    """Return the storage format called `name`; MergeError when there is none."""
    if name not in FORMATS:
        raise MergeError(
            f'there is no sum format named "{name}".',
            hint=nearest_hint(name, FORMATS, "formats"),
        )
    return FORMATS[name]
