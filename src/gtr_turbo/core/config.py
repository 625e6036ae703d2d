"""Every knob of a run: frozen, nested by owner, checked where it is declared. Never imports torch.

Class defaults are the paper's (GTR-Turbo, Table 7) where the paper has a value; `docs/paper.md` has
a row for each field that decides a result.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, final

import yaml
from pydantic import Field, ValidationError, model_validator

from gtr_turbo.core.combinations import refuse_impossible
from gtr_turbo.core.plain_yaml import flatten
from gtr_turbo.core.plain_yaml import read_yaml as read_yaml  # offered here beside `to_yaml`
from gtr_turbo.core.refusals import explain, refuse_lookalikes
from gtr_turbo.core.section import Section
from gtr_turbo.core.teaching import (
    CorrectorConfig,
    GuardConfig,
    GuidanceConfig,
    ImitationConfig,
    MergeConfig,
    Place,
)
from gtr_turbo.errors import ConfigError

RuleValue = bool | int | float | str | list[int] | list[str] | None


@final
class TaskConfig(Section):
    """What is played."""

    name: str = "points24"
    """Registered task."""
    rules: dict[str, RuleValue] = Field(default_factory=dict)
    """Rule switches of the task in training; missing ones take the task's defaults."""
    evaluation_rules: dict[str, RuleValue] = Field(default_factory=dict)
    """What is changed in `rules` for evaluation, e.g. no early truncation."""


@final
class ModelConfig(Section):
    """Which model acts, and how it is loaded."""

    path: str = "Qwen/Qwen2.5-VL-7B-Instruct"
    """Local model directory, or `tiny:qwen2_5_vl` / `tiny:qwen3_vl` to make one in the run."""
    finetuning: Literal["lora", "full"] = "lora"
    """Train adapters or every weight."""
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Storage and compute type of the model; log-probabilities are always summed in float32."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, … or `auto`: the GPU if there is one."""
    attention: Literal["sdpa", "eager", "flash_attention_2"] = "sdpa"
    """Attention kernel."""
    gradient_checkpointing: bool = False
    """Trade compute for memory in the update."""


@final
class LoraConfig(Section):
    """Low-rank adapters (paper, Table 7)."""

    rank: int = Field(default=128, ge=1)
    """Rank r."""
    alpha: float = Field(default=256, gt=0)
    """Scaling is alpha / rank."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Dropout on the adapter's input; acts only where `ppo.dropout` switches it on, and in SFT."""
    targets: tuple[Literal["language_model", "vision_tower", "merger"], ...] = Field(
        default=("language_model", "vision_tower", "merger"), min_length=1
    )
    """Parts whose linear layers get adapters."""


@final
class CriticConfig(Section):
    """The value head on the last prompt token."""

    trunk: Literal["frozen", "own_adapter", "shared"] = "frozen"
    """Where its gradient stops: before the policy's trunk, in an adapter of its own, or nowhere."""
    hidden_sizes: tuple[Annotated[int, Field(ge=1)], ...] = (1024, 512)
    """Widths of the head's hidden layers."""
    warmup_updates: int = Field(default=1, ge=0)
    """Updates in which only the critic learns."""
    learning_rate: float | None = Field(default=None, gt=0)
    """Own learning rate; None takes `ppo.learning_rate`."""


@final
class SftConfig(Section):
    """The supervised start on expert traces. `num_steps` 0 skips it."""

    num_steps: int = Field(default=0, ge=0)
    """Optimiser steps."""
    finetuning: Literal["lora", "full"] = "full"
    """What the supervised stage trains; its result is merged into the model that RL starts from."""
    batch_size: int = Field(default=64, ge=1)
    """Turns per step."""
    num_episodes: int = Field(default=2000, ge=1)
    """Expert episodes that are dealt for it."""
    learning_rate: float = Field(default=2e-5, gt=0)
    """Peak of a one-cycle schedule."""
    mistake_rate: float = Field(default=0.0, ge=0, le=1)
    """Share of episodes whose trace is wrong but consistent with itself."""


@final
class RolloutConfig(Section):
    """How turns are collected."""

    num_environments: int = Field(default=8, ge=1)
    """Environments that are played side by side in one batch."""
    turns_per_update: int = Field(default=1024, ge=1)
    """Turns per update, over all environments."""
    temperature: float = Field(default=0.2, gt=0)
    """Sampling temperature; log-probabilities are scored at the same one."""
    max_new_tokens: int = Field(default=256, ge=1)
    """Token limit of a reply."""
    workers: Literal["in_process", "process"] = "in_process"
    """Where environments live: in the training process, or in processes that may fail."""
    num_workers: int | None = Field(default=None, ge=1)
    """Processes that share the environments; None: one per CPU core, at most one for each."""
    step_deadline: float = Field(default=30.0, gt=0)
    """Longest step of an environment in a process, seconds; then it is killed and replaced."""
    max_restarts: int = Field(default=10, ge=0)
    """Faults of an environment, without an ended episode between them, that are survived."""

    @model_validator(mode="after")
    def _whole_rounds(self) -> "RolloutConfig":
        if self.turns_per_update % self.num_environments:
            raise ConfigError(
                f"`rollout.turns_per_update` must be a multiple of `rollout.num_environments`, got"
                f" {self.turns_per_update} and {self.num_environments}.",
                hint="each environment plays the same number of turns per update.",
            )
        return self


@final
class FormatConfig(Section):
    """The reward for a reply's form."""

    valid: float = 3.0
    """Bonus of a well-formed reply."""
    invalid: float = -2.0
    """Bonus of a malformed one."""
    into: Place = "advantage"
    """Where it is added: before GAE, to the advantage alone, or to advantage and value target."""


@final
class PpoConfig(Section):
    """The policy update."""

    objective: Literal["ppo", "rejection", "none"] = "ppo"
    """The clipped surrogate; imitation of the agent's own solved episodes; or imitation of the
    teacher alone."""
    epochs: int = Field(default=4, ge=1)
    """Passes over the update's turns."""
    minibatch_size: int = Field(default=128, ge=1)
    """Turns per optimiser step."""
    micro_batch_size: int = Field(default=8, ge=1)
    """Turns per forward and backward pass; gradients accumulate up to the minibatch."""
    clip: float = Field(default=0.1, gt=0)
    """Clip range of the ratio."""
    value_clip: float | None = Field(default=0.1, gt=0)
    """Clip range of the value's change; None: no clipping."""
    value_coef: float = Field(default=0.5, ge=0)
    """Weight of the value loss."""
    entropy_coef: float = Field(default=0.01, ge=0)
    """Weight of the token entropy bonus."""
    gamma: float = Field(default=0.9, ge=0, le=1)
    """Discount per turn."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Lambda of generalised advantage estimation."""
    thought_weight: float = Field(default=0.5, ge=0, le=1)
    """Weight of the thought tokens in a turn's log-probability."""
    learning_rate: float = Field(default=1e-5, gt=0)
    """Peak learning rate of Adam."""
    learning_rate_floor: float = Field(default=1e-9, ge=0)
    """Where the cosine ends, and stays."""
    decay_updates: int = Field(default=25, ge=1)
    """Updates over which the cosine falls."""
    adam_epsilon: float = Field(default=1e-7, gt=0)
    """Adam's epsilon."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Limit of the gradient's norm."""
    target_kl: float | None = Field(default=None, gt=0)
    """Stop an update's epochs when the approximate KL to the behaviour policy exceeds this."""
    dropout: bool = False
    """Keep dropout on in the update (lineage); the ratio of the first step is then not one."""


@final
class EvaluationConfig(Section):
    """The fixed panel on which agent and teacher are measured."""

    num_episodes: int = Field(default=200, ge=1)
    """Hands of the panel."""
    panel_seed: int = Field(default=20_240_917, ge=0)
    """Seed of the panel; the same for every run."""
    temperature: float = Field(default=0.2, gt=0)
    """Sampling temperature in evaluation."""
    interval: int = Field(default=0, ge=0)
    """Updates between evaluations during training; 0: only at the start and the end."""
    num_parallel: int = Field(default=100, ge=1)
    """Episodes that are played side by side."""


@final
class RunConfig(Section):
    """Bookkeeping."""

    seed: int = Field(default=0, ge=0)
    """One seed for everything."""
    num_updates: int = Field(default=30, ge=0)
    """Updates of the whole run."""
    num_threads: int | None = Field(default=None, ge=1)
    """CPU threads of torch; None leaves torch's own choice."""
    checkpoint_interval: int = Field(default=1, ge=1)
    """Updates between checkpoints."""
    keep_checkpoints: int | None = Field(default=None, ge=1)
    """Newest checkpoints that stay on disk; None keeps all."""
    check_interval: int = Field(default=10, ge=1)
    """Updates between two runs of the integrity checks."""
    saved_episodes: int = Field(default=4, ge=0)
    """Episodes per update that are written with their pictures."""
    tensorboard: bool = True
    """Write TensorBoard events."""


@final
class Config(Section):
    """A whole run."""

    task: TaskConfig = TaskConfig()
    model: ModelConfig = ModelConfig()
    lora: LoraConfig = LoraConfig()
    critic: CriticConfig = CriticConfig()
    sft: SftConfig = SftConfig()
    rollout: RolloutConfig = RolloutConfig()
    format: FormatConfig = FormatConfig()
    guidance: GuidanceConfig = GuidanceConfig()
    imitation: ImitationConfig = ImitationConfig()
    corrector: CorrectorConfig = CorrectorConfig()
    guard: GuardConfig = GuardConfig()
    merge: MergeConfig = MergeConfig()
    ppo: PpoConfig = PpoConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    run: RunConfig = RunConfig()

    @property
    def training_task(self) -> TaskConfig:
        """The task as it is played in training: with its solver's advice, if a corrector is told.

        The advice is for the corrector's eyes; the agent sees the same pictures and prompts.
        """
        is_told = self.guidance.teacher == "corrector" and self.corrector.tell_solution
        if self.guidance.kind != "sft" or not is_told:
            return self.task
        return self.task.model_copy(update={"rules": self.task.rules | {"advice": True}})

    @model_validator(mode="after")
    def _possible(self) -> "Config":
        refuse_impossible(self)
        return self


MUTABLE_AT_RESUME = frozenset({
    "run.num_updates",
    "run.keep_checkpoints", "run.tensorboard",
    "run.saved_episodes",
    "run.check_interval",
    "rollout.workers", "rollout.num_workers", "rollout.step_deadline", "rollout.max_restarts",
    "corrector.url", "corrector.api_key_variable", "corrector.num_parallel", "corrector.deadline",
    "corrector.max_attempts", "corrector.max_requests_per_minute", "corrector.max_cost",
    "corrector.max_failures", "corrector.pause", "corrector.on_failure",
})  # fmt: skip
"""Fields that a resumed run may change without becoming another run."""


def parse_config(values: Mapping[str, Any]) -> Config:
    """Return the checked configuration; every refusal is a ConfigError that names the field."""
    refuse_lookalikes(values, Config)
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        raise explain(error, Config) from None


def to_yaml(config: Config) -> str:
    """Return the resolved configuration as YAML."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def config_hash(config: Config) -> str:
    """Return the sha256 of what decides the run's numbers: all but the mutable fields."""
    flat = {
        key: value
        for key, value in flatten(config.model_dump(mode="json")).items()
        if key not in MUTABLE_AT_RESUME
    }
    return hashlib.sha256(json.dumps(flat, sort_keys=True).encode()).hexdigest()


def differences(old: Config, new: Config) -> list[str]:
    """Return one line `key: old → new` for each field that a resume may not change."""
    left, right = (flatten(c.model_dump(mode="json")) for c in (old, new))
    return [
        f"{key}: {left.get(key)} → {right.get(key)}"
        for key in sorted(left.keys() | right.keys())
        if left.get(key) != right.get(key) and key not in MUTABLE_AT_RESUME
    ]
