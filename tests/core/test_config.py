from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from gtr_turbo.core.combinations import TINY_FAMILIES
from gtr_turbo.core.config import (
    MUTABLE_AT_RESUME,
    Config,
    config_hash,
    differences,
    flatten,
    parse_config,
    read_yaml,
    to_yaml,
)
from gtr_turbo.core.plain_yaml import parse_yaml
from gtr_turbo.errors import ConfigError
from gtr_turbo.policies.tiny import PATCH
from gtr_turbo.presets import PRESETS, make_preset

SECTIONS = {name: type(getattr(Config(), name)) for name in Config.model_fields}


def refused(values: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse_config(values)
    return caught.value


# ------------------------------------------------------------------------------------ unknown keys


def test_an_unknown_section_gets_its_nearest_neighbour() -> None:
    error = refused({"guidence": {}})
    assert error.message == "there is no configuration key `guidence`."
    assert str(error.hint).startswith('did you mean "guidance"? Known keys of the configuration: ')


@pytest.mark.parametrize("section", SECTIONS)
def test_an_unknown_key_of_each_section_gets_its_nearest_neighbour(section: str) -> None:
    key = next(iter(SECTIONS[section].model_fields))
    error = refused({section: {f"{key}x": 1}})
    assert error.message == f"there is no configuration key `{section}.{key}x`."
    assert str(error.hint).startswith(f'did you mean "{key}"? Known keys of `{section}`: ')


def test_an_unknown_key_without_neighbours_gets_the_list() -> None:
    assert str(refused({"run": {"zzzzz": 1}}).hint).startswith("Known keys of `run`: check_")


# ------------------------------------------------------------------------- impossible combinations

IMPOSSIBLE = [
    (
        {"rollout": {"turns_per_update": 100, "num_environments": 8}},
        "`rollout.turns_per_update` must be a multiple of `rollout.num_environments`,"
        " got 100 and 8.",
        "each environment plays the same number of turns per update.",
    ),
    (
        {"model": {"finetuning": "full"}},
        '`model.finetuning` "full" would train bfloat16 weights, which round small steps away.',
        'use model.dtype "float32", or model.finetuning "lora" (adapters are float32).',
    ),
    (
        {"sft": {"num_steps": 5}},
        '`sft.finetuning` "full" would train bfloat16 weights, which round small steps away.',
        'use model.dtype "float32", or sft.finetuning "lora" (adapters are float32).',
    ),
    (
        {"critic": {"trunk": "own_adapter"}, "model": {"finetuning": "full", "dtype": "float32"}},
        '`critic.trunk` "own_adapter" needs adapters, but `model.finetuning` is "full".',
        'use critic.trunk "frozen", or model.finetuning "lora".',
    ),
    (
        {"critic": {"trunk": "own_adapter"}, "model": {"gradient_checkpointing": True}},
        '`critic.trunk` "own_adapter" cannot be combined with `model.gradient_checkpointing`:'
        " the recomputed forward pass would run under the wrong adapter.",
        'use critic.trunk "frozen", or switch gradient checkpointing off.',
    ),
    (
        {"ppo": {"minibatch_size": 2048}},
        "`ppo.minibatch_size` must not exceed `rollout.turns_per_update`, got 2048 and 1024.",
        "an update cannot take a step on more turns than it has: lower the first.",
    ),
    (
        {"merge": {"freeze_after": 1}, "guidance": {"teacher": "static"}},
        "`merge.freeze_after` has no effect on a static teacher.",
        'use guidance.teacher "merged", or leave merge.freeze_after out.',
    ),
    (
        {"model": {"path": "tiny:qwen4"}},
        '`model.path` names the tiny model family "qwen4", which there is not.',
        "Known families: qwen2_5_vl, qwen3_vl.",
    ),
    (
        {"model": {"path": "tiny:qwen3_vl", "dtype": "bfloat16"}},
        'a tiny model needs `model.dtype` "float32", got "bfloat16".',
        "give --model.dtype float32.",
    ),
]


@pytest.mark.parametrize(("values", "message", "hint"), IMPOSSIBLE)
def test_impossible_combinations_say_why_and_what_to_do(
    values: dict[str, Any], message: str, hint: str
) -> None:
    error = refused(values)
    assert error.message == message
    assert error.hint is not None
    assert error.hint.endswith(hint)


@pytest.mark.parametrize(
    "values",
    [
        {"critic": {"trunk": "own_adapter"}},
        {"ppo": {"minibatch_size": 1024}},
        {"merge": {"freeze_after": 1}},
        {"model": {"path": "tiny:qwen3_vl", "dtype": "float32"}},
        {"model": {"path": "somewhere/tiny:x", "dtype": "bfloat16"}},
    ],
)
def test_their_possible_neighbours_are_accepted(values: dict[str, Any]) -> None:
    assert flatten(parse_config(values).model_dump()).items() >= flatten(values).items()


def test_the_tiny_families_are_those_that_can_be_built() -> None:
    assert set(TINY_FAMILIES) == set(PATCH)


# --------------------------------------------------------------------------------------- bad values


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("merge.density", 80, "`merge.density` must be less than or equal to 1, got 80."),
        ("merge.density", 0, "`merge.density` must be greater than 0, got 0."),
        ("guidance.into", "loss",
         "`guidance.into` must be 'reward', 'advantage' or 'return', got 'loss'."),
        ("ppo.clip", float("nan"), "`ppo.clip` must be a finite number, got nan."),
        ("ppo.gamma", float("inf"), "`ppo.gamma` must be a finite number, got inf."),
        ("format.invalid", float("-inf"), "`format.invalid` must be a finite number, got -inf."),
        ("guidance.invalid_format_kl", -1,
         "`guidance.invalid_format_kl` must be greater than or equal to 0, or 'mean', got -1."),
        ("guidance.invalid_format_kl", "median",
         "`guidance.invalid_format_kl` must be a valid number, unable to parse string as a number,"
         " or 'mean', got 'median'."),
        ("run.seed", -1, "`run.seed` must be greater than or equal to 0, got -1."),
        ("ppo.epochs", True, "`ppo.epochs` is no switch, got true."),
        ("model.path", False, "`model.path` is no switch, got false."),
        ("run.seed", 2**63, "`run.seed` must fit into 64 bits, got a larger number."),
        ("critic.hidden_sizes", [8, 0],
         "`critic.hidden_sizes.1` must be greater than or equal to 1, got 0."),
        ("lora.targets", [],
         "`lora.targets` Tuple should have at least 1 item after validation, not 0, got []."),
        ("task.rules", {"ranks": [1, float("nan")]},
         "`task.rules.ranks` must be a boolean, a finite number, a text, or a list of numbers or"
         " texts, got [1, nan]."),
    ],
)  # fmt: skip
def test_bad_values_are_named_with_what_is_allowed(key: str, value: Any, message: str) -> None:
    section, field = key.split(".")
    assert refused({section: {field: value}}).message == message


def test_every_finite_number_refuses_nan() -> None:
    numbers = [key for key, value in flatten(Config().model_dump()).items()
               if isinstance(value, float) and not isinstance(value, bool)]  # fmt: skip
    assert len(numbers) > 20
    for key in numbers:
        section, field = key.split(".")
        error = refused({section: {field: float("nan")}})
        assert error.message == f"`{key}` must be a finite number, got nan."


def test_nothing_can_be_set_afterwards() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().run.seed = 1


# ------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_comes_back_from_its_yaml(name: str) -> None:
    config = make_preset(name)
    assert parse_config(parse_yaml(to_yaml(config), name)) == config


def test_the_yaml_of_a_file_comes_back(tmp_path: Any) -> None:
    config = parse_config({"model": {"path": "é: #1"}, "ppo": {"learning_rate": 1e-7}})
    (tmp_path / "x.yaml").write_text(to_yaml(config), encoding="utf-8")
    assert parse_config(read_yaml(tmp_path / "x.yaml")) == config


@pytest.mark.parametrize("section", SECTIONS)
def test_each_field_has_a_help_text_that_repeats_no_default(section: str) -> None:
    for name, field in SECTIONS[section].model_fields.items():
        assert field.description, f"{section}.{name}"
        assert "default:" not in field.description.lower()


# ---------------------------------------------------------------------------------------- resuming


PRICED: dict[str, Any] = {"corrector": {"price_per_million_output_tokens": 1.0}}
"""A limit of the cost needs a price."""


def test_mutable_fields_exist_and_change_neither_hash_nor_resume() -> None:
    base = parse_config(PRICED)
    flat = flatten(Config().model_dump())
    assert flat.keys() >= MUTABLE_AT_RESUME
    changed = parse_config(
        {
            "run": {
                "num_updates": 99,
                "keep_checkpoints": 2,
                "tensorboard": False,
                "saved_episodes": 0,
                "check_interval": 3,
            },
            "rollout": {
                "workers": "process",
                "num_workers": 2,
                "step_deadline": 1.0,
                "max_restarts": 0,
            },
            "corrector": {
                **PRICED["corrector"],
                "url": "http://localhost:1/v1",
                "api_key_variable": "OTHER_KEY",
                "num_parallel": 1,
                "deadline": 1.0,
                "max_attempts": 1,
                "max_requests_per_minute": 1.0,
                "max_cost": 1.0,
                "max_failures": 1,
                "pause": 1.0,
                "on_failure": "stop",
            },
        }
    )
    assert len(MUTABLE_AT_RESUME) == 19
    assert config_hash(changed) == config_hash(base)
    assert differences(base, changed) == []


def other_value(value: Any) -> Any:
    """Return another value of the same kind that its field may accept, as candidates."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value * 2, value / 2, value * 0.999]
    if value is None:
        return [3]
    if isinstance(value, str):
        return ["ema", "linear", "none", "static", "full", "lora", "shared", "return", "k1",
                "reply", "float32", "bfloat16", "eager", "process", "replay", "factors", "blank",
                "stop", "http://localhost/v1", "other"]  # fmt: skip
    return [{"max_steps": 3}] if isinstance(value, dict) else [value[:1]]


@pytest.mark.parametrize("key", sorted(flatten(Config().model_dump(mode="json")).keys()
                                       | {"task.rules", "task.evaluation_rules"}))  # fmt: skip
def test_every_other_field_changes_the_hash_and_is_named(key: str) -> None:
    section, field = key.split(".")
    # bfloat16, guidance by comparison and a corrector without a price exclude some values
    kind = "sft" if section == "ppo" else "kl"
    base = parse_config({"model": {"dtype": "float32"}, "guidance": {"kind": kind}} | PRICED)
    old = getattr(getattr(base, section), field)
    for value in other_value(old):
        try:
            values = base.model_dump(mode="json")
            values[section][field] = value
            changed = parse_config(values)
        except ConfigError:
            continue
        if changed != base:
            break
    else:
        pytest.fail(f"no other value found for {key}")
    lines = differences(base, changed)
    if key in MUTABLE_AT_RESUME:
        assert lines == []
        return
    assert config_hash(changed) != config_hash(base)
    assert len(lines) == 1
    assert lines[0].startswith(key)
    assert " → " in lines[0]


def test_a_difference_shows_both_values() -> None:
    changed = parse_config({"ppo": {"clip": 0.2}, "run": {"seed": 4}})
    assert differences(Config(), changed) == ["ppo.clip: 0.1 → 0.2", "run.seed: 0 → 4"]


# --------------------------------------------------------------------------------------- mutations

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["none", "kl", "auto", "1e-3", "tiny:", 2**70, -1, 0, "", b"x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
KEYS = [f"{section}.{key}" for section, kind in SECTIONS.items() for key in kind.model_fields]


def parsed_or_refused(values: dict[str, Any]) -> tuple[Config | None, str]:
    """Return the configuration, or the message of a ConfigError; all else comes through."""
    try:
        return parse_config(values), ""
    except ConfigError as error:
        return None, error.message


@settings(max_examples=300)
@given(
    st.dictionaries(
        st.sampled_from([*KEYS, *SECTIONS, "nonsense", "ppo.", "task.rules.x"]),
        JUNK,
        min_size=1,
        max_size=3,
    )
)
def test_no_mutation_does_anything_but_parse_or_be_refused(changes: dict[str, Any]) -> None:
    values = Config().model_dump(mode="json")
    for key, value in changes.items():
        section, dot, field = key.partition(".")
        if dot and isinstance(values[section], dict):
            values[section][field] = value
        else:
            values[section] = value
    config, message = parsed_or_refused(values)
    assert len(message) < 1_000
    if config is not None:
        assert parse_config(config.model_dump(mode="json")) == config


@settings(max_examples=40)
@given(st.data())
def test_no_damage_to_the_text_does_anything_but_parse_or_be_refused(data: st.DataObject) -> None:
    text = to_yaml(Config())
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 20))
    junk = data.draw(st.text(max_size=6) | st.sampled_from(["&a ", "*a", "!!int x", "? ", "- {"]))
    with suppress(ConfigError):
        values = parse_yaml(text[:start] + junk + text[start + length :], "the text")
        config, message = parsed_or_refused(values if isinstance(values, dict) else {})
        assert (config is None) == bool(message)


def test_sections_are_models_that_refuse_unknown_keys() -> None:
    for section in SECTIONS.values():
        assert issubclass(section, BaseModel)
        assert section.model_config.get("extra") == "forbid"
        assert section.model_config.get("frozen") is True
