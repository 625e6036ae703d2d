"""The inner loops of TIES sums of any weights and formats; `arrays.kernels` has those of counts.

Pieces fit the second-level cache. Choices are made by arithmetic with 0 and 1, not by `where` or
`masked_fill`, which take twenty times as long on mixed signs; comparisons go through numpy, which
makes flags ten times faster than torch. Results are the same bit for bit.
"""

from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Shaped
from torch import Tensor

from gtr_turbo.merging.arrays.kernels import CHUNK
from gtr_turbo.merging.weights import Real


@final
class SignKernel:
    """The inner loops of TIES sums, with buffers of one piece."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        """Make the buffers; `dtype` is the type that masses are read in."""
        self._kept = torch.empty(CHUNK, dtype=torch.float32)
        self._side = torch.empty(CHUNK, dtype=torch.float32)
        self._total = torch.empty(CHUNK, dtype=dtype)
        self._mass = torch.empty(CHUNK, dtype=dtype)
        self._other = torch.empty(CHUNK, dtype=dtype)
        self._flag = torch.empty(CHUNK, dtype=torch.bool)
        self._is_empty = torch.empty(CHUNK, dtype=torch.bool)
        self._count = torch.empty(CHUNK, dtype=torch.uint8)

    def piece_buffer(self) -> Float32[Tensor, " _"]:
        """Return the buffer that a change may be written into before `split`."""
        return self._kept

    def positive_part(self, kept: Float32[Tensor, " entry"]) -> Float32[Tensor, " entry"]:
        """Return max(kept, 0), in a buffer."""
        return torch.clamp_min(kept, 0.0, out=self._side[: kept.numel()])

    def negative_part(self, kept: Float32[Tensor, " entry"]) -> Float32[Tensor, " entry"]:
        """Return min(kept, 0), in a buffer."""
        return torch.clamp_max(kept, 0.0, out=self._side[: kept.numel()])

    def add_weight(
        self,
        weight: Shaped[Tensor, " entry"],
        part: Float32[Tensor, " entry"],
        signed_weight: Real,
    ) -> None:
        """Add `signed_weight` to `weight` where `part` is not 0, in place; +1 or -1 for counts."""
        flag = self._flag[: part.numel()]
        np.not_equal(part.numpy(), np.float32(0.0), out=flag.numpy())
        if weight.is_floating_point():
            weight.add_(flag.to(weight.dtype), alpha=signed_weight)
        elif signed_weight > 0:
            weight.add_(flag.view(torch.uint8))
        else:
            weight.sub_(flag.view(torch.uint8))

    def drop_light(
        self,
        mass: Float[Tensor, " entry"],
        weight: Shaped[Tensor, " entry"],
        least: Real,
    ) -> tuple[Float[Tensor, " entry"], Shaped[Tensor, " entry"]]:
        """Return mass and weight with 0 in place of entries whose weight is below `least`."""
        flag = self._flag[: mass.numel()]
        np.greater_equal(weight.numpy(), weight.numpy().dtype.type(least), out=flag.numpy())
        return mass * flag.to(mass.dtype), weight * flag.to(weight.dtype)

    def total(
        self, positive: Float[Tensor, " entry"], negative: Float[Tensor, " entry"]
    ) -> tuple[Float[Tensor, " entry"], Bool[Tensor, " entry"]]:
        """Return positive + negative and where it is at least 0, both in buffers."""
        num = positive.numel()
        total = torch.add(positive, negative, out=self._total[:num])
        flag = self._flag[:num]
        np.greater_equal(total.numpy(), total.numpy().dtype.type(0.0), out=flag.numpy())
        return total, flag

    def elected_mass(
        self,
        positive: Float[Tensor, " entry"],
        negative: Float[Tensor, " entry"],
        is_positive: Bool[Tensor, " entry"],
    ) -> Float[Tensor, " entry"]:
        """Return `positive` where True, else `negative`, in a buffer.

        Both are finite, so that number * 1 + number * 0 is the number itself.
        """
        num = positive.numel()
        choice, mass = self._other[:num], self._mass[:num]
        choice.copy_(is_positive)
        torch.mul(positive, choice, out=mass)
        choice.neg_().add_(1.0).mul_(negative)
        return mass.add_(choice)

    def elected_weight(
        self,
        positive: Shaped[Tensor, " entry"],
        negative: Shaped[Tensor, " entry"],
        is_positive: Bool[Tensor, " entry"],
    ) -> Float[Tensor, " entry"]:
        """Return the weight of the elected sign, 1 in place of 0, in a buffer for masses."""
        num = positive.numel()
        result = self._other[:num]
        if positive.is_floating_point():
            choice = is_positive.to(positive.dtype)
            chosen = positive * choice + negative * choice.neg_().add_(1.0)
            flag = self._is_empty[:num]
            np.equal(chosen.numpy(), chosen.numpy().dtype.type(0.0), out=flag.numpy())
            return result.copy_(chosen.add_(flag.to(chosen.dtype)))
        if positive.dtype == torch.uint8:
            # Differences wrap around at 256 and back again.
            choice = is_positive.view(torch.uint8)
            chosen = torch.sub(positive, negative, out=self._count[:num])
            chosen = chosen.mul_(choice).add_(negative)
        else:
            chosen = negative + (positive - negative) * is_positive.to(positive.dtype)
        return result.copy_(chosen.clamp_min_(1))
