"""The real `AlfredThorEnv` in its worker, over a stand-in for ai2thor: no Unity, no display."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from gtr_turbo.envs.alfworld.rules import AlfworldRules
from gtr_turbo.envs.alfworld.task import AlfworldTask
from gtr_turbo.envs.alfworld.thor import ThorWorld, thor_config, to_thor
from gtr_turbo.envs.household.tables import HEAT_AND_PLACE
from gtr_turbo.errors import TaskError
from tests.envs.alfworld.helpers import write_chore

FAKES = Path(__file__).parent / "fakes"
SCENE = {
    "floor_plan": "FloorPlan1",
    "scene_num": 1,
    "object_poses": [],
    "dirty_and_empty": False,
    "object_toggles": [],
    "init_action": {"action": "TeleportFull", "x": 0, "z": 0, "rotation": 0, "horizon": 0},
}
needs_alfworld = pytest.mark.skipif(
    find_spec("alfworld") is None, reason="the extra `alfworld` is not installed"
)


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAKES), *([here] if here else [])]))
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "cache"))
    plan = {"high_pddl": [], "low_actions": []}
    return write_chore(tmp_path / "train", HEAT_AND_PLACE, scene=SCENE, plan=plan)


@pytest.fixture
def world() -> Iterator[ThorWorld]:
    world = ThorWorld(size=100, timeout_seconds=300.0)
    yield world
    world.close()


@needs_alfworld
@pytest.mark.slow
def test_a_game_is_won_with_the_commands_that_are_listed(game: Path, world: ThorWorld) -> None:
    scene = world.start(game)
    assert "you see a cabinet 1" in scene.text
    assert "Your task" not in scene.text
    rates: list[float] = []
    for command in (
        "go to countertop 1",
        "take mug 1 from countertop 1",
        "go to microwave 1",
        "heat mug 1 with microwave 1",
        "go to shelf 1",
        "move mug 1 to shelf 1",
    ):
        assert command in scene.commands
        assert not scene.won
        scene = world.do(command)
        assert scene.text != "Nothing happens."
        rates.append(round(scene.goal_rate, 3))
    assert scene.won
    assert rates == [0, 0, 0, 0.333, 0.333, 1]
    assert scene.frame is not None
    assert scene.frame.shape == (100, 100, 3)
    assert scene.frame.dtype == np.uint8
    assert scene.frame[50, 50].tolist() == [200, 0, 0]  # red is the first channel


@needs_alfworld
@pytest.mark.slow
def test_a_listed_command_may_do_nothing_and_the_limit_is_ours(
    game: Path, world: ThorWorld
) -> None:
    scene = world.start(game)
    scene = world.do("go to fridge 1")
    scene = world.do("close fridge 1")
    assert "open fridge 1" in scene.commands
    for _ in range(60):
        scene = world.do("look")
    assert "take potato 1 from fridge 1" not in scene.commands
    opened = world.do("open fridge 1")  # 63 steps on, where ALFWorld's own limit is 50
    assert "potato 1" in opened.text


@needs_alfworld
@pytest.mark.slow
def test_the_task_plays_in_thor(game: Path, world: ThorWorld) -> None:
    rules = AlfworldRules(data_path=game.parents[1], split="all", world="thor", max_steps=3)
    task = AlfworldTask(rules, 0, world=world)
    task.reset(0)
    assert task.observation.picture.shape == (100, 100, 3)
    assert "Your task: put a hot mug in shelf." in task.observation.prompt
    assert task.step(task.write_action("go to countertop 1")).legal
    saved = task.state()
    result = task.step(task.write_action("take mug 1 from countertop 1"))
    task.restore(saved)
    again = task.step(task.write_action("take mug 1 from countertop 1"))
    assert again.observation.state_key == result.observation.state_key
    assert np.array_equal(again.observation.picture, result.observation.picture)
    assert task.step("").truncated
    with pytest.raises(TaskError, match=r"(?s)no expert in THOR.*world: text"):
        world.plan()


def test_what_the_worker_says_at_its_end_is_repeated(tmp_path: Path, world: ThorWorld) -> None:
    with pytest.raises(TaskError, match=r"(?s)its process has ended.*Error.*DISPLAY"):
        world.start(tmp_path)
    with pytest.raises(TaskError, match="THOR is not running"):
        world.do("look")


def test_a_late_answer_is_an_error(tmp_path: Path) -> None:
    world = ThorWorld(timeout_seconds=0.0)
    with pytest.raises(TaskError, match="for 0 seconds"):
        world.start(tmp_path)
    world.close()


def test_placements_are_translated_and_nothing_else() -> None:
    assert to_thor("move soapbar 2 to toilet 1") == "put soapbar 2 in/on toilet 1"
    assert to_thor("take soapbar 2 from toilet 1") == "take soapbar 2 from toilet 1"
    assert thor_config(84)["env"]["thor"]["screen_width"] == 84
