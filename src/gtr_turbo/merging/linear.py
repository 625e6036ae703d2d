"""Weighted means and sums of named changes, as pure functions."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from gtr_turbo.merging.weights import Real


def weighted_sum(
    deltas: Sequence[Float[Tensor, "*shape"]], weights: Sequence[Real]
) -> Float[Tensor, "*shape"]:
    """Return sum_i w_i d_i in float32 (task arithmetic, arXiv 2212.04089, section 2)."""
    total = torch.zeros_like(deltas[0], dtype=torch.float32)
    for delta, weight in zip(deltas, weights, strict=True):
        total.add_(delta.to(torch.float32), alpha=weight)
    return total


def weighted_mean(
    deltas: Sequence[Float[Tensor, "*shape"]], weights: Sequence[Real]
) -> Float[Tensor, "*shape"]:
    """Return sum_i w_i d_i / sum_i w_i in float32: the simple or any weighted average."""
    return weighted_sum(deltas, weights) / sum(weights)


def ema_step(
    previous: Float[Tensor, "*shape"], newest: Float[Tensor, "*shape"], alpha: Real
) -> Float[Tensor, "*shape"]:
    """Return alpha * newest + (1 - alpha) * previous (arXiv 2512.13043, equation 4), in float32."""
    return alpha * newest.to(torch.float32) + (1.0 - alpha) * previous.to(torch.float32)
