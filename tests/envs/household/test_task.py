import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from gtr_turbo.core.turns import StepResult
from gtr_turbo.envs.check import check_task
from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.task import ENTRY, HouseholdTask, make_household_task
from gtr_turbo.envs.replies import Reason
from gtr_turbo.errors import ConfigError, TaskError
from tests.envs.household.houses import COMPACT, SMALL

TINY = COMPACT | {
    "task_types": [tables.PICK_AND_PLACE],
    "rooms": ["kitchen"],
    "receptacle_kinds": ["cabinet", "countertop", "fridge", "microwave", "sinkbasin"],
    "object_kinds": ["apple", "cup", "egg", "mug"],
    "max_steps": 12,
    "history": 4,
    "idle_commands": False,
    "early_truncation": True,
    "max_repeats": 3,
    "max_actions": 12,
    **SMALL,
}
HEAT = COMPACT | {"task_types": [tables.HEAT_AND_PLACE], **SMALL}


def task_with(seed: int = 0, **rules: Any) -> HouseholdTask:
    task = make_household_task(COMPACT | rules, seed=0)
    task.reset(seed)
    return task


def say(action: str) -> str:
    return json.dumps({"thoughts": "", "action": action})


def expert_replies(task: HouseholdTask) -> list[str]:
    twin = make_household_task(task.rules.model_dump(), seed=0)
    twin.restore(task.state())
    return [turn.reply for turn in twin.demonstrate(np.random.default_rng(0))]


def rewards(results: list[StepResult]) -> list[float]:
    return [result.rewards["task"] for result in results]


def test_the_laws_hold() -> None:
    report = check_task(lambda seed: make_household_task(TINY, seed))
    assert (report.task_id, report.num_solvable) == ("household-v0", 6)


def test_rewards_of_the_paper() -> None:
    """Heat: +1 for the first hot object, then 50 and +1 for it being in place; an illegal -1."""
    task = task_with(3, **HEAT, expert="planner")
    replies = expert_replies(task)
    illegal = task.step(say("go to attic 1"))
    assert (illegal.rewards["task"], illegal.legal) == (-1.0, False)
    results = [task.step(reply) for reply in replies]
    heats = [json.loads(reply)["action"].startswith("heat") for reply in replies]
    assert rewards(results) == [*(float(is_heat) for is_heat in heats[:-1]), 51.0]
    last = results[-1]
    assert (last.terminated, last.truncated, last.success) == (True, False, True)


def test_a_subgoal_is_paid_once() -> None:
    """Taking the object is half of the light goal; taking it again is nothing new."""
    task = task_with(3, task_types=[tables.LOOK_IN_LIGHT], expert="planner")
    actions = [json.loads(reply)["action"] for reply in expert_replies(task)]
    take = next(action for action in actions if action.startswith("take"))
    for action in actions[: actions.index(take)]:
        assert task.step(say(action)).rewards["task"] == 0.0
    back = take.replace("take", "move").replace("from", "to")
    again = [task.step(say(action)) for action in (take, back, take, take)]
    assert rewards(again) == [1.0, 0.0, 0.0, -1.0]


def test_rewards_of_the_lineages_code() -> None:
    """A third of the conditions holds at every step after heating; all of them at the end."""
    task = task_with(3, **HEAT, expert="planner", reward="lineage")
    replies = expert_replies(task)
    heat = next(i for i, reply in enumerate(replies) if '"heat' in reply)
    results = [task.step(reply) for reply in replies]
    expected = [0.0] * heat + [1 / 3] * (len(replies) - heat - 1) + [51.0]
    assert rewards(results) == pytest.approx(expected)
    task.reset(3)
    for reply in replies[: heat + 1]:
        task.step(reply)
    assert task.step("nonsense").rewards["task"] == pytest.approx(1 / 3 - 1)


def test_an_inadmissible_command_and_nonsense_change_nothing() -> None:
    task = task_with(1)
    before = task.household_state
    for reply, reason in (
        (say("open fridge 9"), None),
        (say("dance"), Reason.UNKNOWN_ACTION),
        ("", Reason.EMPTY),
    ):
        result = task.step(reply)
        assert (result.legal, result.parsed.reason, result.rewards["task"]) == (False, reason, -1.0)
        assert task.household_state == before
    assert task.observation.prompt.split("\n")[1] == "done: open fridge 9, (none), (none)"


def test_an_action_drawn_at_random_is_marked_and_illegal() -> None:
    task = task_with(1, unreadable_reply="random_action")
    results = [task.step(reply) for reply in ("", say("open fridge 9"))]
    assert [(r.legal, r.random_action) for r in results] == [(False, True)] * 2
    done = task.observation.prompt.split("\n")[1]
    assert "(none)" not in done
    assert "fridge 9" not in done


def test_early_truncation_ends_after_repeats_or_too_many_actions() -> None:
    task = task_with(1, early_truncation=True)
    results = [task.step(say("look")) for _ in range(5)]
    assert rewards(results) == [0, 0, 0, 0, -3]
    assert [result.terminated for result in results] == [False] * 4 + [True]
    task = task_with(1, early_truncation=True)
    actions = ("look", "inventory") * 20
    assert not any(task.step(say(action)).terminated for action in actions)
    last = task.step(say("look"))
    assert (last.rewards["task"], last.terminated, last.truncated) == (-3, True, False)


def test_without_it_an_episode_is_truncated_at_its_limit() -> None:
    task = task_with(1)
    results = [task.step(say("look")) for _ in range(50)]
    assert [result.truncated for result in results] == [False] * 49 + [True]
    assert not any(rewards(results))
    with pytest.raises(TaskError, match="over"):
        task.step(say("look"))


def test_matching_follows_the_rule() -> None:
    place = "go to " + task_with(1).house.game.receptacles[0].name
    assert task_with(1, matching="longest").step(say(f"I {place}!")).legal
    assert not task_with(1).step(say(f"I {place}!")).legal


def test_idle_commands_can_be_taken_away() -> None:
    task = task_with(1, idle_commands=False)
    assert "look" in task.admissible_actions
    assert not {"inventory", "help"} & set(task.admissible_actions)
    assert not task.step(say("inventory")).legal
    assert "help" in task_with(1).admissible_actions
    assert "help" not in task_with(1, vocabulary="0.3").admissible_actions


def test_the_old_vocabulary_is_played_through() -> None:
    task = task_with(2, task_types=[tables.PICK_AND_PLACE], vocabulary="0.3", **SMALL)
    replies = expert_replies(task)
    assert " in/on " in replies[-1]
    assert [task.step(reply) for reply in replies][-1].success


def test_the_kind_of_an_episode_is_its_sort_of_goal() -> None:
    task = make_household_task(COMPACT, seed=0)
    kinds = Counter(task.reset(seed) and task.episode_kind for seed in range(30))
    assert set(kinds) == set(tables.TASK_TYPES)


def test_the_text_is_left_out_unless_asked_for() -> None:
    assert "You are in the middle" not in task_with(1, prompt="full").observation.prompt
    text = task_with(1, prompt="full", text_observation=True).observation.prompt
    assert "You are in the middle" in text


def test_pictures_follow_their_rules() -> None:
    assert task_with(1, picture="room").observation.picture.shape == (300, 300, 3)
    named = task_with(1, picture="room").observation.picture
    bare = task_with(1, picture="room", labels=False).observation.picture
    assert not np.array_equal(named, bare)


def test_tiny_traces_are_short_and_mistakes_end_soon() -> None:
    for seed in range(5):
        task = make_household_task(TINY, seed=0)
        task.reset(seed)
        assert task.solvable
        right = expert_replies(task)
        assert len(right) <= 12
        wrong = task.demonstrate(np.random.default_rng(seed), mistake=True)
        looks = [json.loads(turn.reply)["action"] == "look" for turn in wrong]
        assert len(wrong) == 12 or looks[-4:] == [False, True, True, True]
        assert max(len(turn.observation.prompt) for turn in wrong) < 400


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_step"):
        ENTRY.make({"max_step": 3}, 0)
    with pytest.raises(ConfigError, match="heat"):
        ENTRY.make({"rooms": ["bedroom"]}, 0)
    assert json.loads(json.dumps(ENTRY.default_rules()))["max_steps"] == 50
