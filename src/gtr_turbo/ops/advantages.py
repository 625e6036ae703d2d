"""Credit through time: generalised advantage estimation over the turns of an episode."""

import torch
from jaxtyping import Float32
from torch import Tensor


def gae(
    rewards: Float32[Tensor, " step"],
    values: Float32[Tensor, " step"],
    next_value: float,
    gamma: float,
    gae_lambda: float,
) -> Float32[Tensor, " step"]:
    """Return the advantage of each turn of one stretch of turns.

    δ_t = r_t + γ V_{t+1} − V_t and A_t = δ_t + γ λ A_{t+1} (Schulman et al. 2016, Eq. 16), where
    V after the last turn is `next_value`: 0 when the task terminated, the critic's value of the
    prompt that followed when the stretch was truncated or cut by the end of the update.
    """
    advantages: list[float] = []
    following, value_after = 0.0, next_value
    steps = zip(rewards.detach().tolist(), values.detach().tolist(), strict=True)
    for reward, value in reversed(list(steps)):
        delta = reward + gamma * value_after - value
        following = delta + gamma * gae_lambda * following
        advantages.append(following)
        value_after = value
    return torch.tensor(advantages[::-1], dtype=torch.float32, device=rewards.device)


STD_EPSILON = 1e-5
"""Added to the standard deviation, as in the lineage's code."""
STD_FLOOR = 1e-2
"""Advantages that differ by less than this, in reward units, are noise of the critic."""


def standardise(advantages: Float32[Tensor, " turn"]) -> Float32[Tensor, " turn"]:
    """Return the advantages with mean 0 and standard deviation 1 over the update.

    A spread below `STD_FLOOR` is not blown up: when no reward differs, nothing is learned.
    """
    centred = advantages - advantages.mean()
    return centred / (advantages.std(unbiased=False).clamp(min=STD_FLOOR) + STD_EPSILON)
