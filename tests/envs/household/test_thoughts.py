import pytest

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.engine import Household
from gtr_turbo.envs.household.expert import REST, right_steps
from gtr_turbo.envs.household.sight import see
from gtr_turbo.envs.household.thoughts import write_thoughts
from tests.envs.household.houses import deal, kitchen


def thoughts(house: Household, *, compact: bool) -> list[str]:
    state, said = house.start, list[str]()
    for step in right_steps(house, [state], "search", 50):
        said.append(write_thoughts(see(house, state, ""), step, compact=compact))
        state = house.apply(state, step.action)
    return said


def test_few_words() -> None:
    house = kitchen(tables.HEAT_AND_PLACE, places={"mug 1": "countertop 1"})
    assert thoughts(house, compact=True) == [
        "find mug, try cabinet 1",
        "cabinet 1 closed, open",
        "no mug, try cabinet 2",
        "cabinet 2 closed, open",
        "no mug, try countertop 1",
        "mug 1 here, take",
        "have mug 1, to microwave 1",
        "have mug 1, heat",
        "have hot mug 1, to fridge 1",
        "fridge 1 closed, open",
        "have hot mug 1, put",
    ]


def test_a_sentence_for_what_and_one_for_why() -> None:
    house = kitchen(places={"mug 1": "countertop 1"})
    said = thoughts(house, compact=False)
    assert said[0] == (
        "I am in the middle of the room. My hand is empty. "
        "I still look for mug, so I go to cabinet 1."
    )
    assert said[-1] == (
        "I am at fridge 1, which is open and holds nothing. I hold mug 1. "
        "Mug 1 is ready to be put away, so I put it in or on fridge 1."
    )


@pytest.mark.parametrize("compact", [True, False])
def test_every_step_has_its_thoughts(compact: bool) -> None:
    for task_type in tables.TASK_TYPES:
        for seed in range(2):
            said = thoughts(deal(seed, task_types=(task_type,)), compact=compact)
            assert all(said)
            assert "{" not in "".join(said)


def test_at_rest() -> None:
    house = kitchen()
    assert write_thoughts(see(house, house.start, ""), REST, compact=True) == "done"
