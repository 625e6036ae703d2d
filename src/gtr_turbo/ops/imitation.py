"""The loss of imitation: how surprising given tokens are."""

from typing import Final

from jaxtyping import Bool, Float32
from torch import Tensor

IMITATION_TEMPERATURE: Final = 1.0
"""Imitation raises the likelihood itself, whatever temperature the agent samples at."""


def negative_log_likelihood(
    token_logprob: Float32[Tensor, "turn seq"], is_imitated: Bool[Tensor, "turn seq"]
) -> Float32[Tensor, " turn"]:
    """Return each turn's mean negative log-probability of its imitated tokens, nats per token.

    Zero for a turn without any. `is_imitated` may be on another device.
    """
    counted = is_imitated.to(token_logprob.device)
    return -(token_logprob * counted).sum(dim=1) / counted.sum(dim=1).clamp(min=1)
