import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.commands import LOOK, Action, Verb
from gtr_turbo.envs.household.engine import IN_HAND, NOTHING, Household, State
from gtr_turbo.envs.household.games import Game, Goal, make_item
from gtr_turbo.errors import TaskError
from tests.envs.household.houses import KITCHEN, commands, deal, kitchen, play, receptacle

IDLE = {"look", "inventory", "help"}


def test_at_the_start_one_can_go_everywhere_and_look() -> None:
    house = kitchen()
    assert set(commands(house, house.start)) == IDLE | {f"go to {name}" for name in KITCHEN}


def test_a_closed_receptacle_hides_what_is_in_it() -> None:
    house = kitchen()
    closed = play(house, "go to cabinet 1")
    here = set(commands(house, closed))
    assert {"open cabinet 1", "examine cabinet 1"} <= here
    assert not any(name.startswith(("take", "close", "go to cabinet 1")) for name in here)
    opened = play(house, "open cabinet 1", state=closed)
    assert {"take mug 1 from cabinet 1", "close cabinet 1"} <= set(commands(house, opened))
    assert play(house, "close cabinet 1", state=opened) == closed


def test_the_hand_holds_one_thing_which_can_be_examined() -> None:
    house = kitchen()
    state = play(house, "go to countertop 1", "take mug 2 from countertop 1")
    here = set(commands(house, state))
    assert {"examine mug 2", "move mug 2 to countertop 1"} <= here
    assert not any(name.startswith("take") for name in here)
    assert "examine knife 1" not in here
    assert state.places[house.item_index["mug 2"]] == IN_HAND


def test_receptacles_of_one_location_are_reached_together() -> None:
    house = kitchen(together=("cabinet 1", "countertop 1"))
    state = play(house, "go to cabinet 1")
    here = set(commands(house, state))
    assert {"open cabinet 1", "take mug 2 from countertop 1"} <= here
    assert not {"go to cabinet 1", "go to countertop 1"} & here


def test_heating_cooling_and_cleaning_need_no_open_door() -> None:
    house = kitchen()
    state = play(house, "go to countertop 1", "take mug 2 from countertop 1", "go to microwave 1")
    mug = 1 << house.item_index["mug 2"]
    state = play(house, "heat mug 2 with microwave 1", state=state)
    assert (state.hot, state.cool) == (mug, 0)
    state = play(house, "go to fridge 1", "cool mug 2 with fridge 1", state=state)
    assert (state.hot, state.cool) == (0, mug)
    state = play(house, "go to sinkbasin 1", "clean mug 2 with sinkbasin 1", state=state)
    assert (state.clean, state.cool) == (mug, mug)


def test_a_bathtub_cleans_nothing() -> None:
    house = Household(
        Game(
            start="middle",
            receptacles=(receptacle("bathtubbasin 1"),),
            items=(make_item("cloth 1", "cloth", "bathtubbasin 1"),),
            goal=Goal(
                task_type=tables.CLEAN_AND_PLACE, object_kind="cloth", receptacle_kind="shelf"
            ),
        )
    )
    state = play(house, "go to bathtubbasin 1", "take cloth 1 from bathtubbasin 1")
    assert not any(name.startswith("clean") for name in commands(house, state))
    assert house.stations(0) == ()


def test_only_what_was_put_down_can_be_sliced() -> None:
    house = kitchen()
    fetch = ("go to fridge 1", "open fridge 1", "take apple 1 from fridge 1")
    lay = ("go to countertop 1", "move apple 1 to countertop 1", "take knife 1 from countertop 1")
    state = play(house, *fetch, *lay, "slice apple 1 with knife 1")
    assert state.sliced == 1 << house.item_index["apple 1"]
    assert "slice apple 1 with knife 1" in commands(house, state)
    lying = kitchen(places={"apple 1": "countertop 1", "knife 1": "countertop 1"})
    state = play(lying, "go to countertop 1", "take knife 1 from countertop 1")
    assert not any(name.startswith("slice") for name in commands(lying, state))


def test_a_lamp_stays_used_and_shines_where_it_stands() -> None:
    house = kitchen(tables.LOOK_IN_LIGHT, "apple")
    state = play(house, "go to countertop 1", "use desklamp 1", "use desklamp 1")
    assert house.goal_progress(state) == (1, 2)
    state = play(house, "go to fridge 1", "open fridge 1", state=state)
    assert house.goal_progress(state) == (0, 2)
    state = play(house, "take apple 1 from fridge 1", state=state)
    assert house.goal_progress(state) == (1, 2)
    assert house.won(play(house, "go to countertop 1", state=state))


def test_conditions_of_a_heating_goal() -> None:
    house = kitchen(tables.HEAT_AND_PLACE, "mug", "countertop", {"mug 1": "cabinet 1"})
    state = play(house, "go to cabinet 1", "open cabinet 1", "take mug 1 from cabinet 1")
    assert house.goal_progress(state) == (0, 3)
    cold = play(house, "go to countertop 1", "move mug 1 to countertop 1", state=state)
    assert house.goal_progress(cold) == (1, 3)
    hot = play(house, "go to microwave 1", "heat mug 1 with microwave 1", state=state)
    assert house.goal_progress(hot) == (1, 3)
    done = play(house, "go to countertop 1", "move mug 1 to countertop 1", state=hot)
    assert (house.goal_progress(done), house.won(done)) == ((3, 3), True)


def test_two_objects_have_to_be_in_one_receptacle() -> None:
    places = {"mug 1": "countertop 1", "mug 2": "countertop 1"}
    house = kitchen(tables.PICK_TWO, "mug", "cabinet", places)
    first = ("go to countertop 1", "take mug 1 from countertop 1", "go to cabinet 1")
    state = play(house, *first, "open cabinet 1", "move mug 1 to cabinet 1")
    second = ("go to countertop 1", "take mug 2 from countertop 1")
    state = play(house, *second, state=state)
    assert house.goal_progress(state) == (1, 2)
    other = play(house, "go to cabinet 2", "open cabinet 2", "move mug 2 to cabinet 2", state=state)
    assert house.goal_progress(other) == (1, 2)
    assert house.won(play(house, "go to cabinet 1", "move mug 2 to cabinet 1", state=state))


def test_what_fits_nowhere_cannot_be_put() -> None:
    house = kitchen()
    state = play(house, "go to countertop 1", "take knife 1 from countertop 1", "go to fridge 1")
    state = play(house, "open fridge 1", state=state)
    assert not any(name.startswith("move") for name in commands(house, state))


def test_a_description_must_be_sound() -> None:
    goal = Goal(task_type=tables.PICK_AND_PLACE, object_kind="mug", receptacle_kind="shelf")
    shelf = receptacle("shelf 1")
    with pytest.raises(TaskError, match="twice"):
        Household(Game(start="x", receptacles=(shelf, shelf), items=(), goal=goal))
    lost = make_item("mug 1", "mug", "attic 1")
    with pytest.raises(TaskError, match="mug 1"):
        Household(Game(start="x", receptacles=(shelf,), items=(lost,), goal=goal))


def require_sound(house: Household, state: State) -> None:
    held = [index for index, place in enumerate(state.places) if place == IN_HAND]
    assert held == ([] if state.held == NOTHING else [state.held])
    assert all(-1 <= place < len(house.game.receptacles) for place in state.places)
    assert state.hot & state.cool == 0
    assert len(set(house.admissible(state))) == len(house.admissible(state))
    assert LOOK in house.admissible(state)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), choices=st.lists(st.integers(0, 10**6), max_size=30))
def test_random_play_loses_nothing_and_never_raises(seed: int, choices: list[int]) -> None:
    house = deal(seed)
    state = house.start
    for choice in choices:
        actions = house.admissible(state)
        state = house.apply(state, actions[choice % len(actions)])
        require_sound(house, state)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_what_is_not_admissible_changes_nothing(seed: int, data: st.DataObject) -> None:
    house = deal(seed, max_receptacles=6, num_objects=5)
    names = [*house.receptacle_index, *house.item_index, "ghost 1", ""]
    state = house.start
    for _ in range(12):
        name = st.sampled_from(names)
        action = Action(data.draw(st.sampled_from(list(Verb))), data.draw(name), data.draw(name))
        if action not in house.admissible(state):
            assert house.apply(state, action) == state
        actions = house.admissible(state)
        state = house.apply(state, data.draw(st.sampled_from(actions)))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), choices=st.lists(st.integers(0, 10**6), max_size=20))
def test_closed_receptacles_hide_and_keep(seed: int, choices: list[int]) -> None:
    house = deal(seed)
    state = house.start
    for choice in choices:
        for action in house.admissible(state):
            if action.verb in (Verb.TAKE, Verb.PUT):
                assert house.is_visible(state, house.receptacle_index[action.second])
        actions = house.admissible(state)
        state = house.apply(state, actions[choice % len(actions)])
