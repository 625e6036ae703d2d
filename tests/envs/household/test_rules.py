import pytest

from gtr_turbo.envs.household.rules import HouseholdRules
from gtr_turbo.envs.rules import read_rules
from gtr_turbo.errors import ConfigError


def test_defaults_are_the_papers() -> None:
    rules = HouseholdRules()
    assert (rules.max_steps, rules.reward, rules.reward_success) == (50, "paper", 50.0)
    assert (rules.text_observation, rules.list_admissible) == (False, True)
    assert len(rules.task_types) == 6


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"task_types": ["cook"]}, "task types"),
        ({"task_types": []}, "task types"),
        ({"rooms": ["kitchen", "kitchen"]}, "each once"),
        ({"object_kinds": ["unicorn"]}, "kinds of objects"),
        ({"receptacle_kinds": ["abyss"]}, "kinds of receptacles"),
        ({"max_receptacles": 2}, "max_receptacles"),
        ({"vocabulary": "0.5"}, "vocabulary"),
        ({"max_step": 3}, "max_step"),
    ],
)
def test_bad_rules_are_refused(rules: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_rules(HouseholdRules(), rules)
