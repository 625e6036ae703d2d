"""Small games for the tests, described by hand or dealt."""

from functools import cache

from gtr_turbo.envs.episodes import make_generator
from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.commands import Action, write_command
from gtr_turbo.envs.household.engine import Household, State
from gtr_turbo.envs.household.games import Dealer, Game, Goal, Receptacle, make_item
from gtr_turbo.envs.household.rules import HouseholdRules

KITCHEN = ("countertop 1", "cabinet 1", "cabinet 2", "fridge 1", "microwave 1", "sinkbasin 1")
PLACES = {
    "mug 1": "cabinet 1",
    "mug 2": "countertop 1",
    "apple 1": "fridge 1",
    "knife 1": "countertop 1",
    "desklamp 1": "countertop 1",
}

SMALL = {"max_receptacles": 4, "num_objects": 4}
COMPACT = {"picture": "compact", "prompt": "compact"}


def receptacle(name: str, location: str | None = None) -> Receptacle:
    kind = name.split()[0]
    return Receptacle(
        name=name,
        kind=kind,
        location=location or name,
        is_openable=kind in tables.OPENABLE,
    )


def kitchen(
    task_type: str = tables.PICK_AND_PLACE,
    kind: str = "mug",
    target: str = "fridge",
    places: dict[str, str] | None = None,
    together: tuple[str, ...] = (),
) -> Household:
    """Return a kitchen of six receptacles; those of `together` share a location."""
    is_light = task_type == tables.LOOK_IN_LIGHT
    goal = Goal(
        task_type=task_type,
        object_kind=kind,
        receptacle_kind=None if is_light else target,
        lamp_kind="desklamp" if is_light else None,
    )
    items = tuple(
        make_item(name, name.split()[0], place) for name, place in (places or PLACES).items()
    )
    receptacles = tuple(receptacle(n, "corner" if n in together else None) for n in KITCHEN)
    return Household(Game(start="middle", receptacles=receptacles, items=items, goal=goal))


def commands(house: Household, state: State) -> dict[str, Action]:
    return {write_command(action, "0.4"): action for action in house.admissible(state)}


def play(house: Household, *names: str, state: State | None = None) -> State:
    """Return the state after commands, each of which must be admissible."""
    state = state or house.start
    for name in names:
        admissible = commands(house, state)
        assert name in admissible, f"{name} is not among {sorted(admissible)}"
        state = house.apply(state, admissible[name])
    return state


def deal(seed: int, **rules: object) -> Household:
    return Household(dealer(tuple(rules.items())).deal(make_generator(seed)))


@cache
def dealer(rules: tuple[tuple[str, object], ...]) -> Dealer:
    return Dealer(HouseholdRules.model_validate(dict(rules)))
