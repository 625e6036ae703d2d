"""TIES in its four steps, as pure functions: trim, elect, take the disjoint mean, scale.

Yadav et al., arXiv 2306.01708, section 3; used by GTR-Turbo (arXiv 2512.13043, section 3.2) with
density 0.8. Axis: entry = one number of a flattened tensor. `merging.sums` computes the same from
running sums, chunk by chunk and bit for bit equal; this file is the rule in plain sight.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gtr_turbo.merging.arrays.trimming import num_kept, select_threshold
from gtr_turbo.merging.weights import NEGLIGIBLE_SHARE, Real


def trim_threshold(delta: Float[Tensor, "..."], density: Real) -> float:
    """Return the magnitude from which entries of `delta` are kept: the k-th largest."""
    kept = num_kept(delta.numel(), density)
    if kept in (0, delta.numel()):
        return select_threshold(np.empty(delta.numel(), np.float32), kept)
    magnitude = delta.detach().to("cpu", torch.float32).reshape(-1).abs().numpy()
    return select_threshold(magnitude, kept)


def trim(delta: Float[Tensor, "*shape"], threshold: float) -> Float[Tensor, "*shape"]:
    """Return `delta` with every entry below `threshold` in magnitude set to 0.

    All entries that equal the threshold stay, so the result does not depend on a sort order.
    """
    return torch.where(delta.abs() >= threshold, delta, 0.0)


def elect(
    positive_mass: Float[Tensor, "*shape"], negative_mass: Float[Tensor, "*shape"]
) -> Bool[Tensor, "*shape"]:
    """Return True where + is elected: the weighted sum of the kept changes is at least 0."""
    return positive_mass + negative_mass >= 0.0


def ties_delta(
    deltas: Sequence[Float[Tensor, "*shape"]],
    weights: Sequence[Real],
    thresholds: Sequence[Real],
    *,
    divide_by_total: bool = False,
) -> Float[Tensor, "*shape"]:
    """Return the merged change of one tensor; all arguments run over the checkpoints.

    sign = sgn(sum_i w_i d_i), with + for an exact 0; result = sum_i w_i d_i / sum_i w_i over the
    kept d_i of that sign, 0 where there are none. `divide_by_total` divides by the weight of all
    checkpoints instead of the weight of those that agree. A sign whose weight is a negligible share
    of the total counts as absent.
    """
    positive_mass = torch.zeros_like(deltas[0], dtype=torch.float32)
    negative_mass = torch.zeros_like(positive_mass)
    positive_weight = torch.zeros_like(positive_mass)
    negative_weight = torch.zeros_like(positive_mass)
    for delta, weight, threshold in zip(deltas, weights, thresholds, strict=True):
        kept = trim(delta.to(torch.float32), threshold)
        positive_mass.add_(kept.clamp_min(0.0), alpha=weight)
        negative_mass.add_(kept.clamp_max(0.0), alpha=weight)
        positive_weight.add_((kept > 0.0).to(torch.float32), alpha=weight)
        negative_weight.add_((kept < 0.0).to(torch.float32), alpha=weight)
    total = sum(weights)
    for side_mass, side_weight in (
        (positive_mass, positive_weight),
        (negative_mass, negative_weight),
    ):
        is_absent = side_weight < NEGLIGIBLE_SHARE * total
        side_mass.masked_fill_(is_absent, 0.0)
        side_weight.masked_fill_(is_absent, 0.0)
    is_positive = elect(positive_mass, negative_mass)
    mass = torch.where(is_positive, positive_mass, negative_mass)
    matched = torch.where(is_positive, positive_weight, negative_weight)
    weight_below = torch.full_like(matched, total) if divide_by_total else matched
    return torch.where(matched > 0.0, mass / weight_below, 0.0)
