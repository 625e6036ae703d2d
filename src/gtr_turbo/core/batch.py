"""What an update computes with: rows are turns, tensors are padded, shapes are checked in tests.

Axes: turn = one observation and its reply · seq = token position · patch = one vision patch ·
feature = its flattened pixels · vocab = token ids · step = turns of one episode in time order ·
model = hidden width.

A row is `prompt, reply, padding`. With a prompt of 4 tokens (one of them a picture placeholder),
a thought of 2 and an action of 2, padded to 9:

    position      0     1     2     3     4     5     6     7     8
    token_ids     <u>   pic   text  <a>   th    th    ac    <end> pad
    is_prompt     1     1     1     1     0     0     0     0     0
    is_thought    0     0     0     0     1     1     0     0     0
    is_action     0     0     0     0     0     0     1     1     0

The logits at position 3 predict the first thought token (position 4): `score` reads the
distribution of the token at position p from the hidden state at position p − 1, and returns it
at p.
The critic reads the hidden state at the last prompt position, 3.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import final

import torch
from jaxtyping import Bool, Float, Float32, Int64
from torch import Tensor

from gtr_turbo.core.turns import ThoughtLabel
from gtr_turbo.errors import SpanError, VisionMismatchError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VisionInputs:
    """The pictures of several turns, one after the other; the number of patches may differ."""

    patches: Float32[Tensor, "patch feature"]
    grids: Int64[Tensor, "turn 3"]
    """(time, rows, columns) in patches of each turn's picture."""
    hashes: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse grids that do not describe the patches."""
        expected = int(self.grids.prod(dim=1).sum())
        if expected != self.patches.shape[0] or len(self.hashes) != self.grids.shape[0]:
            raise VisionMismatchError(
                f"{self.patches.shape[0]} patches and {len(self.hashes)} hashes for grids that need"
                f" {expected} patches of {self.grids.shape[0]} pictures."
            )

    def select(self, rows: Int64[Tensor, " turn"]) -> "VisionInputs":
        """Return the pictures of `rows`, in that order."""
        counts = self.grids.prod(dim=1)
        ends = counts.cumsum(0)
        chosen = [self.patches[int(ends[r] - counts[r]) : int(ends[r])] for r in rows]
        return VisionInputs(
            patches=torch.cat(chosen) if chosen else self.patches[:0],
            grids=self.grids[rows],
            hashes=tuple(self.hashes[int(r)] for r in rows),
        )

    def blank(self) -> "VisionInputs":
        """Return the same pictures, every pixel at the middle value: what a blind model sees."""
        return replace(self, patches=torch.zeros_like(self.patches))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRows:
    """Prompts and replies of several turns, ready to be scored."""

    token_ids: Int64[Tensor, "turn seq"]
    position_ids: Int64[Tensor, "turn 3 seq"]
    """Multimodal rotary positions (time, row, column) of each token."""
    is_prompt: Bool[Tensor, "turn seq"]
    is_thought: Bool[Tensor, "turn seq"]
    is_action: Bool[Tensor, "turn seq"]
    vision: VisionInputs

    def __post_init__(self) -> None:
        """Refuse overlapping masks, turns without prompt or action, and a wrong picture count."""
        overlap = (
            (self.is_prompt & (self.is_thought | self.is_action))
            | (self.is_thought & self.is_action)
        ).any()
        if overlap:
            raise SpanError("prompt, thought and action must not overlap.")
        empty = ~(self.is_action.any(dim=1) & self.is_prompt.any(dim=1))
        if empty.any():
            raise SpanError(
                f"rows {empty.nonzero().flatten().tolist()} lack a prompt or an action."
            )
        if len(self.vision.hashes) != self.num_turns:
            raise VisionMismatchError(
                f"{self.num_turns} turns need as many pictures, got {len(self.vision.hashes)}."
            )

    @property
    def num_turns(self) -> int:
        """Number of rows."""
        return self.token_ids.shape[0]

    @property
    def is_response(self) -> Bool[Tensor, "turn seq"]:
        """True at thought and action tokens."""
        return self.is_thought | self.is_action

    @property
    def is_padding(self) -> Bool[Tensor, "turn seq"]:
        """True where there is nothing."""
        return ~(self.is_prompt | self.is_response)

    def select(self, rows: Int64[Tensor, " turn"]) -> "TokenRows":
        """Return `rows` in that order, cut to the longest of them."""
        width = int((~self.is_padding[rows]).sum(dim=1).max()) if len(rows) else 0
        return TokenRows(
            token_ids=self.token_ids[rows, :width],
            position_ids=self.position_ids[rows, :, :width],
            is_prompt=self.is_prompt[rows, :width],
            is_thought=self.is_thought[rows, :width],
            is_action=self.is_action[rows, :width],
            vision=self.vision.select(rows),
        )

    def up_to_action(self) -> "TokenRows":
        """Return the rows with each action cut to its first token: all that a thought needs.

        A causal model gives the tokens that are left the same log-probabilities.
        """
        is_first = self.is_action & (self.is_action.cumsum(dim=1) == 1)
        width = int((self.is_prompt | self.is_thought | is_first).sum(dim=1).max())
        return TokenRows(
            token_ids=self.token_ids[:, :width],
            position_ids=self.position_ids[:, :, :width],
            is_prompt=self.is_prompt[:, :width],
            is_thought=self.is_thought[:, :width],
            is_action=is_first[:, :width],
            vision=self.vision,
        )

    def by_length(self) -> Int64[Tensor, " turn"]:
        """Return the order of the rows from the shortest to the longest, equal ones as they are.

        Neighbours in it need the least padding between them.
        """
        return (~self.is_padding).sum(dim=1).argsort(stable=True)

    def chunks(self, size: int) -> Iterator["TokenRows"]:
        """Yield the rows in order, `size` at a time."""
        for rows in torch.arange(self.num_turns).split(size):
            yield self.select(rows)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What one forward pass says about the tokens that were sampled. Log-probabilities in nats."""

    token_logprob: Float32[Tensor, "turn seq"]
    """At the sampling temperature; zero outside the reply."""
    reference_token_logprob: Float32[Tensor, "turn seq"]
    """At the guidance temperature; zero outside the reply."""
    entropy: Float32[Tensor, " turn"] | None
    """Mean entropy of the reply's token distributions at the sampling temperature, nats; None when
    it was not asked for."""
    value: Float32[Tensor, " turn"] | None
    """The critic's estimate at the last prompt token; None when it was not asked for."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance:
    """What the teacher thought of each turn."""

    is_guided: Bool[Tensor, " turn"]
    """False where the teacher had nothing to say (malformed reply, no thought)."""
    kl: Float32[Tensor, " turn"] | None = None
    """Estimated reverse KL divergence per token, averaged over the compared tokens, nats; None
    where nothing is compared."""
    token_advantage: Float32[Tensor, "turn seq"] | None = None
    """Advantage of single tokens beside the turn's, zero outside the thought; None: there is none.
    """
    thoughts: tuple[ThoughtLabel, ...] = ()
    """Thoughts to imitate."""
    figures: Mapping[str, float | int | None] = field(default_factory=dict)
    """What else to watch, by the name of its metric."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCredit:
    """Credit that single tokens have of their own."""

    old_logprob: Float32[Tensor, "turn seq"]
    """Of the policy that acted, nats; zero outside the reply."""
    advantage: Float32[Tensor, "turn seq"]
    """Added to the turn's; zero where a token has none."""

    def select(self, rows: Int64[Tensor, " turn"], width: int) -> "TokenCredit":
        """Return `rows` in that order, cut to `width`."""
        return TokenCredit(
            old_logprob=self.old_logprob[rows, :width], advantage=self.advantage[rows, :width]
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBatch:
    """Everything one update needs. Rows are turns; episodes are no longer visible."""

    rows: TokenRows
    old_logprob: Float32[Tensor, " turn"]
    """λ · thought + action of the policy that acted, nats."""
    old_value: Float32[Tensor, " turn"]
    advantage: Float32[Tensor, " turn"]
    """Standardised over the update, guidance and format reward included."""
    value_target: Float32[Tensor, " turn"]
    """Task return; other channels only where `into` says so."""
    is_solved: Bool[Tensor, " turn"]
    """Whether the turn belongs to an episode that this update saw solved."""
    tokens: TokenCredit | None = None
    """Credit of single tokens, where the guidance gives some."""

    def select(self, rows: Int64[Tensor, " turn"]) -> "TurnBatch":
        """Return `rows` in that order."""
        chosen = self.rows.select(rows)
        width = chosen.token_ids.shape[1]
        return TurnBatch(
            rows=chosen,
            old_logprob=self.old_logprob[rows],
            old_value=self.old_value[rows],
            advantage=self.advantage[rows],
            value_target=self.value_target[rows],
            is_solved=self.is_solved[rows],
            tokens=None if self.tokens is None else self.tokens.select(rows, width),
        )

    def minibatches(self, size: int, generator: torch.Generator) -> Iterator["TurnBatch"]:
        """Yield every row once, a random `size` at a time; the last minibatch may be smaller.

        Within a minibatch the rows go from short to long, so that its chunks hold little padding.
        """
        order = torch.randperm(self.rows.num_turns, generator=generator)
        place = self.rows.by_length().argsort()
        for rows in order.split(size):
            yield self.select(rows[place[rows].argsort()])

    def chunks(self, size: int) -> Iterator["TurnBatch"]:
        """Yield the rows in order, `size` at a time."""
        for rows in torch.arange(self.rows.num_turns).split(size):
            yield self.select(rows)


def turn_logprob(
    token_logprob: Float[Tensor, "turn seq"], rows: TokenRows, thought_weight: float
) -> Float32[Tensor, " turn"]:
    """Return λ · Σ thought + Σ action per turn, summed in float32 (RL4VLM; paper, Table 7)."""
    values = token_logprob.float()
    thought = (values * rows.is_thought.to(values.device)).sum(dim=1)
    action = (values * rows.is_action.to(values.device)).sum(dim=1)
    return thought_weight * thought + action
