"""Batched sampling with a key-value cache, from a passed-in generator.

Written here rather than taken from `generate`, because the method needs what that does not give
together: a generator of its own, the log-probability of each token under the exact distribution it
was drawn from, and no more memory than one step of logits.
"""

from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor
from transformers import DynamicCache

from gtr_turbo.core.turns import Prompt, SamplingSettings
from gtr_turbo.errors import NonFiniteError
from gtr_turbo.ops.collate import left_padded

Drawn = tuple[list[int], np.ndarray]
"""Sampled ids and their log-probabilities in nats."""


def sample(
    prompts: Sequence[Prompt],
    sampling: SamplingSettings,
    generator: torch.Generator,
    *,
    forward: Callable[..., Float[Tensor, "turn seq model"]],
    logits: Callable[[Float[Tensor, "token model"]], Float32[Tensor, "token vocab"]],
    stop_ids: Set[int],
    pad_id: int,
) -> list[Drawn]:
    """Return one sampled reply per prompt; each row stops at its own end-of-turn token.

    `forward(token_ids, attention_mask, position_ids, vision, cache=…)` gives hidden states,
    `logits` the scores of the next token with forbidden ones at −∞. Rows that have ended leave the
    batch as soon as half of it has ended. Raises NonFiniteError when the scores are not numbers.
    """
    device = generator.device
    token_ids, mask, positions, vision = left_padded(prompts, pad_id)
    mask, positions = mask.to(device), positions.to(device)
    cache: Any = DynamicCache()
    hidden = forward(token_ids.to(device), mask, positions, vision, cache=cache, use_cache=True)
    position = positions.amax(dim=(0, 2)) + 1
    tokens: list[list[int]] = [[] for _ in prompts]
    logprobs: list[list[float]] = [[] for _ in prompts]
    rows = list(range(len(prompts)))
    is_open = [True] * len(prompts)
    for step in range(sampling.max_new_tokens):
        picked, picked_logprobs = _draw(logits(hidden[:, -1]), sampling.temperature, generator)
        for slot, (token, value) in enumerate(
            zip(picked.tolist(), picked_logprobs.tolist(), strict=True)
        ):
            if is_open[slot]:
                tokens[rows[slot]].append(token)
                logprobs[rows[slot]].append(value)
                is_open[slot] = token not in stop_ids
        if not any(is_open) or step + 1 == sampling.max_new_tokens:
            break
        if sum(is_open) * 2 <= len(rows):
            keep = torch.tensor(
                [slot for slot, going in enumerate(is_open) if going], device=device
            )
            cache.batch_select_indices(keep)
            rows, is_open = [rows[int(slot)] for slot in keep], [True] * len(keep)
            picked, mask, position = picked[keep], mask[keep], position[keep]
        mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
        step_positions = position[None, :, None].expand(3, -1, 1)
        hidden = forward(picked[:, None], mask, step_positions, None, cache=cache, use_cache=True)
        position = position + 1
    return [
        (ids, np.asarray(values, np.float32)) for ids, values in zip(tokens, logprobs, strict=True)
    ]


def _draw(
    scores: Float32[Tensor, "turn vocab"], temperature: float, generator: torch.Generator
) -> tuple[Int64[Tensor, " turn"], Float32[Tensor, " turn"]]:
    """Return one token per row and its log-probability at `temperature`."""
    logprobs = (scores / temperature).log_softmax(dim=-1)
    if torch.isnan(logprobs).any():
        raise NonFiniteError(
            "the policy's scores are NaN while it replies.",
            hint="the weights are damaged; go back to an earlier checkpoint.",
        )
    picked = torch.multinomial(logprobs.exp(), 1, generator=generator)
    return picked.squeeze(1), logprobs.gather(1, picked).squeeze(1)
