from collections import deque

import pytest

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.commands import IDLE_VERBS
from gtr_turbo.envs.household.engine import Household, State
from gtr_turbo.envs.household.planner import make_plan
from tests.envs.household.houses import deal, kitchen, play

NUM_GAMES = 10


def replayed(house: Household, state: State) -> tuple[int, State]:
    """Return a plan's length and the state after it; each of its actions must be admissible."""
    plan = make_plan(house, state)
    assert plan is not None
    for step in plan:
        assert step.action in house.admissible(state)
        state = house.apply(state, step.action)
    return len(plan), state


def shortest(house: Household, state: State) -> int:
    """Return the length of a shortest plan, by breadth-first search over all states."""
    seen, queue = {state}, deque([(0, state)])
    while queue:
        length, state = queue.popleft()
        if house.won(state):
            return length
        for action in house.admissible(state):
            if action.verb in IDLE_VERBS:
                continue
            after = house.apply(state, action)
            if after not in seen:
                seen.add(after)
                queue.append((length + 1, after))
    raise AssertionError("no plan")


@pytest.mark.parametrize("task_type", tables.TASK_TYPES)
def test_every_game_is_solved_in_fifty_steps(task_type: str) -> None:
    for seed in range(NUM_GAMES):
        house = deal(seed, task_types=(task_type,))
        length, state = replayed(house, house.start)
        assert house.won(state)
        assert 0 < length <= 50


@pytest.mark.parametrize("task_type", tables.TASK_TYPES)
def test_no_plan_is_shorter(task_type: str) -> None:
    for seed in range(1):
        house = deal(seed, task_types=(task_type,), max_receptacles=3, num_objects=2)
        assert replayed(house, house.start)[0] == shortest(house, house.start)


@pytest.mark.parametrize(
    ("names", "together", "length"),
    [
        (("go to countertop 1", "take knife 1 from countertop 1"), (), 7),
        (("go to countertop 1", "take mug 2 from countertop 1"), (), 5),
        (("go to countertop 1", "take mug 2 from countertop 1"), ("countertop 1", "cabinet 1"), 5),
        (("go to fridge 1", "open fridge 1", "take apple 1 from fridge 1"), (), 8),
        (("go to cabinet 1", "open cabinet 1"), (), 6),
    ],
)
def test_plans_start_anywhere(
    names: tuple[str, ...], together: tuple[str, ...], length: int
) -> None:
    places = {"mug 2": "countertop 1", "apple 1": "fridge 1", "knife 1": "countertop 1"}
    house = kitchen(tables.HEAT_AND_PLACE, "mug", "cabinet", places, together=together)
    found, after = replayed(house, play(house, *names))
    assert house.won(after)
    assert found == length


def test_what_is_won_needs_nothing_and_what_is_lost_has_no_plan() -> None:
    house = kitchen(places={"mug 1": "fridge 1"})
    assert make_plan(house, house.start) == ()
    assert make_plan(kitchen(kind="plate"), house.start) is None
