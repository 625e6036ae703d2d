import pytest

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.commands import write_command
from gtr_turbo.envs.household.engine import Household
from gtr_turbo.envs.household.search import Memory, search
from tests.envs.household.houses import deal, kitchen, play

NUM_GAMES = 5


def names_of(house: Household, *before: str) -> list[str]:
    """Return what the expert does after these commands."""
    states = [house.start]
    for name in before:
        states.append(play(house, name, state=states[-1]))
    return [write_command(step.action, "0.4") for step in search(house, states, 50)]


def test_the_likeliest_places_come_first_and_closed_ones_are_opened() -> None:
    house = kitchen(places={"mug 1": "sinkbasin 1"})
    assert names_of(house) == [
        *("go to cabinet 1", "open cabinet 1", "go to cabinet 2", "open cabinet 2"),
        *("go to countertop 1", "go to sinkbasin 1", "take mug 1 from sinkbasin 1"),
        *("go to fridge 1", "open fridge 1", "move mug 1 to fridge 1"),
    ]


def test_it_goes_on_from_what_was_done_before() -> None:
    house = kitchen(places={"mug 1": "sinkbasin 1"})
    assert names_of(house, "go to cabinet 1", "open cabinet 1")[0] == "go to cabinet 2"
    assert names_of(house, "go to cabinet 1")[0] == "open cabinet 1"


def test_a_wrong_thing_in_hand_is_put_down() -> None:
    house = kitchen(places={"mug 1": "cabinet 1", "knife 1": "countertop 1"})
    before = ("go to countertop 1", "take knife 1 from countertop 1")
    assert names_of(house, *before)[0] == "move knife 1 to countertop 1"


def test_what_it_has_not_seen_does_not_matter() -> None:
    here = kitchen(places={"mug 1": "sinkbasin 1", "apple 1": "fridge 1"})
    there = kitchen(places={"mug 1": "countertop 1", "apple 1": "countertop 1"})
    assert names_of(here)[:5] == names_of(there)[:5]


def test_the_second_object_is_remembered() -> None:
    places = {"mug 1": "cabinet 2", "mug 2": "cabinet 2"}
    house = kitchen(tables.PICK_TWO, "mug", "sinkbasin", places)
    found = names_of(house)
    assert found[-4:] == [
        *("go to cabinet 2", "take mug 2 from cabinet 2"),
        *("go to sinkbasin 1", "move mug 2 to sinkbasin 1"),
    ]


def test_memory_holds_what_was_in_sight() -> None:
    house, memory = kitchen(), Memory()
    memory.add(house, house.start)
    memory.add(house, play(house, "go to cabinet 1"))
    assert (memory.places, memory.known) == ({}, set())
    memory.add(house, play(house, "go to countertop 1"))
    assert memory.known == {0}
    seen = ("mug 2", "knife 1", "desklamp 1")
    assert memory.places == {house.item_index[name]: 0 for name in seen}


@pytest.mark.parametrize("task_type", tables.TASK_TYPES)
def test_it_solves_what_is_dealt(task_type: str) -> None:
    num_won = 0
    for seed in range(NUM_GAMES):
        house = deal(seed, task_types=(task_type,))
        state = house.start
        for step in search(house, [state], 50):
            assert step.action in house.admissible(state)
            state = house.apply(state, step.action)
        num_won += house.won(state)
    assert num_won == NUM_GAMES
