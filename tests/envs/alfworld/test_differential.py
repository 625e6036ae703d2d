"""Our own engine against TextWorld, state by state: what can be done, what is won, how near it is.

Runs where the extra is installed (`make test-alfworld`). Every difference is a bug in one of two.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gtr_turbo.envs.alfworld.games import write_game
from gtr_turbo.envs.alfworld.world import AbstractWorld
from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.commands import write_command
from gtr_turbo.envs.household.engine import Household
from gtr_turbo.envs.household.games import Dealer, Game, Goal, Item, Receptacle, make_item
from gtr_turbo.envs.household.rules import HouseholdRules

pytest.importorskip("alfworld", reason="the extra `alfworld` is not installed")
from gtr_turbo.envs.alfworld.layouts import layout_game
from gtr_turbo.envs.alfworld.text import TextWorld

NUM_DEALT = 6
"""Games of our dealer for each of the six sorts; with the layouts and the handmade one, 43."""
NUM_STATES = 25
"""States that a walk visits at most."""
PLAN_SHARE = 0.6
"""How often a walk takes the next command of the plan, where that can be done."""
SCENES = {
    tables.PICK_AND_PLACE: 401,
    tables.LOOK_IN_LIGHT: 302,
    tables.CLEAN_AND_PLACE: 402,
    tables.HEAT_AND_PLACE: 10,
    tables.COOL_AND_PLACE: 10,
    tables.PICK_TWO: 201,
}
COMPARED: dict[str, int] = {}
"""Game → states compared."""


@pytest.fixture(scope="module", autouse=True)
def _total() -> Iterator[None]:
    COMPARED.clear()
    yield
    print(f"\n{sum(COMPARED.values())} states of {len(COMPARED)} games compared")  # noqa: T201


@pytest.fixture(scope="module")
def world() -> TextWorld:
    return TextWorld()


def differences(
    game: Game, world: AbstractWorld, folder: Path, generator: np.random.Generator, num_states: int
) -> list[str]:
    """Return where the engines differ along a walk that follows the plan now and then."""
    scene = world.start(write_game(game, folder, trial="trial_1"))
    plan = list(world.plan() or ())
    assert plan, "the planner finds no way"
    house = Household(game)
    state = house.start
    found: list[str] = []
    for index in range(num_states):
        actions = {write_command(action, "0.4"): action for action in house.admissible(state)}
        met, total = house.goal_progress(state)
        ours = (sorted(actions), house.won(state), round(met / total, 6))
        theirs = (list(scene.commands), scene.won, round(scene.goal_rate, 6))
        COMPARED[f"{folder.name} {game.name}"] = index + 1
        if ours != theirs:
            found.append(f"state {index}: {ours} is not {theirs}")
        if scene.won:
            break
        follows = plan and plan[0] in actions and generator.random() < PLAN_SHARE
        known = sorted(set(actions) & set(scene.commands))
        command = plan.pop(0) if follows else known[int(generator.integers(len(known)))]
        state, scene = house.apply(state, actions[command]), world.do(command)
    return found


@pytest.mark.parametrize("number", range(NUM_DEALT))
@pytest.mark.parametrize("task_type", tables.TASK_TYPES)
def test_dealt_games_are_played_alike(
    task_type: str, number: int, world: TextWorld, tmp_path: Path
) -> None:
    generator = np.random.default_rng([number, tables.TASK_TYPES.index(task_type)])
    rules = HouseholdRules(task_types=(task_type,), max_receptacles=6, num_objects=8)
    game = Dealer(rules).deal(generator)
    assert differences(game, world, tmp_path, generator, NUM_STATES) == []


@pytest.mark.parametrize("task_type", tables.TASK_TYPES)
def test_games_in_thors_rooms_are_played_alike(
    task_type: str, world: TextWorld, tmp_path: Path
) -> None:
    generator = np.random.default_rng(7)
    game = layout_game(SCENES[task_type], task_type, generator)
    assert differences(game, world, tmp_path, generator, NUM_STATES) == []


def test_knives_doors_and_shared_places_are_played_alike(world: TextWorld, tmp_path: Path) -> None:
    fruit = make_item("apple 1", "apple", "countertop 1")
    located = Item(
        name="potato 1",
        kind="potato",
        place="fridge 1",
        is_sliceable=True,
        is_heatable=True,
        is_cool=True,
        has_location=True,
    )
    game = Game(
        start="island",
        receptacles=(
            Receptacle(name="countertop 1", kind="countertop", location="island"),
            Receptacle(name="fridge 1", kind="fridge", location="island", is_openable=True),
            Receptacle(
                name="microwave 1",
                kind="microwave",
                location="corner",
                is_openable=True,
                is_open=True,
            ),
            Receptacle(name="bathtubbasin 1", kind="bathtubbasin", location="corner"),
            Receptacle(name="sinkbasin 1", kind="sinkbasin", location="far"),
        ),
        items=(
            fruit,
            located,
            make_item("knife 1", "knife", "countertop 1"),
            make_item("butterknife 1", "butterknife", "sinkbasin 1"),
            make_item("desklamp 1", "desklamp", "countertop 1"),
        ),
        goal=Goal(
            task_type=tables.HEAT_AND_PLACE, object_kind="apple", receptacle_kind="bathtubbasin"
        ),
        can_contain=dict.fromkeys(
            ("countertop", "fridge", "microwave", "sinkbasin", "bathtubbasin"),
            frozenset(("apple", "potato", "knife", "butterknife")),
        ),
    )
    generator = np.random.default_rng(1)
    assert differences(game, world, tmp_path, generator, 6 * NUM_STATES) == []


def test_enough_was_compared() -> None:
    assert len(COMPARED) >= 40
    assert sum(COMPARED.values()) >= 10 * len(COMPARED)
