import numpy as np
import pytest

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.engine import Household
from gtr_turbo.envs.household.expert import right_steps, wrong_steps
from gtr_turbo.envs.household.planner import Step
from tests.envs.household.houses import deal, kitchen


def wins(house: Household, steps: tuple[Step, ...]) -> bool:
    state, won = house.start, False
    for step in steps:
        assert step.action in house.admissible(state)
        state = house.apply(state, step.action)
        won = won or house.won(state)
    return won


@pytest.mark.parametrize("expert", ["planner", "search"])
@pytest.mark.parametrize("task_type", tables.TASK_TYPES)
def test_mistakes_do_something_and_fail(task_type: str, expert: str) -> None:
    for seed in range(2):
        house = deal(seed, task_types=(task_type,), max_receptacles=5, num_objects=6)
        generator = np.random.default_rng(seed)
        assert wins(house, right_steps(house, [house.start], expert, 50))
        steps = wrong_steps(house, [house.start], expert, 50, generator)
        assert steps
        assert not wins(house, steps)


def test_mistakes_differ_from_draw_to_draw() -> None:
    house = kitchen(tables.HEAT_AND_PLACE, "mug", "countertop", {"mug 1": "cabinet 1"})
    drawn = {
        wrong_steps(house, [house.start], "planner", 50, np.random.default_rng(seed))
        for seed in range(10)
    }
    assert len(drawn) > 1


def test_a_search_that_would_be_late_gives_way_to_the_plan() -> None:
    house = kitchen(places={"mug 1": "sinkbasin 1"})
    assert len(right_steps(house, [house.start], "search", 50)) == 10
    assert len(right_steps(house, [house.start], "search", 6)) == 5
    assert right_steps(house, [house.start], "search", 4) == ()
    assert right_steps(house, [house.start], "planner", 4) == ()
