"""Games in the rooms of THOR's 120 scenes, as ALFWorld's package describes them.

The package holds, for each scene, the receptacles with the pose from which each is used, and the
kinds of objects; what fits where and what can be done to it is in its constants. Several
receptacles share a pose, which the rooms of our own dealer never do.
"""

import json
from importlib.resources import files
from typing import Any, Final

import numpy as np

from gtr_turbo.envs.alfworld.extra import load
from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.games import Game, Goal, Item, Receptacle
from gtr_turbo.errors import TaskError

_START: Final = "middle of the room"
_NUM_OTHERS: Final = 12
"""Objects besides those that the goal is about: a room of ALFWorld's own games holds some dozens,
but each makes a step of TextWorld slower."""
_CHANGES: Final = {
    tables.CLEAN_AND_PLACE: ("sinkbasin", "Cleanable"),
    tables.HEAT_AND_PLACE: ("microwave", "Heatable"),
    tables.COOL_AND_PLACE: ("fridge", "Coolable"),
}


def layout_game(scene: int, task_type: str, generator: np.random.Generator) -> Game:
    """Return a game of a sort in a scene of THOR's, dealt by `generator`.

    Raises ConfigError without the extra, and TaskError when the scene has no such game.
    """
    constants = load("alfworld.gen.constants")
    receptacles = read_receptacles(scene, constants.OPENABLE_CLASS_LIST)
    present = {each.kind for each in receptacles}
    can_contain = {
        kind.lower(): frozenset(name.lower() for name in names)
        for kind, names in constants.VAL_RECEPTACLE_OBJECTS.items()
        if kind.lower() in present
    }
    kinds = [k for k in _read(scene, "objects") if any(k in s for s in can_contain.values())]
    powers = {name: {k.lower() for k in of} for name, of in constants.VAL_ACTION_OBJECTS.items()}
    lamps = [kind for kind in _read(scene, "objects") if kind in powers["Toggleable"]]
    goal = _deal_goal(task_type, kinds, can_contain, powers, lamps, generator)
    if goal is None:
        raise TaskError(f"there is no game of the sort {task_type} in FloorPlan{scene}.")
    wanted = [goal.object_kind] * (2 if task_type == tables.PICK_TWO else 1)
    others = [kinds[i] for i in generator.integers(len(kinds), size=_NUM_OTHERS)]
    placed = [*wanted, *(kind for kind in others if kind != goal.object_kind)]
    placed += [lamp for lamp in lamps if lamp == goal.lamp_kind]
    items = _deal_items(placed, goal, receptacles, can_contain, powers, generator)
    return Game(
        start=_START,
        receptacles=receptacles,
        items=items,
        goal=goal,
        can_contain=can_contain,
        name=f"floorplan {scene}",
    )


def read_receptacles(scene: int, openable: list[str]) -> tuple[Receptacle, ...]:
    """Return a scene's receptacles, numbered in the order of their ids in THOR."""
    kinds_that_open = {kind.lower() for kind in openable}
    counts: dict[str, int] = {}
    found: list[Receptacle] = []
    for name, pose in sorted(_read(scene, "openable").items()):
        kind = name.partition("|")[0].lower() + ("basin" if "Basin" in name else "")
        counts[kind] = counts.get(kind, 0) + 1
        found.append(
            Receptacle(
                name=f"{kind} {counts[kind]}",
                kind=kind,
                location=" ".join(str(number) for number in pose),
                is_openable=kind in kinds_that_open,
            )
        )
    return tuple(found)


def _read(scene: int, what: str) -> Any:
    """Return one of a scene's files: a dict of receptacles, or a sorted list of kinds."""
    load("alfworld.gen")
    path = files("alfworld.gen") / "layouts" / f"FloorPlan{scene}-{what}.json"
    if not path.is_file():
        raise TaskError(f"THOR has no scene {scene}.", hint="scenes are 1 … 30, 201 … 230, ….")
    data = json.loads(path.read_text(encoding="utf-8"))
    return sorted(kind.lower() for kind in data) if what == "objects" else data


def _deal_goal(
    task_type: str,
    kinds: list[str],
    can_contain: dict[str, frozenset[str]],
    powers: dict[str, set[str]],
    lamps: list[str],
    generator: np.random.Generator,
) -> Goal | None:
    """Return a goal that the room allows, or None."""
    if task_type == tables.LOOK_IN_LIGHT:
        if not lamps or not kinds or not set(can_contain) & set(tables.LAMP_PLACES):
            return None
        return Goal(
            task_type=task_type,
            object_kind=kinds[int(generator.integers(len(kinds)))],
            lamp_kind=lamps[int(generator.integers(len(lamps)))],
        )
    station, power = _CHANGES.get(task_type, ("", ""))
    if station and station not in can_contain:
        return None
    pairs = [
        (kind, target)
        for kind in kinds
        for target in sorted(can_contain)
        if kind in can_contain[target]
        and target != station
        and (not power or kind in powers[power])
        and any(kind in can_contain[other] for other in can_contain if other != target)
    ]
    if not pairs:
        return None
    kind, target = pairs[int(generator.integers(len(pairs)))]
    return Goal(task_type=task_type, object_kind=kind, receptacle_kind=target)


def _deal_items(
    kinds: list[str],
    goal: Goal,
    receptacles: tuple[Receptacle, ...],
    can_contain: dict[str, frozenset[str]],
    powers: dict[str, set[str]],
    generator: np.random.Generator,
) -> tuple[Item, ...]:
    """Return items of these kinds, each where it fits; those wanted are not where they belong."""
    counts: dict[str, int] = {}
    items: list[Item] = []
    for kind in kinds:
        is_lamp = kind in powers["Toggleable"]
        places = [
            each.name
            for each in receptacles
            if (each.kind in tables.LAMP_PLACES if is_lamp else kind in can_contain[each.kind])
            and (kind != goal.object_kind or each.kind != goal.receptacle_kind)
        ]
        counts[kind] = counts.get(kind, 0) + 1
        items.append(
            Item(
                name=f"{kind} {counts[kind]}",
                kind=kind,
                place=places[int(generator.integers(len(places)))],
                is_pickupable=not is_lamp,
                is_heatable=kind in powers["Heatable"],
                is_coolable=kind in powers["Coolable"],
                is_cleanable=kind in powers["Cleanable"],
                is_sliceable=kind in powers["Sliceable"],
                is_toggleable=is_lamp,
            )
        )
    return tuple(items)
