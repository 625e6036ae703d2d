from typing import Any

from gtr_turbo.core.config import Config, flatten, parse_config
from gtr_turbo.core.fields import FieldText, describe
from gtr_turbo.core.overrides import put
from gtr_turbo.core.plain_yaml import parse_yaml
from gtr_turbo.presets import make_preset


def by_key(config: Config) -> dict[str, FieldText]:
    return {field.key: field for section in describe(config) for field in section.fields}


def test_every_field_is_described_once() -> None:
    described = [field.key for section in describe(Config()) for field in section.fields]
    rules = {"task.rules", "task.evaluation_rules"}
    assert set(described) == flatten(Config().model_dump()).keys() | rules
    assert len(described) == len(set(described))
    assert all(field.help for field in by_key(Config()).values())


def test_a_field_says_what_it_is_what_it_may_be_and_what_it_is_set_to() -> None:
    fields = by_key(parse_config({"guidance": {"estimator": "k3"}}))
    found = fields["guidance.estimator"]
    assert found.value == "k3"
    assert found.choices == ("k1", "clip", "abs", "k3", "forward")
    assert found.help == "Per-token estimate of the reverse KL divergence (paper, Eq. 7)."
    assert fields["ppo.dropout"].choices == ("true", "false")
    assert fields["lora.targets"].choices == ("language_model", "vision_tower", "merger")
    assert fields["ppo.clip"].choices == ()


def test_values_read_as_the_yaml_that_sets_them() -> None:
    config = make_preset("ezpoints-tiny")
    values: dict[str, Any] = {}
    for key, field in by_key(config).items():
        put(values, key, parse_yaml(field.value, key))
    assert parse_config(values) == config


def test_sections_carry_their_own_help() -> None:
    found = {section.name: section.help for section in describe(Config())}
    assert list(found) == list(Config.model_fields)
    assert found["guidance"] == "What the teacher adds."
