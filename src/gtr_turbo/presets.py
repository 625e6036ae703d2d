"""Complete configurations by name. A preset is a function, so that it can be read and called."""

from collections.abc import Callable
from typing import Final

from gtr_turbo.core.config import (
    Config,
    CriticConfig,
    EvaluationConfig,
    FormatConfig,
    GuidanceConfig,
    ImitationConfig,
    LoraConfig,
    ModelConfig,
    PpoConfig,
    RolloutConfig,
    RuleValue,
    RunConfig,
    SftConfig,
    TaskConfig,
)
from gtr_turbo.envs.registry import default_rules
from gtr_turbo.errors import UnknownNameError, nearest_hint

EARLY_ENDINGS: Final = ("end_at_first_penalty", "end_when_hopeless")
"""Rules that end a hand early: they are for training, evaluation plays every hand to its end."""


def points24_paper() -> Config:
    """Return the paper's Points24 run: Qwen2.5-VL-7B with LoRA (Table 7).

    `model.path` must name a model that knows the format: the paper starts from one epoch of SFT.
    """
    return Config(
        task=TaskConfig(
            name="points24",
            rules=default_rules("points24") | {"end_at_first_penalty": True},
            evaluation_rules=_to_the_end("points24"),
        ),
        model=ModelConfig(gradient_checkpointing=True),
        lora=LoraConfig(rank=128, alpha=256, dropout=0.05),
        rollout=RolloutConfig(num_environments=32, turns_per_update=1024, temperature=0.2),
        ppo=PpoConfig(epochs=4, minibatch_size=128, micro_batch_size=1),
        run=RunConfig(num_updates=30, keep_checkpoints=3),
    )


def ezpoints_tiny() -> Config:
    """Return the demo: a 1.2 M-parameter Qwen2.5-VL on two-card hands, minutes on a CPU.

    The start is weak on purpose (most of its expert traces are wrong), so that there is something
    to learn from reward.
    """
    return Config(
        task=_tiny_task("ezpoints", {}),
        model=_TINY_MODEL,
        critic=_TINY_CRITIC,
        sft=SftConfig(num_steps=120, learning_rate=2e-3, mistake_rate=0.8),
        rollout=RolloutConfig(
            num_environments=64, turns_per_update=1024, temperature=1.0, max_new_tokens=48
        ),
        guidance=GuidanceConfig(into="reward"),
        imitation=_TINY_IMITATION,
        ppo=_tiny_ppo(learning_rate=2e-4, decay_updates=40),
        evaluation=EvaluationConfig(temperature=1.0, interval=10),
        run=RunConfig(num_updates=10, num_threads=1),
    )


def points24_tiny() -> Config:
    """Return Points24 for the tiny model: four cards of four ranks, every hand solvable.

    100 updates are 102,400 environment steps. With more ranks a model of this size succeeds too
    rarely at the start to learn from reward (docs/results.md).
    """
    return Config(
        task=_tiny_task("points24", {"only_solvable": True, "ranks": [2, 3, 4, 6]}),
        model=_TINY_MODEL,
        critic=_TINY_CRITIC,
        sft=SftConfig(num_steps=600, num_episodes=4000, learning_rate=2e-3, mistake_rate=0.4),
        rollout=RolloutConfig(
            num_environments=64, turns_per_update=1024, temperature=0.6, max_new_tokens=64
        ),
        guidance=GuidanceConfig(into="reward"),
        imitation=_TINY_IMITATION,
        ppo=_tiny_ppo(learning_rate=1e-4, decay_updates=100),
        evaluation=EvaluationConfig(temperature=0.6, interval=10),
        run=RunConfig(num_updates=100, num_threads=1, keep_checkpoints=3),
    )


def numberline_tiny() -> Config:
    """Return the number line for the tiny model: 0 to 5, the goal at least two steps away.

    The format's reward is smaller than in the card games, as are the task's own rewards.
    """
    return Config(
        task=_tiny_task("numberline", {"min_distance": 2}),
        model=_TINY_MODEL,
        critic=_TINY_CRITIC,
        sft=SftConfig(num_steps=160, num_episodes=1000, learning_rate=2e-3, mistake_rate=0.7),
        rollout=RolloutConfig(
            num_environments=64, turns_per_update=1024, temperature=1.0, max_new_tokens=40
        ),
        format=FormatConfig(valid=0.5, invalid=-0.5),
        guidance=GuidanceConfig(into="reward"),
        imitation=_TINY_IMITATION,
        ppo=_tiny_ppo(learning_rate=2e-4, decay_updates=40),
        evaluation=EvaluationConfig(temperature=1.0, interval=5),
        run=RunConfig(num_updates=10, num_threads=1),
    )


def household_tiny() -> Config:
    """Return a household for the tiny model: kitchens of four receptacles, one thing to put away.

    The agent sees the compact picture, what it can do and its last four actions; where things are
    it must find out. Its prompts are long for a model of this size: it takes 500 supervised steps
    until it solves a third of the games, and none after 150.
    """
    small: dict[str, RuleValue] = {
        "task_types": ["pick_and_place_simple"],
        "rooms": ["kitchen"],
        "receptacle_kinds": ["cabinet", "countertop", "fridge", "microwave", "sinkbasin"],
        "object_kinds": ["apple", "cup", "egg", "mug"],
        "max_receptacles": 4,
        "num_objects": 4,
        "max_steps": 12,
        "max_actions": 12,
        "max_repeats": 3,
        "reward_success": 10.0,
        "picture": "compact",
        "prompt": "compact",
        "history": 4,
        "idle_commands": False,
    }
    return Config(
        task=TaskConfig(
            name="household",
            rules=default_rules("household") | small | {"early_truncation": True},
            evaluation_rules={"early_truncation": False},
        ),
        model=_TINY_MODEL,
        critic=_TINY_CRITIC,
        sft=SftConfig(num_steps=500, num_episodes=1000, learning_rate=2e-3, mistake_rate=0.5),
        rollout=RolloutConfig(
            num_environments=64, turns_per_update=1024, temperature=1.0, max_new_tokens=32
        ),
        guidance=GuidanceConfig(into="reward"),
        imitation=_TINY_IMITATION,
        ppo=_tiny_ppo(learning_rate=2e-4, decay_updates=40),
        evaluation=EvaluationConfig(temperature=1.0, interval=5),
        run=RunConfig(num_updates=15, num_threads=1, keep_checkpoints=3),
    )


def alfworld_paper() -> Config:
    """Return the paper's ALFWorld run: Qwen2.5-VL-7B with LoRA (Table 7).

    The games are the household's, whose pictures are schematic; `task.name` "alfworld" plays
    ALFWorld's own. `model.path` must name a model that knows the format.
    """
    return Config(
        task=TaskConfig(
            name="household",
            rules=default_rules("household") | {"early_truncation": True},
            evaluation_rules={"early_truncation": False, "split": "valid_unseen"},
        ),
        model=ModelConfig(gradient_checkpointing=True),
        lora=LoraConfig(rank=128, alpha=256, dropout=0.05),
        rollout=RolloutConfig(num_environments=32, turns_per_update=1024, temperature=0.2),
        format=FormatConfig(valid=5.0, invalid=-5.0),
        ppo=PpoConfig(epochs=4, minibatch_size=128, micro_batch_size=1, thought_weight=0.2),
        run=RunConfig(num_updates=20, keep_checkpoints=3),
    )


_TINY_MODEL = ModelConfig(path="tiny:qwen2_5_vl", finetuning="full", dtype="float32", device="cpu")
_TINY_CRITIC = CriticConfig(hidden_sizes=(128,), learning_rate=1e-3)
_TINY_IMITATION = ImitationConfig(thoughts_per_turn=0.25)
"""GTR's 1 takes as long as PPO itself (docs/results.md)."""


def _tiny_ppo(learning_rate: float, decay_updates: int) -> PpoConfig:
    """Return the policy update of the tiny presets: two passes, a quarter of a minibatch at a time.

    Smaller pieces hold rows of more equal length, hence less padding. The value is not clipped: 0.1
    per update would keep the critic from returns of 10.
    """
    return PpoConfig(
        epochs=2,
        minibatch_size=128,
        micro_batch_size=32,
        learning_rate=learning_rate,
        decay_updates=decay_updates,
        value_clip=None,
    )


def _tiny_task(name: str, rules: dict[str, RuleValue]) -> TaskConfig:
    """Return a task in its compact form: small pictures and few words."""
    small = {"picture": "compact", "prompt": "compact", "end_at_first_penalty": True}
    return TaskConfig(
        name=name,
        rules=default_rules(name) | small | rules,
        evaluation_rules=_to_the_end(name),
    )


def _to_the_end(name: str) -> dict[str, RuleValue]:
    """Return the early endings that a task has, switched off."""
    return {rule: False for rule in EARLY_ENDINGS if rule in default_rules(name)}


PRESETS: dict[str, Callable[[], Config]] = {
    "ezpoints-tiny": ezpoints_tiny,
    "points24-tiny": points24_tiny,
    "numberline-tiny": numberline_tiny,
    "household-tiny": household_tiny,
    "points24-paper": points24_paper,
    "alfworld-paper": alfworld_paper,
}


def make_preset(name: str) -> Config:
    """Return a preset's configuration. Raises UnknownNameError with the nearest name."""
    if name not in PRESETS:
        raise UnknownNameError(
            f'there is no preset named "{name}".', hint=nearest_hint(name, PRESETS, "presets")
        )
    return PRESETS[name]()
