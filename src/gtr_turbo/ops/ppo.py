"""The clipped policy and value losses, and what to watch about them."""

import torch
from jaxtyping import Float32
from torch import Tensor

from gtr_turbo.core.batch import TokenCredit

Turns = Float32[Tensor, " turn"]
Credited = Float32[Tensor, " turn"] | Float32[Tensor, "turn seq"]
"""One number for each turn, or for each token of each turn."""

RATIO_LIMIT = 10.0
"""Beyond this ratio only the clipped surrogate is used, as in the lineage's code."""
MAX_LOG_RATIO = 20.0
"""Far beyond `RATIO_LIMIT`, and e^20 is finite: an infinite ratio would make the gradient NaN."""


def clipped_surrogate(
    logprob: Credited, old_logprob: Credited, advantage: Credited, clip: float
) -> Credited:
    """Return the policy loss of each turn: −min(r A, clip(r, 1−c, 1+c) A), r = π_θ/π_θold.

    `logprob` is the λ-weighted turn log-probability (paper, Eq. 6), or that of a token. Where r
    exceeds `RATIO_LIMIT` the unclipped term is left out, so that one runaway turn with a negative
    advantage cannot dominate the batch.
    """
    ratio = torch.exp((logprob - old_logprob).clamp(max=MAX_LOG_RATIO))
    clipped = ratio.clamp(1 - clip, 1 + clip) * advantage
    surrogate = torch.minimum(ratio * advantage, clipped)
    return -torch.where(ratio > RATIO_LIMIT, clipped, surrogate)


def token_surrogate(
    logprob: Float32[Tensor, "turn seq"], credit: TokenCredit, clip: float
) -> Float32[Tensor, "turn seq"]:
    """Return the clipped loss of each token by its own credit; 0 where it has none."""
    old, advantage = credit.old_logprob.to(logprob.device), credit.advantage.to(logprob.device)
    return clipped_surrogate(logprob, old, advantage, clip)


def value_loss(value: Turns, old_value: Turns, target: Turns, value_clip: float | None) -> Turns:
    """Return ½ max((V − R)², (V_old + clip(V − V_old, ±c) − R)²) of each turn; None: ½ (V − R)²."""
    error = (value - target).square()
    if value_clip is None:
        return 0.5 * error
    near = old_value + (value - old_value).clamp(-value_clip, value_clip)
    return 0.5 * torch.maximum(error, (near - target).square())


def approximate_kl(logprob: Turns, old_logprob: Turns) -> float:
    """Return the mean of r − 1 − log r, nats: how far the policy is from the behaviour one.

    A log-ratio counts as at most MAX_LOG_RATIO, as in the loss: one turn must not make it infinite.
    """
    difference = (logprob - old_logprob).detach().clamp(max=MAX_LOG_RATIO)
    return float((torch.expm1(difference) - difference).mean())


def clip_fraction(logprob: Turns, old_logprob: Turns, clip: float) -> float:
    """Return the share of turns whose ratio lies outside [1 − c, 1 + c]."""
    ratio = torch.exp((logprob - old_logprob).detach())
    return float(((ratio - 1).abs() > clip).float().mean())


def explained_variance(value: Turns, target: Turns) -> float:
    """Return 1 − Var(target − value) / Var(target); 0 for a constant guess.

    At most 1, negative for a critic worse than a constant; 0 when the targets are all equal.
    """
    variance = float(target.detach().var(unbiased=False))
    if variance == 0:
        return 0.0
    return 1 - float((target - value).detach().var(unbiased=False)) / variance
