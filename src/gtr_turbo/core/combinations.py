"""Combinations of configuration values that cannot work, refused before anything is loaded."""

from typing import TYPE_CHECKING

from gtr_turbo.core.addresses import refuse_address
from gtr_turbo.errors import ConfigError, nearest_hint

if TYPE_CHECKING:
    from gtr_turbo.core.config import Config

TINY_PREFIX = "tiny:"
"""`model.path` with this prefix asks for a small model that the run makes itself."""
SCRIPTED_CORRECTOR = "scripted"
"""`corrector.url` that asks for a local server which repeats what the task's solver says."""
TINY_FAMILIES = ("qwen2_5_vl", "qwen3_vl")
IGNORED_GUIDANCE = {
    "tokens": ("sft", "constant"),
    "pictures": ("sft", "constant"),
    "token_cap": ("sft", "constant"),
    "estimator": ("sft", "constant", "distillation"),
    "invalid_format_kl": ("sft", "constant", "distillation"),
    "coef": ("sft",),
}
"""Field of `guidance` → the kinds of guidance that make nothing of it."""


def refuse_impossible(config: "Config") -> None:
    """Raise ConfigError for a combination that cannot work, with what to change."""
    for refuse in (
        _refuse_tiny,
        _refuse_rounding,
        _refuse_critic,
        _refuse_schedule,
        _refuse_merge,
        _refuse_guidance,
        _refuse_guard,
        _refuse_corrector,
        _refuse_objective,
    ):
        refuse(config)


def _refuse_tiny(config: "Config") -> None:
    """Refuse a tiny model of an unknown family or of reduced precision."""
    family = config.model.path.removeprefix(TINY_PREFIX)
    if not config.model.path.startswith(TINY_PREFIX):
        return
    if family not in TINY_FAMILIES:
        raise ConfigError(
            f'`model.path` names the tiny model family "{family}", which there is not.',
            hint=nearest_hint(family, TINY_FAMILIES, "families"),
        )
    if config.model.dtype != "float32":
        raise ConfigError(
            f'a tiny model needs `model.dtype` "float32", got "{config.model.dtype}".',
            hint="give --model.dtype float32.",
        )


def _refuse_rounding(config: "Config") -> None:
    """Refuse to train bfloat16 weights themselves: steps of this size are mostly rounded away."""
    trained = {"model.finetuning": config.model.finetuning}
    if config.sft.num_steps:
        trained["sft.finetuning"] = config.sft.finetuning
    for field, kind in trained.items():
        if kind == "full" and config.model.dtype == "bfloat16":
            raise ConfigError(
                f'`{field}` "full" would train bfloat16 weights, which round small steps away.',
                hint=f'use model.dtype "float32", or {field} "lora" (adapters are float32).',
            )


def _refuse_critic(config: "Config") -> None:
    """Refuse a critic with adapters of its own where there can be none."""
    if config.critic.trunk != "own_adapter":
        return
    if config.model.finetuning == "full":
        raise ConfigError(
            '`critic.trunk` "own_adapter" needs adapters, but `model.finetuning` is "full".',
            hint='use critic.trunk "frozen", or model.finetuning "lora".',
        )
    if config.model.gradient_checkpointing:
        raise ConfigError(
            '`critic.trunk` "own_adapter" cannot be combined with `model.gradient_checkpointing`:'
            " the recomputed forward pass would run under the wrong adapter.",
            hint='use critic.trunk "frozen", or switch gradient checkpointing off.',
        )


def _refuse_schedule(config: "Config") -> None:
    """Refuse a minibatch larger than an update, and a schedule for a teacher that never moves."""
    if config.ppo.minibatch_size > config.rollout.turns_per_update:
        raise ConfigError(
            "`ppo.minibatch_size` must not exceed `rollout.turns_per_update`, got"
            f" {config.ppo.minibatch_size} and {config.rollout.turns_per_update}.",
            hint="an update cannot take a step on more turns than it has: lower the first.",
        )
    if config.merge.freeze_after is not None and config.guidance.teacher == "static":
        raise ConfigError(
            "`merge.freeze_after` has no effect on a static teacher.",
            hint='use guidance.teacher "merged", or leave merge.freeze_after out.',
        )


def _refuse_merge(config: "Config") -> None:
    """Refuse two rules for what old checkpoints weigh, and adapters where there are none."""
    merge = config.merge
    if merge.window is not None and merge.weights == "ema":
        raise ConfigError(
            f'`merge.window` {merge.window} and `merge.weights` "ema" exclude each other.',
            hint="choose the last checkpoints, or all of them with fading weights.",
        )
    if merge.lora_mode == "replay" and config.model.finetuning == "full":
        raise ConfigError(
            '`merge.lora_mode` "replay" keeps adapters, but `model.finetuning` is "full".',
            hint='use merge.lora_mode "auto", or model.finetuning "lora".',
        )
    if merge.lora_space == "factors" and (
        config.model.finetuning == "full" or merge.lora_mode == "accumulate"
    ):
        raise ConfigError(
            '`merge.lora_space` "factors" merges kept adapters, but `model.finetuning` is'
            f' "{config.model.finetuning}" and `merge.lora_mode` "{merge.lora_mode}".',
            hint='use model.finetuning "lora" and merge.lora_mode "auto" or "replay".',
        )
    if merge.lag and (merge.lora_space == "factors" or merge.lora_mode == "replay"):
        raise ConfigError(
            f"`merge.lag` {merge.lag} keeps dense changes waiting; kept adapters have none.",
            hint='use merge.lora_mode "auto" and merge.lora_space "change", or lag 0.',
        )


def _refuse_guidance(config: "Config") -> None:
    """Refuse a corrector that is asked for anything but thoughts, and what a kind would ignore."""
    guidance = config.guidance
    if guidance.teacher == "corrector" and guidance.kind != "sft":
        raise ConfigError(
            f'`guidance.teacher` "corrector" writes thoughts, it gives no {guidance.kind}.',
            hint='use guidance.kind "sft" (GTR), or a teacher with weights.',
        )
    for field, kinds in IGNORED_GUIDANCE.items():
        value = getattr(guidance, field)
        if guidance.kind in kinds and value != type(guidance).model_fields[field].default:
            other = ", or set imitation.coef" if field == "coef" else ""
            raise ConfigError(
                f'`guidance.{field}` {value} has no effect on guidance of kind "{guidance.kind}".',
                hint=f'use guidance.kind "kl", or leave guidance.{field} out{other}.',
            )


def _refuse_guard(config: "Config") -> None:
    """Refuse a reset to nobody, to a control that cannot play, or of kept adapters."""
    if config.guard.action != "reset_to_teacher":
        return
    teacher, merge = config.guidance.teacher, config.merge
    if teacher not in ("merged", "previous"):
        raise ConfigError(
            f'`guard.action` "reset_to_teacher" needs a merged teacher, not a {teacher} one.',
            hint='use guidance.teacher "merged" (guidance.kind may be "none").',
        )
    if merge.lora_mode == "replay" or merge.lora_space == "factors":
        raise ConfigError(
            '`guard.action` "reset_to_teacher" leaves changes that are no adapters, which'
            f' `merge.lora_mode` "{merge.lora_mode}" with `merge.lora_space` "{merge.lora_space}"'
            " cannot keep.",
            hint='use merge.lora_mode "auto" and merge.lora_space "change".',
        )


def _refuse_corrector(config: "Config") -> None:
    """Refuse a corrector without an address or a solution to repeat, and a vain limit."""
    corrector, asked = config.corrector, config.guidance.teacher == "corrector"
    refuse_address("corrector.url", corrector.url, SCRIPTED_CORRECTOR)
    if asked and corrector.url == SCRIPTED_CORRECTOR and not corrector.tell_solution:
        raise ConfigError(
            f'`corrector.url` "{SCRIPTED_CORRECTOR}" repeats the solution, but'
            " `corrector.tell_solution` is off.",
            hint="switch it on, or give the URL of a model that can judge by itself.",
        )
    has_price = (
        corrector.price_per_million_input_tokens or corrector.price_per_million_output_tokens
    )
    if corrector.max_cost is not None and not has_price:
        raise ConfigError(
            f"`corrector.max_cost` {corrector.max_cost:g} limits nothing: both prices are 0.",
            hint="give corrector.price_per_million_input_tokens and …_output_tokens.",
        )


def _refuse_objective(config: "Config") -> None:
    """Refuse an objective without anything to learn from, and guidance that it would ignore."""
    objective, kind = config.ppo.objective, config.guidance.kind
    if objective == "none" and kind != "sft":
        raise ConfigError(
            f'`ppo.objective` "none" learns from a teacher\'s thoughts alone, but `guidance.kind`'
            f' is "{kind}".',
            hint='use guidance.kind "sft".',
        )
    if objective == "rejection" and kind not in ("none", "sft"):
        raise ConfigError(
            f'`ppo.objective` "rejection" has no advantages that guidance of kind "{kind}" could'
            " change.",
            hint='use guidance.kind "none" or "sft", or ppo.objective "ppo".',
        )
