from gtr_turbo.envs.gymnasium_task.prompts import MAX_CHARACTERS, told_mission, write_prompt
from gtr_turbo.envs.gymnasium_task.rules import GymnasiumRules

ACTIONS = ("left", "right")
STEPS = (("left", True), (None, False), ("right", False))


def test_the_long_prompt_says_it_all() -> None:
    rules = GymnasiumRules(instruction="Reach the end.", history=2)
    lines = write_prompt(rules, 7, STEPS, ACTIONS).splitlines()
    assert lines[0] == "Reach the end."
    assert lines[2] == 'Last actions: an unreadable reply, "right" (illegal).'
    assert lines[3] == 'Choose one action of: "left", "right".'


def test_the_compact_prompt_is_short() -> None:
    rules = GymnasiumRules(prompt="compact", instruction="Reach the end.")
    assert write_prompt(rules, 7, STEPS, ACTIONS) == "Reach the end."
    assert write_prompt(GymnasiumRules(prompt="compact"), 7, (), ACTIONS) != ""


def test_a_mission_goes_first_and_nothing_in_it_is_filled_in() -> None:
    rules = GymnasiumRules(prompt="{instruction} {text} {actions}", instruction="Be quick.")
    told = {"mission": "go to {actions}", "text": "{history}"}
    assert told_mission(told) == "Go to {actions}."
    assert write_prompt(rules, told, (), ()) == "Go to {actions}. Be quick. {history} any text"


def test_what_is_told_is_bounded() -> None:
    told = "x" * (MAX_CHARACTERS + 5)
    prompt = write_prompt(GymnasiumRules(prompt="{text}"), told, (), ACTIONS)
    assert prompt == "x" * MAX_CHARACTERS
