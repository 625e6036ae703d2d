"""Estimates of the reverse KL divergence between agent and teacher, on sampled tokens."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float32
from torch import Tensor

TokenLogprobs = Float32[Tensor, "turn seq"]


def k1(agent: TokenLogprobs, teacher: TokenLogprobs) -> TokenLogprobs:
    """Return log π_θ − log π_merged per token: unbiased, of either sign (paper, Eq. 7: K1)."""
    return agent - teacher


def clip(agent: TokenLogprobs, teacher: TokenLogprobs) -> TokenLogprobs:
    """Return max(K1, 0) per token (paper, Eq. 7; the paper's choice)."""
    return (agent - teacher).clamp(min=0)


def absolute(agent: TokenLogprobs, teacher: TokenLogprobs) -> TokenLogprobs:
    """Return |K1| per token (paper, Eq. 7: abs)."""
    return (agent - teacher).abs()


MAX_EXPONENT = 20.0
"""e^20 ≈ 4.9e8 nats is far beyond any cap, and still finite in float32."""


def k3(agent: TokenLogprobs, teacher: TokenLogprobs) -> TokenLogprobs:
    """Return K1 + e^(−K1) − 1 per token: unbiased and never negative (paper, Eq. 7: K3)."""
    difference = agent - teacher
    # Near zero e^x − 1 + K1 cancels to rounding noise of either sign: expm1, and no less than 0.
    return (difference + torch.expm1((-difference).clamp(max=MAX_EXPONENT))).clamp(min=0)


def forward(agent: TokenLogprobs, teacher: TokenLogprobs) -> TokenLogprobs:
    """Return max(−K1, 0) per token (paper, Eq. 7: forward)."""
    return (teacher - agent).clamp(min=0)


ESTIMATORS: dict[str, Callable[[TokenLogprobs, TokenLogprobs], TokenLogprobs]] = {
    "k1": k1,
    "clip": clip,
    "abs": absolute,
    "k3": k3,
    "forward": forward,
}


def limited(token_kl: TokenLogprobs, token_cap: float | None) -> TokenLogprobs:
    """Return each token's estimate limited to ±`token_cap`; None: as it is."""
    return token_kl if token_cap is None else token_kl.clamp(-token_cap, token_cap)


def mean_over_tokens(
    token_kl: TokenLogprobs, is_compared: Bool[Tensor, "turn seq"], token_cap: float | None
) -> Float32[Tensor, " turn"]:
    """Return each turn's mean over the compared tokens, each token first limited to ±`token_cap`.

    A turn without a compared token gets 0.
    """
    total = (limited(token_kl, token_cap) * is_compared).sum(dim=1)
    return total / is_compared.sum(dim=1).clamp(min=1)
