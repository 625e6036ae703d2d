"""Imitation beside the policy's own objective: so many written thoughts for each turn of a pass.

States come again, and a teacher writes the same thought about them. Equal lessons of a pass are put
into one minibatch and computed once, with their number as weight: over the pass the gradient is the
same, and it costs less.
"""

import math
from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from gtr_turbo.core.batch import TokenRows
from gtr_turbo.core.config import Config
from gtr_turbo.core.turns import Reply, ThoughtLabel
from gtr_turbo.errors import NonFiniteError
from gtr_turbo.ops.collate import token_rows
from gtr_turbo.ops.imitation import IMITATION_TEMPERATURE, negative_log_likelihood
from gtr_turbo.policies.base import AbstractPolicy
from gtr_turbo.train.thoughts import LabelKey, ThoughtStore


@final
class Lessons:
    """Draws from all thoughts so far, uniformly, none twice before each was drawn once (GTR)."""

    def __init__(
        self,
        store: ThoughtStore,
        policy: AbstractPolicy,
        config: Config,
        generator: torch.Generator,
    ) -> None:
        """Draw from `store` with `generator`."""
        self._store, self._policy, self._generator = store, policy, generator
        self._coef, self._per_turn = config.imitation.coef, config.imitation.thoughts_per_turn
        self._micro_batch_size = config.ppo.micro_batch_size
        self._drawn: list[int] = []
        self._num_turns = 0

    def begin_pass(self, num_turns: int) -> None:
        """Draw the thoughts of a pass over `num_turns` turns, equal ones next to each other.

        Groups of equal thoughts come in the order in which the first of each was drawn.
        """
        drawn: list[int] = []
        total, count = len(self._store), self._due(num_turns)
        while total and len(drawn) < count:
            drawn += torch.randperm(total, generator=self._generator).tolist()
        self._drawn = [index for group in self._groups(drawn[:count]) for index in group]
        self._num_turns = 0

    def backward(self, num_turns: int) -> dict[str, float]:
        """Add the gradient of the thoughts that go with the next `num_turns` turns of the pass.

        The loss is `imitation.coef` times the mean negative log-probability of the thought tokens.
        Returns what to watch; without any thought there is neither a gradient nor that. Raises
        NonFiniteError.
        """
        before, self._num_turns = self._num_turns, self._num_turns + num_turns
        count = self._due(self._num_turns) - self._due(before)
        taken, self._drawn = self._drawn[:count], self._drawn[count:]
        if not taken:
            return {}
        groups = self._groups(taken)
        rows = thought_rows(self._policy, [self._store.get(group[0]) for group in groups])
        order = rows.by_length()
        times = torch.tensor([len(group) for group in groups], dtype=torch.float32)
        weights = times[order] / len(taken)
        total = 0.0
        for part, weight in zip(
            rows.select(order).chunks(self._micro_batch_size),
            weights.split(self._micro_batch_size),
            strict=True,
        ):
            losses = thought_losses(self._policy, part)
            loss = (losses * weight.to(losses.device)).sum()
            if not torch.isfinite(loss):
                raise NonFiniteError(
                    f"the loss of imitation is {loss.item()}.",
                    hint="lower `ppo.learning_rate` or `imitation.coef`.",
                )
            (self._coef * loss).backward()
            total += loss.item()
        return {"imitation_loss": total}

    def _due(self, num_turns: int) -> int:
        """Return how many thoughts go with the first `num_turns` turns of a pass, rounded up."""
        return math.ceil(self._per_turn * num_turns)

    def _groups(self, indices: Sequence[int]) -> list[list[int]]:
        """Return the labels' indices, equal labels together, in the order of the first of each."""
        groups: dict[LabelKey, list[int]] = {}
        for index in indices:
            groups.setdefault(self._store.key(index), []).append(index)
        return list(groups.values())


def thought_rows(policy: AbstractPolicy, labels: Sequence[ThoughtLabel]) -> TokenRows:
    """Return the labels' prompts and thoughts as rows, cut behind the thought's next token."""
    prompts = policy.encode([label.observation for label in labels])
    replies = [_as_reply(label) for label in labels]
    return token_rows(prompts, replies, policy.pad_token_id).up_to_action()


def thought_losses(policy: AbstractPolicy, rows: TokenRows) -> Float32[Tensor, " turn"]:
    """Return the mean negative log-probability of each row's thought tokens, nats."""
    scores = policy.score(rows, IMITATION_TEMPERATURE, IMITATION_TEMPERATURE, values=False)
    return negative_log_likelihood(scores.token_logprob, rows.is_thought)


def _as_reply(label: ThoughtLabel) -> Reply:
    return Reply(
        token_ids=label.token_ids,
        token_logprobs=np.zeros(len(label.token_ids), np.float32),
        text="",
        num_thought_tokens=label.num_thought_tokens,
        finished=True,
    )
