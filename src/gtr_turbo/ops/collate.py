"""From turns to padded tensors: the one place where rows are laid out, as `core/batch.py` shows."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from gtr_turbo.core.batch import Scores, TokenRows, VisionInputs
from gtr_turbo.core.turns import PictureInputs, Prompt, Reply


def vision_inputs(pictures: Sequence[PictureInputs]) -> VisionInputs:
    """Return the pictures one after the other."""
    return VisionInputs(
        patches=torch.cat([torch.from_numpy(picture.patches) for picture in pictures]),
        grids=torch.tensor([picture.grid for picture in pictures], dtype=torch.int64),
        hashes=tuple(picture.sha256 for picture in pictures),
    )


def token_rows(prompts: Sequence[Prompt], replies: Sequence[Reply], pad_id: int) -> TokenRows:
    """Return one row per turn: prompt, reply, padding on the right with `pad_id`.

    A reply's positions count on from the largest position of its prompt, the same on all three
    rotary axes, as the model itself counts text.
    """
    lengths = [len(p.token_ids) + len(r.token_ids) for p, r in zip(prompts, replies, strict=True)]
    num_turns, width = len(lengths), max(lengths)
    token_ids = torch.full((num_turns, width), pad_id, dtype=torch.int64)
    position_ids = torch.zeros((num_turns, 3, width), dtype=torch.int64)
    is_prompt, is_thought, is_action = (
        torch.zeros((num_turns, width), dtype=torch.bool) for _ in range(3)
    )
    for row, (prompt, reply) in enumerate(zip(prompts, replies, strict=True)):
        start, end = len(prompt.token_ids), lengths[row]
        border = start + reply.num_thought_tokens
        token_ids[row, :end] = torch.tensor(prompt.token_ids + reply.token_ids)
        position_ids[row, :, :start] = torch.from_numpy(prompt.position_ids)
        first = int(prompt.position_ids.max()) + 1
        position_ids[row, :, start:end] = torch.arange(first, first + end - start)
        is_prompt[row, :start] = True
        is_thought[row, start:border] = True
        is_action[row, border:end] = True
    return TokenRows(
        token_ids=token_ids,
        position_ids=position_ids,
        is_prompt=is_prompt,
        is_thought=is_thought,
        is_action=is_action,
        vision=vision_inputs([prompt.picture for prompt in prompts]),
    )


def left_padded(
    prompts: Sequence[Prompt], pad_id: int
) -> tuple[
    Int64[Tensor, "turn seq"], Int64[Tensor, "turn seq"], Int64[Tensor, "3 turn seq"], VisionInputs
]:
    """Return (token ids, attention mask, positions, pictures) with all prompts ending together."""
    width = max(len(prompt.token_ids) for prompt in prompts)
    token_ids = torch.full((len(prompts), width), pad_id, dtype=torch.int64)
    attention_mask = torch.zeros((len(prompts), width), dtype=torch.int64)
    position_ids = torch.zeros((3, len(prompts), width), dtype=torch.int64)
    for row, prompt in enumerate(prompts):
        start = width - len(prompt.token_ids)
        token_ids[row, start:] = torch.tensor(prompt.token_ids)
        attention_mask[row, start:] = 1
        position_ids[:, row, start:] = torch.from_numpy(prompt.position_ids)
    return token_ids, attention_mask, position_ids, vision_inputs([p.picture for p in prompts])


def score_in_chunks(score: Callable[[TokenRows], Scores], rows: TokenRows, size: int) -> Scores:
    """Return the scores of all rows on the CPU, computed for `size` rows of like length at a time.

    The scores are in the order of the rows. `score` must not need a gradient.
    """
    width = rows.token_ids.shape[1]
    order = rows.by_length()
    pieces = [score(part) for part in rows.select(order).chunks(size)]
    back = order.argsort()
    values = [piece.value.cpu() for piece in pieces if piece.value is not None]
    entropies = [piece.entropy.cpu() for piece in pieces if piece.entropy is not None]
    return Scores(
        token_logprob=stack_padded([p.token_logprob.cpu() for p in pieces], width)[back],
        reference_token_logprob=stack_padded(
            [p.reference_token_logprob.cpu() for p in pieces], width
        )[back],
        entropy=torch.cat(entropies)[back] if entropies else None,
        value=torch.cat(values)[back] if values else None,
    )


def stack_padded(
    pieces: Sequence[Float32[Tensor, "_ _"]], width: int
) -> Float32[Tensor, "turn seq"]:
    """Return [turn, seq] pieces of different widths as one tensor, zeros on the right."""
    return torch.cat(
        [torch.nn.functional.pad(piece, (0, width - piece.shape[1])) for piece in pieces]
    )
