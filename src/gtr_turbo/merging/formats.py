"""How running sums are stored: float32, float64, scaled float16 or int32 fixed point."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.settings import check_sum_format
from gtr_turbo.merging.weights import Real


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumFormat:
    """One way to store a sum; the stored number is the sum times `unit`."""

    name: str
    dtype: torch.dtype
    unit: Real
    limit: Real
    """The largest sum that can be stored."""
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
        """Add weight * value to `stored`, in place; see `check_room`."""
        if self.unit == 1.0:
            stored.add_(value.to(stored.dtype), alpha=weight)
        elif self.dtype == torch.int32:
            stored.add_(torch.round(value.to(torch.float64) * (weight * self.unit)).to(torch.int32))
        else:
            stored.copy_(stored.to(torch.float32).add_(value, alpha=weight * self.unit))

    def check_room(self, stored: Shaped[Tensor, " entry"], step: Real) -> None:
        """Raise MergeError when adding up to `step` could leave the range of the storage."""
        if math.isinf(self.limit) or stored.numel() == 0:
            return
        largest = float(stored.to(torch.float64).abs().max()) / self.unit
        if largest + step > self.limit:
            raise MergeError(
                f"a sum of {largest:.3g} and a change of {step:.3g} do not fit the {self.name}"
                f" format, which ends at {self.limit:.3g}.",
                hint='use the "fp32" format for changes this large.',
            )

    def multiply(self, stored: Shaped[Tensor, " entry"], factor: Real) -> None:
        """Multiply `stored` by `factor` at most 1, in place, rounding once."""
        if self.dtype == torch.int32:
            stored.copy_(torch.round(stored.to(torch.float64) * factor))
        else:
            stored.mul_(factor)


FORMATS: Final[Mapping[str, SumFormat]] = {
    "fp32": SumFormat(
        name="fp32",
        dtype=torch.float32,
        unit=1.0,
        limit=math.inf,
        weight_dtype=torch.float32,
        lowest_scale=2.0**-40,
    ),
    "fp64": SumFormat(
        name="fp64",
        dtype=torch.float64,
        unit=1.0,
        limit=math.inf,
        weight_dtype=torch.float64,
        lowest_scale=2.0**-40,
    ),
    # 2^12 puts changes of 1e-6 to 1 well inside float16's normal range (6e-5 to 65504).
    "fp16": SumFormat(
        name="fp16",
        dtype=torch.float16,
        unit=2.0**12,
        limit=65504.0 / 2.0**12,
        weight_dtype=torch.float32,
        lowest_scale=1.0,
    ),
    # 2^27 resolves 7.5e-9 and leaves room for sums up to 16.
    "int32": SumFormat(
        name="int32",
        dtype=torch.int32,
        unit=2.0**27,
        limit=(2.0**31 - 1.0) / 2.0**27,
        weight_dtype=torch.float32,
        lowest_scale=1.0,
    ),
}
"""Every storage format by name."""


def find_format(name: str) -> SumFormat:
    """Return the storage format called `name`; MergeError when there is none."""
    check_sum_format(name)
    return FORMATS[name]
