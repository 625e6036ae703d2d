"""The supervised start: imitate expert traces, some of them wrong on purpose.

GTR-Turbo starts from a model that was fine-tuned for one epoch on solver traces (paper, B.1). Real
cold-start data is imperfect; `sft.mistake_rate` makes it so in a controlled way, and leaves RL
something to repair.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from gtr_turbo.core.config import Config
from gtr_turbo.core.seeding import stream_seed
from gtr_turbo.envs.base import Demonstration
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import NonFiniteError
from gtr_turbo.ops.collate import token_rows
from gtr_turbo.ops.schedules import one_cycle
from gtr_turbo.policies.vlm import VlmPolicy

MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 0.0


def demonstrations(config: Config) -> list[Demonstration]:
    """Return the turns of `sft.num_episodes` expert episodes, dealt from the run's seed.

    A share `sft.mistake_rate` of the episodes follows a wrong plan.
    """
    seed = stream_seed(config.run.seed, "sft")
    generator = np.random.default_rng(seed)
    task = make_task(config.task.name, config.task.rules, seed)
    turns: list[Demonstration] = []
    for _ in range(config.sft.num_episodes):
        task.reset()
        is_mistaken = bool(generator.random() < config.sft.mistake_rate)
        turns += task.demonstrate(generator, mistake=is_mistaken)
    return turns


def sft(
    policy: VlmPolicy,
    turns: Sequence[Demonstration],
    config: Config,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> float:
    """Train `policy` on demonstrations and return the last step's loss, nats per token.

    The loss is the mean negative log-probability of the reply's tokens. Raises NonFiniteError.
    """
    settings = config.sft
    shuffle = torch.Generator().manual_seed(stream_seed(config.run.seed, "sft", "shuffle"))
    parameters = [parameter for _, parameter in policy.policy_parameters()]
    optimizer = torch.optim.AdamW(parameters, weight_decay=WEIGHT_DECAY)
    loss_value = float("nan")
    order: list[int] = []
    with policy.training(dropout=True):
        for step in range(settings.num_steps):
            while len(order) < settings.batch_size:
                order += torch.randperm(len(turns), generator=shuffle).tolist()
            rows, order = order[: settings.batch_size], order[settings.batch_size :]
            for group in optimizer.param_groups:
                group["lr"] = one_cycle(step, settings.learning_rate, settings.num_steps)
            loss_value = _step(policy, [turns[row] for row in rows], config, step)
            _check_finite(torch.nn.utils.clip_grad_norm_(parameters, MAX_GRAD_NORM), step)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            tick(step + 1, settings.num_steps)
    return loss_value


def _step(policy: VlmPolicy, turns: Sequence[Demonstration], config: Config, step: int) -> float:
    """Accumulate the gradient of one batch and return its loss."""
    prompts = policy.encode([turn.observation for turn in turns])
    replies = [policy.written_reply(turn.reply) for turn in turns]
    batch = token_rows(prompts, replies, policy.pad_token_id)
    batch = batch.select(batch.by_length())
    num_tokens = int(batch.is_response.sum())
    total = 0.0
    for rows in batch.chunks(config.ppo.micro_batch_size):
        loss = -policy.score(rows, 1.0, 1.0, values=False).token_logprob.sum() / num_tokens
        _check_finite(loss, step)
        loss.backward()
        total += loss.item()
    return total


def _check_finite(value: Float32[Tensor, ""], step: int) -> None:
    if not torch.isfinite(value):
        raise NonFiniteError(
            f"the loss or the gradient norm of supervised step {step} is {value.item()}.",
            hint="lower `sft.learning_rate`.",
        )
