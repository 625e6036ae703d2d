"""Small turns with round numbers, for tests of what is computed from them."""

import numpy as np
import torch

from gtr_turbo.core.batch import TokenCredit, TokenRows, TurnBatch, VisionInputs
from gtr_turbo.core.turns import PictureInputs, Prompt, Reply

FEATURES = 4


def picture(grid: tuple[int, int, int], level: float) -> PictureInputs:
    """Return a picture whose patches all hold `level`."""
    num_patches = grid[0] * grid[1] * grid[2]
    patches = np.full((num_patches, FEATURES), level, dtype=np.float32)
    return PictureInputs(patches=patches, grid=grid, sha256=f"picture-{level:g}")


def prompt(
    token_ids: tuple[int, ...], positions: list[int] | None = None, level: float = 0.0
) -> Prompt:
    """Return a prompt; positions are the same on the three axes, 0, 1, 2 … by default."""
    line = list(range(len(token_ids))) if positions is None else positions
    return Prompt(
        token_ids=token_ids,
        position_ids=np.tile(np.array(line, dtype=np.int64), (3, 1)),
        picture=picture((1, 2, 2), level),
    )


def reply(token_ids: tuple[int, ...], num_thought: int) -> Reply:
    """Return a reply with log-probabilities of zero."""
    return Reply(
        token_ids=token_ids,
        token_logprobs=np.zeros(len(token_ids), dtype=np.float32),
        text="",
        num_thought_tokens=num_thought,
        finished=True,
    )


def vision(grids: list[tuple[int, int, int]]) -> VisionInputs:
    """Return pictures of the given grids; the patches of picture i all hold i."""
    counts = [time * rows * columns for time, rows, columns in grids]
    levels = torch.arange(len(grids)).repeat_interleave(torch.tensor(counts))
    return VisionInputs(
        patches=levels.float()[:, None].expand(-1, FEATURES).contiguous(),
        grids=torch.tensor(grids, dtype=torch.int64).reshape(-1, 3),
        hashes=tuple(f"picture-{index}" for index in range(len(grids))),
    )


def layout(*rows: str) -> TokenRows:
    """Return rows drawn as text: p prompt, t thought, a action, . padding.

    Row i holds the token ids 10·i, 10·i + 1, …, and a picture of i + 1 patches that all hold i.
    """
    letters = [list(row) for row in rows]
    width = len(letters[0])

    def where(letter: str) -> torch.Tensor:
        return torch.tensor([[found == letter for found in row] for row in letters])

    token_ids = torch.arange(width)[None] + 10 * torch.arange(len(rows))[:, None]
    return TokenRows(
        token_ids=token_ids,
        position_ids=token_ids[:, None].expand(-1, 3, -1).contiguous(),
        is_prompt=where("p"),
        is_thought=where("t"),
        is_action=where("a"),
        vision=vision([(1, 1, index + 1) for index in range(len(rows))]),
    )


def batch(*rows: str) -> TurnBatch:
    """Return an update's turns; every number of row i is i, of its token at p it is i + p / 8."""
    found = layout(*rows)
    numbers = torch.arange(found.num_turns).float()
    tokens = numbers[:, None] + torch.arange(found.token_ids.shape[1]) / 8
    return TurnBatch(
        rows=found,
        old_logprob=numbers,
        old_value=numbers + 0.25,
        advantage=numbers + 0.5,
        value_target=numbers + 0.75,
        is_solved=numbers % 2 == 0,
        tokens=TokenCredit(old_logprob=-tokens, advantage=tokens),
    )
