import numpy as np
import pytest

pytest.importorskip("alfworld", reason="the extra `alfworld` is not installed")
from gtr_turbo.envs.alfworld.layouts import layout_game, read_receptacles
from gtr_turbo.envs.household import tables
from gtr_turbo.errors import TaskError


def test_receptacles_share_poses() -> None:
    receptacles = read_receptacles(301, ["Drawer"])
    assert len(receptacles) == 16
    assert len({each.location for each in receptacles}) == 13
    assert {each.kind for each in receptacles if each.is_openable} == {"drawer"}
    assert [each.name for each in receptacles if each.kind == "bed"] == ["bed 1"]


@pytest.mark.parametrize(
    ("scene", "task_type"),
    [
        (10, tables.HEAT_AND_PLACE),
        (10, tables.COOL_AND_PLACE),
        (402, tables.CLEAN_AND_PLACE),
        (301, tables.LOOK_IN_LIGHT),
        (201, tables.PICK_TWO),
    ],
)
def test_a_game_is_dealt_by_its_generator_alone(scene: int, task_type: str) -> None:
    games = [layout_game(scene, task_type, np.random.default_rng(3)) for _ in range(2)]
    assert games[0] == games[1]
    goal = games[0].goal
    wanted = [item for item in games[0].items if item.kind == goal.object_kind]
    assert len(wanted) >= (2 if task_type == tables.PICK_TWO else 1)
    places = {each.name: each.kind for each in games[0].receptacles}
    assert all(places[item.place] != goal.receptacle_kind for item in wanted)


@pytest.mark.parametrize(("scene", "sort"), [(99, "scene 99"), (401, "FloorPlan401")])
def test_what_there_is_not_is_named(scene: int, sort: str) -> None:
    with pytest.raises(TaskError, match=sort):
        layout_game(scene, tables.HEAT_AND_PLACE, np.random.default_rng(0))
