"""Forms in which a merged change can be kept or served, and what each of them loses.

The residual of a form is |change - form| / |change|, 0 for one that claims to be exact.
"""

from dataclasses import dataclass
from typing import Final, final

import torch
from jaxtyping import Float32, Int8, Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.lora import LoraFactors

_LARGEST_INT8: Final = 127
_OVERSAMPLING: Final = 10
_EXACT_SVD_SIDE: Final = 512


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Int8Change:
    """A change in 8 bits with one scale per row."""

    values: Int8[Tensor, "row column"]
    row_scale: Float32[Tensor, " row"]

    def dense(self) -> Float32[Tensor, "row column"]:
        """Return the change in float32."""
        return self.values.to(torch.float32) * self.row_scale[:, None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LowRankChange:
    """A change as an adapter, and what the adapter misses, in 8 bits or not at all."""

    factors: LoraFactors
    rest: Int8Change | None

    def dense(self) -> Float32[Tensor, "row column"]:
        """Return the change in float32."""
        product = self.factors.b @ self.factors.a * self.factors.scaling
        return product if self.rest is None else product + self.rest.dense()


def to_int8(change: Float32[Tensor, "row column"]) -> Int8Change:
    """Return `change` rounded to 255 steps per row; a row of zeros stays zero."""
    largest = change.abs().amax(dim=1)
    row_scale = torch.where(largest > 0.0, largest / _LARGEST_INT8, 1.0)
    return Int8Change(
        values=torch.round(change / row_scale[:, None]).to(torch.int8), row_scale=row_scale
    )


def to_low_rank(
    change: Float32[Tensor, "row column"],
    rank: int,
    generator: torch.Generator,
    *,
    with_rest: bool = False,
) -> LowRankChange:
    """Return the best adapter of `rank` for `change`, scaling 1.

    `with_rest` keeps what the adapter misses, as int8.

    Large matrices go through a randomised decomposition with one power step, drawn from
    `generator`: as good as the exact one to three digits, and several times faster.

    Raises:
        MergeError: `rank` is below 1.
    """
    if rank < 1:
        raise MergeError(
            f"the rank of an adapter must be at least 1, got {rank}.", hint="128 is the paper's."
        )
    rank = min(rank, *change.shape)
    if min(change.shape) <= max(_EXACT_SVD_SIDE, rank + _OVERSAMPLING):
        left, values, right = torch.linalg.svd(change, full_matrices=False)
    else:
        left, values, right = _randomised_svd(change, rank + _OVERSAMPLING, generator)
    root = values[:rank].sqrt()
    factors = LoraFactors(
        a=(root[:, None] * right[:rank]).contiguous(),
        b=(left[:, :rank] * root).contiguous(),
        scaling=1.0,
    )
    rest = to_int8(change - factors.b @ factors.a) if with_rest else None
    return LowRankChange(factors=factors, rest=rest)


def residual(
    change: Float32[Tensor, "*shape"], form: Shaped[Tensor, "*shape"]
) -> tuple[float, float]:
    """Return |change - form|^2 and |change|^2 in float64; the residual is the root of the ratio."""
    wide = change.to(torch.float64)
    missed = wide - form.to(torch.float64)
    return float(missed.square().sum()), float(wide.square().sum())


def _randomised_svd(
    change: Float32[Tensor, "row column"], num_directions: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    start = torch.randn((change.shape[1], num_directions), generator=generator)
    basis, _ = torch.linalg.qr(change @ start)
    basis, _ = torch.linalg.qr(change @ (change.T @ basis))
    small_left, values, right = torch.linalg.svd(basis.T @ change, full_matrices=False)
    return basis @ small_left, values, right
