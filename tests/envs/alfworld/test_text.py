import gc
import json
from pathlib import Path

import numpy as np
import pytest

from gtr_turbo.envs.alfworld.games import write_game
from gtr_turbo.envs.household.games import Dealer
from gtr_turbo.envs.household.rules import HouseholdRules
from gtr_turbo.envs.household.tables import HEAT_AND_PLACE, LOOK_IN_LIGHT
from gtr_turbo.errors import TaskError
from tests.envs.alfworld.helpers import write_chore

pytest.importorskip("alfworld", reason="the extra `alfworld` is not installed")
from gtr_turbo.envs.alfworld.task import ENTRY
from gtr_turbo.envs.alfworld.text import TextWorld


def deal(folder: Path, task_type: str, trial: str) -> Path:
    rules = HouseholdRules(task_types=(task_type,), max_receptacles=4, num_objects=3)
    return write_game(Dealer(rules).deal(np.random.default_rng(5)), folder, trial=trial)


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games")
    for task_type in (HEAT_AND_PLACE, LOOK_IN_LIGHT):
        deal(folder / "train", task_type, "trial_1")
    return folder


def test_the_plan_wins_and_the_rate_rises(games: Path) -> None:
    world = TextWorld()
    scene = world.start(next((games / "train").glob(f"{HEAT_AND_PLACE}*/trial_1")))
    assert scene.view is not None
    assert scene.view.goal.startswith("put a hot ")
    assert scene.view.here == ()
    assert "Your task" not in scene.text
    assert "Welcome" not in scene.text
    rates = [scene.goal_rate]
    for command in world.plan() or ():
        assert not scene.won
        assert command in scene.commands
        scene = world.do(command)
        rates.append(scene.goal_rate)
    assert scene.won
    assert rates == sorted(rates)
    assert (rates[0], rates[-1]) == (0.0, 1.0)
    assert world.plan() == ()


def test_what_is_not_admissible_changes_nothing(games: Path) -> None:
    world = TextWorld()
    before = world.start(next((games / "train").glob("*/trial_1")))
    after = world.do("go to the moon")
    assert after.text == "Nothing happens."
    assert (after.commands, after.view) == (before.commands, before.view)


def engine_of_a_world_that_is_gone() -> object:
    world = TextWorld()
    return world._engine


def test_an_engine_is_kept_for_the_next_world(games: Path) -> None:
    first = TextWorld()
    engine = engine_of_a_world_that_is_gone()
    gc.collect()
    second = TextWorld()
    assert second._engine is engine
    assert second._engine is not first._engine
    game = next((games / "train").glob("*/trial_1"))
    before = first.start(game)
    second.start(game)
    second.do(before.commands[0])
    assert first.do("nothing").commands == before.commands
    assert second.start(game) == before


def test_the_task_keeps_its_promises_in_textworld(games: Path) -> None:
    # The laws at full length are checked in test_task.py: each of their hundreds of episodes would
    # translate a problem anew here.
    rules = {"data_path": str(games), "task_types": [LOOK_IN_LIGHT], "max_steps": 6}
    before = repr(np.random.get_state())  # noqa: NPY002 - looked at, not used
    task, other = ENTRY.make(rules, 0), ENTRY.make(rules, 1)
    task.reset(3)
    assert task.solvable
    trace = task.demonstrate(np.random.default_rng(0))
    shown = other.reset(3)
    success = False
    for index, turn in enumerate(trace):
        assert turn.observation.prompt == shown.prompt
        assert np.array_equal(turn.observation.picture, shown.picture)
        if index == 2:
            task.restore(json.loads(json.dumps(other.state())))
            assert task.state() == other.state()
            assert task.observation.prompt == shown.prompt
            assert np.array_equal(task.observation.picture, shown.picture)
        result = other.step(turn.reply)
        shown = result.observation
        assert result.legal
        success = result.success
    assert success
    other.reset(3)
    trace = other.demonstrate(np.random.default_rng(0), mistake=True)
    assert len(trace) == 6
    assert repr(np.random.get_state()) == before  # noqa: NPY002 - looked at, not used


def test_what_is_no_game_is_named(tmp_path: Path) -> None:
    world = TextWorld()
    with pytest.raises(TaskError, match="no game is running"):
        world.do("look")
    with pytest.raises(TaskError, match=r"game\.tw-pddl is no game"):
        world.start(write_chore(tmp_path))
