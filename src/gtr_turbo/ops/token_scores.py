"""From the distributions over a reply's tokens to what is kept of each row."""

from typing import Final

import torch
from jaxtyping import Bool, Float32
from torch import Tensor

MIN_LOGPROB: Final = -1e4
"""Stands for the log-probability of a token that cannot be drawn: exp of it is 0 in float32."""


def placed(
    values: Float32[Tensor, " token"], where: Bool[Tensor, "turn seq"]
) -> Float32[Tensor, "turn seq"]:
    """Return the values at True places, row by row, and zero elsewhere; differentiable."""
    return torch.zeros(where.shape, device=values.device).masked_scatter(where, values)


def mean_entropy(
    logprobs: Float32[Tensor, "token vocab"], is_response: Bool[Tensor, "turn seq"]
) -> Float32[Tensor, " turn"]:
    """Return the mean of −Σ p log p over the tokens of each turn's reply, nats.

    `logprobs` has a row for each True of `is_response`; tokens of probability 0 add nothing.
    """
    finite = logprobs.clamp(min=MIN_LOGPROB)
    entropy = placed(-(logprobs.exp() * finite).sum(dim=-1), is_response)
    return entropy.sum(dim=1) / is_response.sum(dim=1)
