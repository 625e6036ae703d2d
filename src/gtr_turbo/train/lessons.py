"""Imitation beside the policy's own objective: one written thought for each turn of a pass."""

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from gtr_turbo.core.config import Config
from gtr_turbo.core.turns import Reply, ThoughtLabel
from gtr_turbo.errors import NonFiniteError
from gtr_turbo.ops.collate import token_rows
from gtr_turbo.ops.imitation import negative_log_likelihood
from gtr_turbo.ops.means import TurnMeans
from gtr_turbo.policies.base import AbstractPolicy
from gtr_turbo.train.thoughts import ThoughtStore

IMITATION_TEMPERATURE = 1.0
"""Imitation raises the likelihood itself, whatever temperature the agent samples at."""


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
        self._coef = config.imitation.coef
        self._micro_batch_size = config.ppo.micro_batch_size
        self._order: list[int] = []

    def begin_pass(self) -> None:
        """Forget the order of the last pass: each pass draws anew."""
        self._order = []

    def backward(self, count: int) -> dict[str, float]:
        """Add the gradient of `count` thoughts' loss; return what to watch, nothing without any.

        The loss is `imitation.coef` times the mean negative log-probability of the thought tokens.
        Raises NonFiniteError.
        """
        labels = self._draw(count)
        if not labels:
            return {}
        means = TurnMeans()
        for start in range(0, len(labels), self._micro_batch_size):
            part = labels[start : start + self._micro_batch_size]
            loss = thought_loss(self._policy, part)
            if not torch.isfinite(loss):
                raise NonFiniteError(
                    f"the loss of imitation is {loss.item()}.",
                    hint="lower `ppo.learning_rate` or `imitation.coef`.",
                )
            (self._coef * loss * len(part) / len(labels)).backward()
            means.add(len(part), imitation_loss=loss.item())
        return means.means()

    def _draw(self, count: int) -> list[ThoughtLabel]:
        total = len(self._store)
        while total and len(self._order) < count:
            self._order += torch.randperm(total, generator=self._generator).tolist()
        drawn, self._order = self._order[:count], self._order[count:]
        return [self._store.get(index) for index in drawn]


def thought_loss(policy: AbstractPolicy, labels: Sequence[ThoughtLabel]) -> Float32[Tensor, ""]:
    """Return the mean over labels of each thought's mean negative log-probability, nats."""
    prompts = policy.encode([label.observation for label in labels])
    replies = [_as_reply(label) for label in labels]
    rows = token_rows(prompts, replies, policy.pad_token_id).up_to_action()
    scores = policy.score(rows, IMITATION_TEMPERATURE, IMITATION_TEMPERATURE, values=False)
    return negative_log_likelihood(scores.token_logprob, rows.is_thought).mean()


def _as_reply(label: ThoughtLabel) -> Reply:
    return Reply(
        token_ids=label.token_ids,
        token_logprobs=np.zeros(len(label.token_ids), np.float32),
        text="",
        num_thought_tokens=label.num_thought_tokens,
        finished=True,
    )
