from pathlib import Path

import pytest

from gtr_turbo.envs.alfworld.prompts import describe, write_prompt, write_thoughts
from gtr_turbo.envs.alfworld.rules import AlfworldRules
from gtr_turbo.envs.alfworld.world import Scene
from tests.envs.alfworld.helpers import TwoPlaces

GOAL = "put a mug in shelf"


@pytest.fixture
def scene() -> Scene:
    world = TwoPlaces()
    world.start(Path())
    return world.do("go to desk 1")


def test_the_full_prompt_has_task_history_and_choices(scene: Scene) -> None:
    prompt = write_prompt(AlfworldRules(), GOAL, scene, ["go to desk 1"])
    assert f"Your task: {GOAL}." in prompt
    assert "What you did so far: go to desk 1." in prompt
    assert '"take mug 1 from desk 1"' in prompt
    assert '"thoughts"' in prompt
    assert "You did:" not in prompt
    first = write_prompt(AlfworldRules(), GOAL, scene, [])
    assert "nothing yet" in first


def test_rules_choose_what_is_told(scene: Scene) -> None:
    rules = AlfworldRules(text_observation=True, history=1, list_admissible=False)
    prompt = write_prompt(rules, GOAL, scene, ["look", "go to desk 1"])
    assert "You did: go to desk 1." in prompt
    assert "so far: go to desk 1." in prompt
    assert "Choose one of" not in prompt
    none = write_prompt(AlfworldRules(history=0), GOAL, scene, ["look"])
    assert "so far" not in none


def test_the_compact_prompt_is_short(scene: Scene) -> None:
    rules = AlfworldRules(prompt="compact", list_admissible=False)
    assert write_prompt(rules, GOAL, scene, ["go to desk 1"]) == f"task: {GOAL}\ndone: go to desk 1"
    rules = AlfworldRules(prompt="compact", vocabulary="0.3", text_observation=True)
    assert "choose: go to shelf 1" in write_prompt(rules, GOAL, scene, [])


def test_thoughts_name_what_is_seen_and_why_the_action_follows(scene: Scene) -> None:
    plan = ["go to shelf 1", "move mug 1 to shelf 1"]
    full = write_thoughts(AlfworldRules(), GOAL, scene, plan, plan[0])
    assert full == (
        "I see the desk 1 with mug 1. The task is to put a mug in shelf. "
        "To move mug 1 to shelf 1, I first go to shelf 1."
    )
    last = write_thoughts(AlfworldRules(), GOAL, scene, plan[1:], plan[1])
    assert last.endswith("Now I can move mug 1 to shelf 1.")
    short = AlfworldRules(prompt="compact", vocabulary="0.3")
    assert write_thoughts(short, GOAL, scene, plan, plan[0]) == "need to put mug 1 in/on shelf 1"
    assert write_thoughts(short, GOAL, scene, [], "look") == "nothing left to do"


def test_what_is_seen_is_told_in_words(scene: Scene) -> None:
    world = TwoPlaces()
    assert describe(world.start(Path())) == "I stand in the middle of the room"
    world.do("go to desk 1")
    assert describe(world.do("take mug 1 from desk 1")).endswith("with nothing, and I hold mug 1")
    bare = Scene(text="A wall. ", commands=(), won=False, goal_rate=0.0)
    assert describe(bare) == "A wall"
