import json
from typing import Any

import numpy as np
import pytest

from gtr_turbo.core.turns import StepResult
from gtr_turbo.envs.check import LAWS, check_task
from gtr_turbo.envs.numberline.task import ENTRY, NumberLineTask, make_number_line
from gtr_turbo.errors import ConfigError, TaskError


def task_at(position: int, goal: int, **rules: Any) -> NumberLineTask:
    """Return a task in this state, put there through a snapshot."""
    task = make_number_line(rules, seed=0)
    task.reset()
    state = task.state()
    state["episode"] |= {"start": position, "position": position, "goal": goal}
    task.restore(state)
    return task


def play(task: NumberLineTask, actions: str) -> list[StepResult]:
    return [task.step(task.write_action(action)) for action in actions]


def rewards(results: list[StepResult]) -> list[float]:
    return [result.rewards["task"] for result in results]


def test_reaching_the_goal_ends_and_wins() -> None:
    task = task_at(1, 4)
    results = play(task, "+++")
    assert rewards(results) == [0, 0, 1]
    assert [result.success for result in results] == [False, False, True]
    assert [result.terminated for result in results] == [False, False, True]
    assert not any(result.truncated for result in results)
    with pytest.raises(TaskError, match="is over"):
        play(task, "+")


def test_detours_and_the_end_of_the_line_cost() -> None:
    task = task_at(1, 3)
    results = play(task, "--+")
    assert rewards(results) == [-1, -1, 0]
    assert all(result.legal for result in results)
    assert task.position == 1


def test_ten_steps_truncate_and_the_tenth_may_still_win() -> None:
    results = play(task_at(0, 5), "-" * 10)
    assert [result.truncated for result in results] == [False] * 9 + [True]
    assert not any(result.terminated for result in results)
    last = play(task_at(0, 5), "-----+++++")[-1]
    assert (last.terminated, last.truncated, last.success) == (True, False, True)


def test_an_unreadable_reply_moves_nothing_and_counts() -> None:
    task = task_at(0, 1, max_steps=2)
    results = [task.step("up"), task.step('{"action": "left"}')]
    assert rewards(results) == [-1, -1]
    assert not any(result.legal for result in results)
    assert task.position == 0
    assert [result.truncated for result in results] == [False, True]


def test_an_unreadable_reply_may_become_a_counted_random_action() -> None:
    positions = set()
    for seed in range(20):
        task = make_number_line({"unreadable_reply": "random_action", "max_position": 50}, seed=0)
        task.reset(seed)
        before = task.position
        result = task.step("gibberish")
        assert result.random_action
        assert not result.legal
        assert result.parsed.action is None
        positions.add(task.position - before)
    assert positions == {-1, 1}


def test_a_random_action_may_win() -> None:
    outcomes = set()
    for seed in range(20):
        task = make_number_line({"unreadable_reply": "random_action", "max_position": 1}, seed=0)
        task.reset(seed)
        result = task.step("")
        outcomes.add((result.rewards["task"], result.terminated, result.success))
    assert outcomes == {(1, True, True), (-1, False, False)}


@pytest.mark.parametrize("first", ["-", "x"])
def test_early_truncation_ends_at_the_first_penalty(first: str) -> None:
    result = play(task_at(2, 5, end_at_first_penalty=True), first)[0]
    assert (result.terminated, result.truncated, result.success) == (True, False, False)
    assert rewards([result]) == [-1]


def test_rewards_are_switches() -> None:
    rules = {"reward_success": 5, "reward_closer": 0.5, "reward_not_closer": -2}
    assert rewards(play(task_at(1, 3, **rules), "-+++")) == [-2, 0.5, 0.5, 5]
    assert rewards(play(task_at(1, 3, reward_illegal=-0.25), "x")) == [-0.25]


def test_both_actions_are_admissible_until_the_end() -> None:
    task = task_at(0, 1)
    assert task.admissible_actions == ("-", "+")
    play(task, "+")
    assert task.admissible_actions == ()


def test_solvable_looks_from_the_start() -> None:
    assert task_at(0, 5).solvable
    assert not task_at(0, 5, max_steps=4).solvable
    task = task_at(3, 5, max_steps=2)
    play(task, "-")
    assert task.solvable


def test_the_expert_takes_the_shortest_way() -> None:
    for seed in range(40):
        task = make_number_line({"max_position": 20}, seed=0)
        task.reset(seed)
        distance = abs(task.position - task.goal)
        trace = task.demonstrate(np.random.default_rng(0))
        assert len(trace) == distance
        assert task.position == task.goal
        for turn in trace:
            reply = json.loads(turn.reply)
            shown = f"{reply['current number']} to {reply['target number']}"
            assert f": {shown}: " in turn.observation.state_key


def test_the_expert_goes_on_from_where_it_finds_itself() -> None:
    task = task_at(2, 4)
    play(task, "-")
    assert len(task.demonstrate(np.random.default_rng(0))) == 3


def test_a_mistake_swaps_the_numbers_and_never_arrives() -> None:
    task = task_at(2, 4)
    trace = task.demonstrate(np.random.default_rng(0), mistake=True)
    replies = [json.loads(turn.reply) for turn in trace]
    assert [reply["current number"] for reply in replies] == ["4"] * 10
    assert [reply["target number"] for reply in replies] == ["2", "1"] + ["0"] * 8
    assert all(reply["action"] == "-" for reply in replies)
    assert task.position == 0
    with pytest.raises(TaskError, match="is over"):
        task.demonstrate(np.random.default_rng(0))


def test_the_entry_makes_the_task_from_its_defaults() -> None:
    rules = ENTRY.default_rules()
    assert json.loads(json.dumps(rules)) == rules
    task = ENTRY.make(rules, 0)
    assert task.task_id == "numberline-v0"
    task.reset()
    assert task.episode_kind == "numberline-v0"
    with pytest.raises(ConfigError, match='no rule named "max_positon"'):
        ENTRY.make({"max_positon": 9}, 0)
    with pytest.raises(ConfigError, match="must not be negative"):
        ENTRY.make({}, -1)


RULES: dict[str, dict[str, Any]] = {
    "tiny": {"picture": "compact", "prompt": "compact", "max_position": 9},
    "short": {"max_steps": 2},
}


@pytest.mark.parametrize("rules", list(RULES))
def test_every_law_holds(rules: str) -> None:
    report = check_task(lambda seed: make_number_line(RULES[rules], seed))
    assert report.laws == tuple(LAWS)
