from typing import Any

import pytest

from gtr_turbo.core.config import parse_config
from gtr_turbo.errors import ConfigError

FULL = {"model": {"finetuning": "full", "dtype": "float32"}}
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (
        {"merge": {"window": 3, "weights": "ema"}},
        '`merge.window` 3 and `merge.weights` "ema" exclude each other.',
        "fading weights",
    ),
    (
        {"merge": {"lora_mode": "replay"}} | FULL,
        '`merge.lora_mode` "replay" keeps adapters, but `model.finetuning` is "full".',
        'merge.lora_mode "auto"',
    ),
    (
        {"merge": {"freeze_after": 1}, "guidance": {"teacher": "static"}},
        "`merge.freeze_after` has no effect on a static teacher.",
        "guidance.teacher",
    ),
    (
        {
            "guidance": {"kind": "sft", "teacher": "corrector"},
            "corrector": {"tell_solution": False},
        },
        '`corrector.url` "scripted" repeats the solution, but `corrector.tell_solution` is off.',
        "give the URL of a model",
    ),
    (
        {"corrector": {"max_cost": 5}},
        "`corrector.max_cost` 5 limits nothing: both prices are 0.",
        "corrector.price_per_million_input_tokens",
    ),
    (
        {"ppo": {"minibatch_size": 2048}},
        "`ppo.minibatch_size` must not exceed `rollout.turns_per_update`, got 2048 and 1024.",
        "lower the first",
    ),
    (
        {"critic": {"trunk": "own_adapter"}} | FULL,
        '`critic.trunk` "own_adapter" needs adapters, but `model.finetuning` is "full".',
        "critic.trunk",
    ),
    (
        {"model": {"finetuning": "full"}},
        '`model.finetuning` "full" would train bfloat16 weights, which round small steps away.',
        "float32",
    ),
    (
        {"model": {"path": "tiny:qwen2_5_vl"}},
        'a tiny model needs `model.dtype` "float32", got "bfloat16".',
        "float32",
    ),
    *(
        (
            {"guard": {"action": "reset_to_teacher"}, "guidance": {"teacher": teacher}},
            f'`guard.action` "reset_to_teacher" needs a merged teacher, not a {teacher} one.',
            "may be",
        )
        for teacher in ("static", "shuffled", "random")
    ),
    *(
        (
            {"guard": {"action": "reset_to_teacher"}, "merge": merge},
            '`guard.action` "reset_to_teacher" leaves changes that are no adapters, which'
            f' `merge.lora_mode` "{mode}" with `merge.lora_space` "{space}" cannot keep.',
            'merge.lora_mode "auto"',
        )
        for merge, mode, space in (
            ({"lora_mode": "replay"}, "replay", "change"),
            ({"lora_space": "factors"}, "auto", "factors"),
        )
    ),
    *(
        (
            {"guidance": {"kind": kind, field: value}},
            f'`guidance.{field}` {value} has no effect on guidance of kind "{kind}".',
            f"leave guidance.{field} out",
        )
        for field, value, kinds in (
            ("tokens", "action", ("sft", "constant")),
            ("pictures", "blank", ("sft", "constant")),
            ("token_cap", None, ("sft", "constant")),
            ("estimator", "k1", ("sft", "constant", "distillation")),
            ("invalid_format_kl", 100.0, ("sft", "constant", "distillation")),
            ("coef", 5.0, ("sft",)),
        )
        for kind in kinds
    ),
]


@pytest.mark.parametrize(("values", "message", "hint"), REFUSED)
def test_what_cannot_work_is_refused_with_a_hint(
    values: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(values)
    assert caught.value.message == message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    "values",
    [
        {"merge": {"window": 3}},
        {"merge": {}, "guidance": {"kind": "constant", "coef": 5.0}},
        {"merge": {"weights": "ema"}},
        {"merge": {"lora_mode": "replay"}},
        {"merge": {"lora_mode": "accumulate"}} | FULL,
    ],
)
def test_what_can_work_is_taken(values: dict[str, Any]) -> None:
    assert parse_config(values).merge.model_dump().items() >= values["merge"].items()
