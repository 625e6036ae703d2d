import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gtr_turbo.envs.alfworld.extra import load
from gtr_turbo.envs.alfworld.files import GAME_FILE, find_games
from gtr_turbo.envs.alfworld.games import mangle, write_game, write_problem
from gtr_turbo.envs.household.games import Dealer
from gtr_turbo.envs.household.rules import HouseholdRules
from gtr_turbo.envs.household.tables import HEAT_AND_PLACE, TASK_TYPES
from gtr_turbo.errors import TaskError

GAME = Dealer(HouseholdRules(task_types=(HEAT_AND_PLACE,), max_receptacles=5, num_objects=4)).deal(
    np.random.default_rng(0)
)


def test_a_problem_names_what_the_domain_needs() -> None:
    problem = write_problem(GAME, "(:goal (and))\n)")
    for kind in ("SinkBasin", "Microwave", "Fridge"):
        assert f"{kind}Type - rtype".lower() in problem.lower()
    for kind in ("Knife", "ButterKnife"):
        assert f"{kind}Type - otype".lower() in problem.lower()
    assert problem.count("(") == problem.count(")")
    assert "(atLocation agent1 loc_bar_0)" in problem
    assert "loc_bar_0)" not in problem.split("(atLocation agent1 loc_bar_0)")[1]
    assert problem.count("(receptacleAtLocation ") == len(GAME.receptacles)
    assert problem.count("(inReceptacle ") == len(GAME.items)


def test_states_at_the_start_are_told() -> None:
    item = replace(GAME.items[0], is_hot=True, has_location=True, is_sliced=True)
    problem = write_problem(replace(GAME, items=(item, *GAME.items[1:])), ")")
    for predicate in ("isHot", "isSliced", "objectAtLocation"):
        assert problem.count(f"({predicate} {mangle(item.name)}") == 1


@pytest.mark.parametrize("name", ["mug", "mug 0", "mug 1000", "Mug-1 1", "mug x", " 1"])
def test_names_that_alfworld_can_not_have_are_refused(name: str) -> None:
    with pytest.raises(TaskError, match="can't have a thing named"):
        mangle(name)


def test_a_gap_in_the_numbers_is_refused() -> None:
    item = replace(GAME.items[0], name=f"{GAME.items[0].kind} 7")
    with pytest.raises(TaskError, match=r"(?s)not numbered from 1 on.*without a gap"):
        write_problem(replace(GAME, items=(item,)), ")")


def test_alfworld_accepts_what_is_written(tmp_path: Path) -> None:
    pytest.importorskip("alfworld", reason="the extra `alfworld` is not installed")
    path = write_game(GAME, tmp_path / "train", trial="trial_1")
    assert path.parent.name.startswith(f"{HEAT_AND_PLACE}-")
    assert list(find_games(tmp_path, "train", TASK_TYPES, text=True).values()) == [path]
    assert json.loads((path / GAME_FILE).read_text())["solvable"] is True
    module = load("alfworld.agents.environment.alfred_tw_env")
    config = {
        "env": {"goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6]},
        "dataset": {"data_path": str(tmp_path / "train"), "num_train_games": -1},
    }
    assert module.AlfredTWEnv(config, "train").game_files == [str(path / GAME_FILE)]
