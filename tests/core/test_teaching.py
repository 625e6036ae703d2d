"""Who guides with weights, and which parts of the configuration are about it."""

import pytest

from gtr_turbo.core.config import Config
from gtr_turbo.core.teaching import GuidanceConfig, MergeConfig


@pytest.mark.parametrize(
    ("kind", "teacher", "expected"),
    [
        ("kl", "merged", True),
        ("kl", "static", True),
        ("sft", "merged", True),
        ("distillation", "random", True),
        ("sft", "corrector", False),
        ("none", "merged", False),
        ("constant", "merged", False),
    ],
)
def test_a_teacher_has_weights_unless_it_is_nobody_or_behind_an_api(
    kind: str, teacher: str, expected: bool
) -> None:
    found = GuidanceConfig.model_validate({"kind": kind, "teacher": teacher})
    assert found.has_weights == expected


def test_defaults_are_the_papers() -> None:
    guidance, merge = GuidanceConfig(), MergeConfig()
    assert (guidance.kind, guidance.teacher, guidance.estimator) == ("kl", "merged", "clip")
    assert (guidance.tokens, guidance.into, guidance.coef) == ("thought", "advantage", 1.0)
    assert (merge.method, merge.weights, merge.density, merge.interval) == ("ties", "sma", 0.8, 1)


def test_the_configuration_holds_them() -> None:
    config = Config()
    assert config.guidance == GuidanceConfig()
    assert (config.imitation.temperature, config.imitation.max_temperature) == (0.2, 0.9)
    assert config.imitation.temperature_growth == 1.1
