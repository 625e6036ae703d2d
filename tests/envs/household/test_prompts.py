import pytest

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.games import Goal
from gtr_turbo.envs.household.prompts import describe_goal, preposition, write_prompt
from gtr_turbo.envs.household.rules import HouseholdRules

GOAL = Goal(task_type=tables.HEAT_AND_PLACE, object_kind="apple", receptacle_kind="diningtable")
LIGHT = Goal(task_type=tables.LOOK_IN_LIGHT, object_kind="cd", lamp_kind="desklamp")


@pytest.mark.parametrize(
    ("task_type", "full", "compact"),
    [
        (tables.PICK_AND_PLACE, "put an apple in a fridge", "put apple in fridge"),
        (tables.COOL_AND_PLACE, "put a cool apple in a fridge", "put cool apple in fridge"),
        (tables.CLEAN_AND_PLACE, "put a clean apple in a fridge", "put clean apple in fridge"),
        (
            tables.PICK_TWO,
            "find two objects of the kind apple and put both in one fridge",
            "put 2 apple in fridge",
        ),
    ],
)
def test_goals_in_words(task_type: str, full: str, compact: str) -> None:
    goal = Goal(task_type=task_type, object_kind="apple", receptacle_kind="fridge")
    assert describe_goal(goal, compact=False) == full
    assert describe_goal(goal, compact=True) == compact


def test_light_and_prepositions() -> None:
    assert describe_goal(LIGHT, compact=False) == "look at the cd in the light of the desklamp"
    assert describe_goal(LIGHT, compact=True) == "look at cd by desklamp"
    assert (preposition("shelf"), preposition("drawer")) == ("on", "in")


def test_the_compact_prompt() -> None:
    rules = HouseholdRules(prompt="compact", history=2)
    prompt = write_prompt(rules, GOAL, "", ("a", "b", "c"), ())
    assert prompt == "put hot apple on diningtable\ndone: b, c"
    assert write_prompt(rules, GOAL, "seen", (), ("look",)).split("\n")[1:] == [
        "seen",
        "done: ",
        "can: look",
    ]


def test_the_full_prompt_names_what_the_rules_want() -> None:
    prompt = write_prompt(HouseholdRules(), GOAL, "", ("go to fridge 1",), ("look", "help"))
    assert "put a hot apple on a diningtable" in prompt
    assert 'Actions that are admissible now: ["look", "help"]' in prompt
    assert "go to fridge 1" in prompt
    assert '"thoughts"' in prompt
    bare = write_prompt(HouseholdRules(history=0), GOAL, "", ("go to fridge 1",), ())
    assert "admissible now" not in bare
    assert "fridge" not in bare
