from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gtr_turbo.envs.alfworld.rules import AlfworldRules
from gtr_turbo.envs.alfworld.task import ENTRY, AlfworldTask
from gtr_turbo.envs.check import LAWS, check_task
from gtr_turbo.envs.rules import read_rules
from gtr_turbo.errors import ConfigError, TaskError
from tests.envs.alfworld.helpers import SORT, TwoPlaces, write_chore

Make = Callable[..., AlfworldTask]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    write_chore(tmp_path, trial="trial_1")
    write_chore(tmp_path, trial="trial_2")

    def task(seed: int = 0, **rules: Any) -> AlfworldTask:
        given = {"data_path": tmp_path, "split": "all", **rules}
        return AlfworldTask(read_rules(AlfworldRules(), given), seed, world=TwoPlaces())

    return task


RULES: dict[str, Mapping[str, Any]] = {
    "paper": {"max_steps": 6},
    "tiny": {"max_steps": 5, "picture": "compact", "prompt": "compact"},
    "lineage": {
        "max_steps": 6,
        "picture": "compact",
        "reward": "lineage",
        "unreadable_reply": "random_action",
        "vocabulary": "0.3",
        "text_observation": True,
        "history": 2,
    },
    "short": {"max_steps": 3, "labels": False, "list_admissible": False},
}


@pytest.mark.parametrize("rules", list(RULES))
def test_every_law_is_kept(rules: str, make: Make) -> None:
    report = check_task(lambda seed: make(seed, **RULES[rules]))
    assert report.laws == tuple(LAWS)
    assert report.task_id == "alfworld-v0"
    assert report.num_solvable == (0 if rules == "short" else 6)


def play(task: AlfworldTask, *actions: str) -> list[float]:
    return [task.step(task.write_action(action)).rewards["task"] for action in actions]


WAY = ["go to desk 1", "take mug 1 from desk 1", "go to shelf 1", "move mug 1 to shelf 1"]


def test_the_paper_pays_for_the_goal_and_once_for_each_condition(make: Make) -> None:
    task = make()
    task.reset(0)
    assert play(task, "go to desk 1", "fly away", "open shelf 1", *WAY[1:]) == [
        0.0, -1.0, -1.0, 0.0, 0.0, 51.0,
    ]  # fmt: skip


def test_the_lineage_pays_the_level_at_every_step(make: Make) -> None:
    task = make(reward="lineage", reward_subgoal=2.0)
    task.reset(0)
    assert play(task, *WAY) == [0.0, 0.0, 0.0, 52.0]


def test_steps_are_legal_when_they_are_listed(make: Make) -> None:
    task = make()
    task.reset(0)
    assert task.episode_kind == SORT
    for action in task.admissible_actions:
        task.reset(0)
        assert task.step(task.write_action(action)).legal
    task.reset(0)
    result = task.step(task.write_action("take mug 1 from shelf 1"))
    assert (result.parsed.action, result.legal) == ("take mug 1 from shelf 1", False)
    assert result.parsed.valid_format


def test_old_words_are_shown_and_understood(make: Make) -> None:
    task = make(vocabulary="0.3")
    task.reset(0)
    play(task, *WAY[:3])
    assert "put mug 1 in/on shelf 1" in task.admissible_actions
    assert play(task, "put mug 1 in/on shelf 1") == [51.0]


def test_the_last_step_truncates(make: Make) -> None:
    task = make(max_steps=2)
    task.reset(0)
    first, last = (task.step(task.write_action("look")) for _ in range(2))
    assert (first.truncated, last.truncated, last.terminated) == (False, True, False)
    with pytest.raises(TaskError, match="takes no step"):
        task.step("")


def test_a_random_action_is_admissible_and_marked(make: Make) -> None:
    task = make(unreadable_reply="random_action")
    task.reset(0)
    result = task.step("no JSON")
    assert result.random_action
    assert (result.legal, result.rewards["task"]) == (False, -1.0)


def test_a_mistake_forgets_the_last_command(make: Make) -> None:
    task = make(max_steps=6)
    task.reset(0)
    trace = task.demonstrate(np.random.default_rng(0), mistake=True)
    assert len(trace) == 6
    assert WAY[2] in trace[2].reply
    assert all(WAY[3] not in turn.reply.partition('"action"')[2] for turn in trace)


def test_an_expert_helps_from_the_middle_of_an_episode(make: Make) -> None:
    task = make()
    task.reset(0)
    play(task, *WAY[:2])
    trace = task.demonstrate(np.random.default_rng(0))
    assert [turn.reply.rpartition('"action": ')[2] for turn in trace] == [
        f'"{command}"}}' for command in WAY[2:]
    ]


def test_the_seed_draws_the_game(make: Make) -> None:
    task = make()
    games = set()
    for seed in range(8):
        task.reset(seed)
        games.add(task.game.name)
    assert games == {"trial_1", "trial_2"}


def test_a_snapshot_of_another_games_data_is_refused(make: Make) -> None:
    task = make()
    task.reset(0)
    state = task.state()
    state["episode"] = state["episode"] | {"game": "../../etc"}
    with pytest.raises(TaskError, match=r"(?s)'../../etc' is not among the 2 games.*data_path"):
        task.restore(state)


def test_thor_has_no_compact_pictures(make: Make) -> None:
    with pytest.raises(ConfigError, match="compact"):
        make(world="thor", picture="compact")


def test_closing_reaches_the_world(make: Make) -> None:
    task = make()
    task.reset(0)
    task.close()
    assert task._world.at == "closed"  # pyright: ignore[reportAttributeAccessIssue]


def test_without_data_the_entry_says_where_to_get_it() -> None:
    assert ENTRY.default_rules()["max_steps"] == 50
    with pytest.raises(ConfigError, match="alfworld-download"):
        ENTRY.make({}, 0)
