import pytest

from gtr_turbo.envs.alfworld.rules import AlfworldRules
from gtr_turbo.envs.household.rules import HouseholdRules
from gtr_turbo.envs.rules import read_rules
from gtr_turbo.errors import ConfigError

SHARED = (
    "task_types max_steps reward reward_success reward_subgoal reward_illegal vocabulary prompt "
    "unreadable_reply text_observation history list_admissible picture labels"
).split()


def test_rules_that_the_household_has_too_have_the_same_defaults() -> None:
    ours, theirs = AlfworldRules().model_dump(), HouseholdRules().model_dump()
    assert {name: ours[name] for name in SHARED} == {name: theirs[name] for name in SHARED}


@pytest.mark.parametrize(
    ("rules", "what"),
    [
        ({"task_types": []}, "the chores are pick_and_place_simple"),
        ({"task_types": ["dance"]}, "the chores are"),
        ({"max_steps": 0}, "max_steps"),
        ({"vocabulary": "0.5"}, "vocabulary"),
        ({"datapath": "x"}, "data_path"),
    ],
)
def test_bad_rules_are_refused(rules: dict[str, object], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        read_rules(AlfworldRules(), rules)
