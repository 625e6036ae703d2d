"""How much a thought depends on the state in which it was thought, by asking the policy itself."""

from collections.abc import Sequence
from typing import Final

import torch

from gtr_turbo.core.batch import Scores, TokenRows
from gtr_turbo.core.turns import Turn
from gtr_turbo.ops.collate import score_in_chunks, token_rows
from gtr_turbo.policies.base import AbstractPolicy

NUM_CROSSED: Final = 16
"""Turns that are looked at, taken evenly from the update: one more row of a pass for each."""


@torch.no_grad()
def thought_state_effect(
    policy: AbstractPolicy,
    turns: Sequence[Turn],
    rows: TokenRows,
    scores: Scores,
    *,
    temperature: float,
    micro_batch_size: int,
) -> float | None:
    """Return by how much a thought is more probable in its own state than in another one.

    Mean over turns of (log π(thought | own state) − log π(thought | other state)) per thought
    token, nats; the other state is that of the next turn looked at whose state differs. It
    estimates the mutual information between state and thought plus its mirror image, so it is 0
    exactly where thoughts do not depend on the state, however different their wording is
    (RAGEN-2, arXiv 2604.06268, scores thoughts across states for this). None where no two turns
    with thoughts are in different states.

    `scores` are the policy's own of `rows` at `temperature`.
    """
    pairs = crossed(turns)
    if not pairs:
        return None
    other = token_rows(
        [turns[there].prompt for _, there in pairs],
        [turns[here].reply for here, _ in pairs],
        policy.pad_token_id,
    )
    crossed_logprob = score_in_chunks(
        lambda part: policy.score(part, temperature, temperature, values=False),
        other,
        micro_batch_size,
    ).token_logprob
    effects = [
        scores.token_logprob[here][rows.is_thought[here]].mean()
        - crossed_logprob[row][other.is_thought[row]].mean()
        for row, (here, _) in enumerate(pairs)
    ]
    return float(torch.stack(effects).mean())


def crossed(turns: Sequence[Turn]) -> list[tuple[int, int]]:
    """Return (turn, turn whose state it is put into) for some turns with thoughts."""
    thinking = [index for index, turn in enumerate(turns) if turn.reply.num_thought_tokens > 0]
    step = max(1, len(thinking) // NUM_CROSSED)
    chosen = thinking[::step][:NUM_CROSSED]
    pairs: list[tuple[int, int]] = []
    for place, here in enumerate(chosen):
        own = turns[here].observation.state_key
        around = chosen[place + 1 :] + chosen[:place]
        there = next((t for t in around if turns[t].observation.state_key != own), None)
        if there is not None:
            pairs.append((here, there))
    return pairs
