"""Variants of a preset by name: the paper's arms, its ablations, and controls.

An arm is a handful of configuration fields on top of a preset. Each differs from its neighbour by
one field, so that a difference in the result has one cause.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from gtr_turbo.errors import UnknownNameError, nearest_hint

ROOT = "gtr-turbo-kl"
"""The arm that the others lead back to: the presets as they are."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One variant."""

    text: str
    """What it is, in one line."""
    overrides: Mapping[str, Any]
    """Dotted field → value, on top of a preset."""
    neighbour: str | None
    """The arm that it differs from by one field; None for the first one."""


def _arm(text: str, neighbour: str | None = ROOT, /, **fields: Any) -> Arm:
    """Return an arm; `fields` (with `__` for the dot) come on top of its neighbour's."""
    own = {key.replace("__", "."): value for key, value in fields.items()}
    below = {} if neighbour is None else ARMS[neighbour].overrides
    return Arm(text=text, overrides={**below, **own}, neighbour=neighbour)


ARMS: dict[str, Arm] = {}
"""Name → arm. What an arm leaves open is as in the preset."""

ARMS[ROOT] = _arm("GTR-Turbo (KL): reverse KL to the merged teacher, thought tokens.", None)

# ------------------------------------------------------------------------------------- main arms
ARMS.update(
    {
        "sft-only": _arm("The supervised start, without any update.", run__num_updates=0),
        "rl4vlm": _arm("Plain PPO without guidance (RL4VLM).", guidance__kind="none"),
        "gtr-turbo-sft": _arm(
            "GTR-Turbo (SFT): imitates thoughts that the merged teacher writes.",
            guidance__kind="sft",
        ),
        "distillation": _arm(
            "Each thought token's divergence from the teacher is its own advantage.",
            guidance__kind="distillation",
        ),
        "static": _arm(
            "KL to the start of the run, which never moves.", guidance__teacher="static"
        ),
    }
)
ARMS.update(
    {
        "rft": _arm(
            "Rejection sampling: imitates the agent's own solved episodes.",
            "rl4vlm",
            ppo__objective="rejection",
        ),
        "gtr": _arm(
            "GTR: a corrector rewrites the thoughts, the agent imitates them.",
            "gtr-turbo-sft",
            guidance__teacher="corrector",
        ),
        "thoughts-1": _arm(
            "GTR-Turbo (SFT) with one thought for each turn of a pass, as in GTR.",
            "gtr-turbo-sft",
            imitation__thoughts_per_turn=1.0,
        ),
    }
)

# ------------------------------------------------------------------------- how the teacher is asked
ARMS.update(
    {
        "estimator-k1": _arm("KL by k1: the log-ratio as it is.", guidance__estimator="k1"),
        "estimator-abs": _arm("KL by the log-ratio's magnitude.", guidance__estimator="abs"),
        "estimator-k3": _arm("KL by k3: unbiased and never negative.", guidance__estimator="k3"),
        "estimator-forward": _arm("Forward KL, teacher to agent.", guidance__estimator="forward"),
        "tokens-reply": _arm("Guides the whole reply.", guidance__tokens="reply"),
        "tokens-action": _arm("Guides the action alone.", guidance__tokens="action"),
        "malformed-mean": _arm(
            "Malformed replies pay the mean divergence.", guidance__invalid_format_kl="mean"
        ),
        "into-reward": _arm(
            "The penalty joins the reward, before GAE (Algorithm 2).", guidance__into="reward"
        ),
        "into-advantage": _arm(
            "The penalty acts on its own turn's advantage (Eq. 6).", guidance__into="advantage"
        ),
        "into-return": _arm(
            "The penalty moves advantage and value target (released code).", guidance__into="return"
        ),
        "beta-0.1": _arm("A tenth of the guidance.", guidance__coef=0.1),
        "beta-0.5": _arm("Half of the guidance.", guidance__coef=0.5),
        "beta-2": _arm("Twice the guidance.", guidance__coef=2.0),
        "lambda-0": _arm("The ratio leaves the thought out.", ppo__thought_weight=0.0),
        "lambda-0.2": _arm("The thought weighs 0.2 in the ratio.", ppo__thought_weight=0.2),
        "lambda-1": _arm("The thought weighs as much as the action.", ppo__thought_weight=1.0),
    }
)

# --------------------------------------------------------------------------- how the past is merged
ARMS.update(
    {
        "merge-linear": _arm("The plain mean in place of TIES.", merge__method="linear"),
        "density-0.2": _arm("TIES keeps a fifth of each change.", merge__density=0.2),
        "density-0.5": _arm("TIES keeps half of each change.", merge__density=0.5),
        "density-1": _arm("TIES trims nothing, and elects signs alone.", merge__density=1.0),
        "ema-0.5": _arm("Exponential weights, the newest counts 0.5.", merge__weights="ema"),
        "window-5": _arm("Merges the last five checkpoints alone.", merge__window=5),
        "lag-1": _arm("Leaves the newest checkpoint out of the merge.", merge__lag=1),
        "interval-2": _arm("A new teacher every 2 updates.", merge__interval=2),
        "interval-5": _arm("A new teacher every 5 updates.", merge__interval=5),
        "interval-10": _arm("A new teacher every 10 updates.", merge__interval=10),
        "lora": _arm("Adapters are trained, their true changes merged.", model__finetuning="lora"),
    }
)
ARMS.update(
    {
        "ema-0.1": _arm(
            "Exponential weights, the newest counts 0.1.", "ema-0.5", merge__ema_alpha=0.1
        ),
        "ema-0.9": _arm(
            "Exponential weights, the newest counts 0.9.", "ema-0.5", merge__ema_alpha=0.9
        ),
        "factor-space": _arm(
            "Control: merges the adapters' factors A and B apart.",
            "lora",
            merge__lora_space="factors",
        ),
    }
)

# --------------------------------------------------------------------------------------- controls
ARMS.update(
    {
        "frozen": _arm(
            "Control: the teacher stays as after the first merge.", merge__freeze_after=1
        ),
        "previous": _arm(
            "Control: the checkpoint before the last is the teacher.", guidance__teacher="previous"
        ),
        "shuffled": _arm(
            "Control: the merged change with its signs permuted.", guidance__teacher="shuffled"
        ),
        "random": _arm(
            "Control: noise as large as the merged change is the teacher.",
            guidance__teacher="random",
        ),
        "blind": _arm(
            "Control: agent and teacher are compared on blank pictures.", guidance__pictures="blank"
        ),
        "constant": _arm(
            "Control: one fixed negative advantage on all thoughts, no teacher.",
            guidance__kind="constant",
        ),
    }
)

# ------------------------------------------------------------------------------------------ guards
ARMS.update(
    {
        "guard-none": _arm("Nothing watches for a collapse.", guard__action="none"),
        "guard-reset": _arm(
            "At a collapse the agent takes the teacher's weights.", guard__action="reset_to_teacher"
        ),
        "rl4vlm-reset": _arm(
            "Plain PPO; at a collapse the agent takes the merge's weights.",
            "rl4vlm",
            guard__action="reset_to_teacher",
        ),
    }
)
ARMS.update(
    {
        "guard-reset-5": _arm(
            "The agent takes the teacher's weights every 5 updates.",
            "guard-reset",
            guard__interval=5,
        ),
        "rl4vlm-reset-5": _arm(
            "Plain PPO; the agent takes the merge's weights every 5 updates.",
            "rl4vlm-reset",
            guard__interval=5,
        ),
    }
)


def make_arm(name: str) -> Arm:
    """Return an arm. Raises UnknownNameError with the nearest name."""
    if name not in ARMS:
        raise UnknownNameError(
            f'there is no arm named "{name}".', hint=nearest_hint(name, ARMS, "arms")
        )
    return ARMS[name]
