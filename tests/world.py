"""A world small enough for tests: tiny model directories, a policy that writes JSON, observations.

It is made once per test session, also when several workers share the session.
"""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gtr_turbo.cli import resolve_config
from gtr_turbo.core.batch import TokenRows
from gtr_turbo.core.config import Config, CriticConfig, LoraConfig, ModelConfig
from gtr_turbo.core.seeding import seed_everything
from gtr_turbo.core.turns import Observation, Prompt, Reply
from gtr_turbo.envs.base import Demonstration
from gtr_turbo.envs.registry import make_task
from gtr_turbo.ops.collate import token_rows
from gtr_turbo.policies.tiny import build_tiny_model
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.train.sft import demonstrations, sft

FAMILIES = ("qwen2_5_vl", "qwen3_vl")
HIDDEN = 64
KINDS = [(family, finetuning) for family in FAMILIES for finetuning in ("lora", "full")]
"""Every model family under every way of training it."""
CRITICS = [
    *((family, kind, trunk) for family, kind in KINDS for trunk in ("frozen", "shared")),
    *((family, "lora", "own_adapter") for family in FAMILIES),
]
LORA = {"lora.rank": 4, "lora.alpha": 8, "lora.dropout": 0.0}


@dataclass(frozen=True)
class World:
    """Directories of models."""

    path: Path

    def untrained(self, family: str) -> Path:
        """Return a model with random weights."""
        return self.path / family

    @property
    def trained(self) -> Path:
        """A Qwen2.5-VL that mostly answers in the demanded form."""
        return self.path / "trained"


def tiny_config(model: Path | str, **fields: Any) -> Config:
    """Return the preset `ezpoints-tiny`, shrunk; `fields` have `__` where the key has a dot.

    What may be tuned in the preset is pinned here, so that tuning moves no stored number.
    """
    small: dict[str, Any] = {
        "model.path": str(model),
        "sft.num_steps": 0,
        "sft.num_episodes": 60,
        "sft.batch_size": 8,
        "sft.mistake_rate": 0.8,
        "critic.hidden_sizes": [16],
        "critic.learning_rate": 1e-3,
        "rollout.num_environments": 4,
        "rollout.turns_per_update": 16,
        "rollout.max_new_tokens": 32,
        "rollout.temperature": 0.5,
        "guidance.into": "reward",
        "imitation.thoughts_per_turn": 1.0,
        "ppo.epochs": 1,
        "ppo.learning_rate": 1e-4,
        "ppo.decay_updates": 25,
        "ppo.value_clip": None,
        "ppo.target_kl": None,
        "ppo.minibatch_size": 8,
        "ppo.micro_batch_size": 8,
        "evaluation.temperature": 1.0,
        "evaluation.num_episodes": 4,
        "evaluation.num_parallel": 4,
        "run.num_updates": 3,
        "run.saved_episodes": 1,
        "run.tensorboard": False,
    }
    given = {key.replace("__", "."): value for key, value in fields.items()}
    return resolve_config("ezpoints-tiny", None, [], {**small, **given})


def _texts(turns: Sequence[Demonstration]) -> list[str]:
    written = [text for turn in turns for text in (turn.observation.prompt, turn.reply)]
    return ["<|im_start|>user\nassistant\n", *written]


def _build(path: Path) -> None:
    path.mkdir()
    torch.set_num_threads(1)
    fields = {"sft__num_episodes": 200, "sft__batch_size": 24, "sft__learning_rate": 4e-3}
    config = tiny_config("unused", **fields, sft__num_steps=70, ppo__micro_batch_size=24)
    turns = demonstrations(config)
    for family in FAMILIES:
        build_tiny_model(path / family, family, _texts(turns), 0, hidden=HIDDEN)
    model = ModelConfig(
        path=str(path / FAMILIES[0]), finetuning="full", dtype="float32", device="cpu"
    )
    seed_everything(0, "world")
    policy = VlmPolicy(model, LoraConfig(), CriticConfig(hidden_sizes=(16,)))
    sft(policy, turns, config)
    policy.export(path / "trained")


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> World:
    """Return the world, made by whichever worker comes first."""
    base = tmp_path_factory.getbasetemp()
    home = base if worker_id == "master" else base.parent
    with (home / "world.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "world").exists():
            _build(home / "world-unfinished")
            (home / "world-unfinished").rename(home / "world")
    return World(home / "world")


def make_policy(
    model: Path,
    finetuning: str = "full",
    trunk: str = "frozen",
    *,
    seed: int = 0,
    **fields: Any,
) -> VlmPolicy:
    """Return a policy on the CPU; `fields` are dotted keys with `__` for the dot."""
    lora = {key.replace(".", "__"): value for key, value in LORA.items()}
    config = tiny_config(
        model, **{**lora, "model__finetuning": finetuning, "critic__trunk": trunk, **fields}
    )
    torch.set_num_threads(1)
    seed_everything(seed, "policy")
    return VlmPolicy(config.model, config.lora, config.critic)


@torch.no_grad()
def nudge(policy: VlmPolicy, scale: float = 0.05, seed: int = 1) -> VlmPolicy:
    """Add noise to every trained weight, so that nothing is zero, and return the policy."""
    generator = torch.Generator().manual_seed(seed)
    for _, parameter in [*policy.policy_parameters(), *policy.critic_parameters()]:
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.add_(scale * noise.to(parameter.device, parameter.dtype))
    return policy


def observations(count: int, seed: int = 0) -> list[Observation]:
    """Return what an expert saw in its first `count` turns: several hands and formulas."""
    return [turn.observation for turn in expert_turns(count, seed)]


def expert_turns(count: int, seed: int = 0) -> list[Demonstration]:
    """Return the first `count` turns of an expert."""
    config = tiny_config("unused")
    task = make_task(config.task.name, config.task.rules, seed)
    generator = np.random.default_rng(seed)
    turns: list[Demonstration] = []
    while len(turns) < count:
        task.reset()
        turns += task.demonstrate(generator)
    return turns[:count]


def play(
    policy: VlmPolicy, count: int, *, temperature: float = 1.0, length: int = 12, seed: int = 0
) -> tuple[list[Prompt], list[Reply], TokenRows]:
    """Return prompts, sampled replies and their rows."""
    prompts = policy.encode(observations(count, seed))
    generator = torch.Generator(policy.device).manual_seed(seed)
    replies = policy.respond(prompts, policy.sampling(temperature, length), generator)
    return prompts, replies, token_rows(prompts, replies, policy.pad_token_id)


def mixed_prompts(policy: VlmPolicy, count: int) -> list[Prompt]:
    """Return prompts of different lengths."""
    shown = observations(count)
    longer = [
        Observation(
            picture=seen.picture, prompt=seen.prompt + " and" * (3 * k), state_key=seen.state_key
        )
        for k, seen in enumerate(shown)
    ]
    return policy.encode(longer)


@contextmanager
def raised_logit(policy: VlmPolicy, token: int, by: float) -> Iterator[None]:
    """Raise one token's logit by a constant, for whoever samples or scores inside."""

    def raise_it(_: object, __: object, logits: torch.Tensor) -> torch.Tensor:
        raised = logits.clone()
        raised[..., token] += by
        return raised

    handle = policy._network.lm_head.register_forward_hook(raise_it)
    try:
        yield
    finally:
        handle.remove()


def numpy_state() -> str:
    """Return the state of numpy's global generator as text."""
    return repr(np.random.get_state(legacy=False)["state"])  # noqa: NPY002
