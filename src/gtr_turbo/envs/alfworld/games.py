"""Writes games for ALFWorld from descriptions of ours: ``game.tw-pddl`` and ``traj_data.json``.

    write_game(deal_game(HouseholdRules(), generator), Path("games/train"), trial="trial_1")

ALFWorld's own `AlfredTWEnv` accepts the directory, and so does `AlfworldTask`. The goal is that of
ALFWorld's library; the domain and the grammar are the installed package's. THOR can't play these
games, because no things have poses in them.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from gtr_turbo.envs.alfworld.extra import load
from gtr_turbo.envs.alfworld.facts import Chore
from gtr_turbo.envs.alfworld.files import CHORE_FILE, GAME_FILE
from gtr_turbo.envs.household.games import Game, Item, Receptacle
from gtr_turbo.errors import TaskError

_RECEPTACLE_TYPES: Final = ("sinkbasin", "microwave", "fridge")
_OBJECT_TYPES: Final = ("knife", "butterknife")
"""Kinds that ALFWorld's domain names: without them in a problem it can't be translated."""

_MAX_NUMBER: Final = 999
_AGENT: Final = "agent1"

_POWERS: Final = {
    "pickupable": "is_pickupable",
    "heatable": "is_heatable",
    "coolable": "is_coolable",
    "cleanable": "is_cleanable",
    "sliceable": "is_sliceable",
    "toggleable": "is_toggleable",
    "isHot": "is_hot",
    "isCool": "is_cool",
    "isClean": "is_clean",
    "isSliced": "is_sliced",
    "isToggled": "is_toggled",
    "isOn": "is_toggled",
}
"""Predicate → the attribute of an item that makes it true at the start."""


def write_game(game: Game, folder: Path, *, trial: str) -> Path:
    """Write a game's two files below `folder` and return their directory.

    Raises ConfigError without the extra, and TaskError for a game that ALFWorld can't name: it
    numbers the things of a kind from 1 on.
    """
    info = load("alfworld.info")
    chore = _chore(game)
    domain = Path(info.ALFRED_PDDL_PATH).read_text(encoding="utf-8")
    grammar = Path(info.ALFRED_TWL2_PATH).read_text(encoding="utf-8")
    goals: dict[str, dict[str, str]] = load("alfworld.gen.goal_library").gdict
    goal = goals[chore.task_type]["pddl"].format(
        obj=chore.thing, recep=chore.receptacle, toggle=chore.lamp, mrecep=""
    )
    data = {
        "pddl_domain": domain,
        "grammar": grammar.replace("UNKNOWN GOAL", chore.in_words),
        "pddl_problem": write_problem(game, goal.replace("#", "-")),
        "solvable": True,
        "walkthrough": [],
    }
    description = _description(game, chore, trial)
    directory = folder / _folder_name(description) / trial
    directory.mkdir(parents=True, exist_ok=True)
    (directory / GAME_FILE).write_text(json.dumps(data), encoding="utf-8")
    (directory / CHORE_FILE).write_text(json.dumps(description, indent=2), encoding="utf-8")
    return directory


def write_problem(game: Game, goal: str) -> str:
    """Return a game as a PDDL problem; `goal` ends it, with its closing bracket.

    Raises TaskError when the things of a kind are not numbered from 1 on.
    """
    _check_numbers(game.receptacles)
    _check_numbers(game.items)
    kinds = {each.kind for each in game.receptacles}
    thing_kinds = {each.kind for each in game.items}
    objects = [f"{_AGENT} - agent"]
    objects += [f"{place} - location" for place in _locations(game).values()]
    objects += [f"{mangle(each.name)} - receptacle" for each in game.receptacles]
    objects += [f"{mangle(each.name)} - object" for each in game.items]
    objects += [f"{kind}Type - rtype" for kind in sorted(kinds | set(_RECEPTACLE_TYPES))]
    objects += [f"{kind}Type - otype" for kind in sorted(thing_kinds | set(_OBJECT_TYPES))]
    facts = [f"(atLocation {_AGENT} {_locations(game)[game.start]})"]
    facts += _receptacle_facts(game)
    for item in game.items:
        facts += _item_facts(game, item)
    facts += [
        f"(canContain {holder}Type {kind}Type)"
        for holder in sorted(kinds)
        for kind in sorted(thing_kinds & game.can_contain.get(holder, frozenset()))
    ]
    lines = "\n    ".join
    return (
        f"(define (problem chore)\n  (:domain alfred)\n  (:objects\n    {lines(objects)}\n  )\n"
        f"  (:init\n    {lines(facts)}\n  )\n{goal}"
    )


def mangle(name: str) -> str:
    """Return the id of a thing from which ALFWorld's demangler makes this name again.

    The demangler sorts the ids of a kind and counts them downwards.

    >>> mangle("mug 2")
    'mug_bar_998'
    >>> mangle("sinkbasin 1")
    'sink_bar_999_bar_sinkbasin'
    """
    kind, _, number = name.partition(" ")
    if not (kind.isalpha() and number.isdecimal() and 1 <= int(number) <= _MAX_NUMBER):
        raise TaskError(f'ALFWorld can\'t have a thing named "{name}": it takes "kind 1" to 999.')
    place = f"{_MAX_NUMBER + 1 - int(number):03}"
    basin = kind.removesuffix("basin")
    return f"{basin}_bar_{place}" + (f"_bar_{kind}" if basin != kind else "")


def _check_numbers(things: Iterable[Item] | Iterable[Receptacle]) -> None:
    names: dict[str, set[str]] = {}
    for thing in things:
        names.setdefault(thing.kind, set()).add(thing.name)
    for kind, found in names.items():
        if found != {f"{kind} {number}" for number in range(1, len(found) + 1)}:
            raise TaskError(
                f"{', '.join(sorted(found))}: these are not numbered from 1 on.",
                hint="ALFWorld numbers the things of each kind itself, without a gap.",
            )


def _locations(game: Game) -> dict[str, str]:
    """Return location → its id."""
    names = dict.fromkeys((game.start, *(each.location for each in game.receptacles)))
    return {name: f"loc_bar_{index}" for index, name in enumerate(names)}


def _receptacle_facts(game: Game) -> Iterator[str]:
    locations = _locations(game)
    for each in game.receptacles:
        name = mangle(each.name)
        yield f"(receptacleAtLocation {name} {locations[each.location]})"
        yield f"(receptacleType {name} {each.kind}Type)"
        if each.is_openable:
            yield f"(openable {name})"
            if each.is_open:
                yield f"(opened {name})"


def _item_facts(game: Game, item: Item) -> Iterator[str]:
    name = mangle(item.name)
    place = next(each for each in game.receptacles if each.name == item.place)
    yield f"(objectType {name} {item.kind}Type)"
    yield f"(inReceptacle {name} {mangle(item.place)})"
    if item.has_location:
        yield f"(objectAtLocation {name} {_locations(game)[place.location]})"
    for predicate, attribute in _POWERS.items():
        if getattr(item, attribute):
            yield f"({predicate} {name})"


def _chore(game: Game) -> Chore:
    return Chore(
        task_type=game.goal.task_type,
        thing=game.goal.object_kind,
        receptacle=game.goal.receptacle_kind or "",
        lamp=game.goal.lamp_kind or "",
    )


def _description(game: Game, chore: Chore, trial: str) -> dict[str, Any]:
    """Return what ``traj_data.json`` says; kinds are spelled as THOR spells them."""
    spelled: dict[str, str] = load("alfworld.gen.constants").OBJECTS_LOWER_TO_UPPER
    last = game.name.rpartition(" ")[2]
    number = int(last) if last.isdecimal() else 0
    return {
        "task_type": chore.task_type,
        "task_id": trial,
        "pddl_params": {
            "object_target": spelled.get(chore.thing, chore.thing),
            "parent_target": spelled.get(chore.receptacle, chore.receptacle),
            "toggle_target": spelled.get(chore.lamp, chore.lamp),
            "mrecep_target": "",
            "object_sliced": False,
        },
        "scene": {"floor_plan": f"FloorPlan{number}", "scene_num": number},
    }


def _folder_name(description: dict[str, Any]) -> str:
    """Return the name of a game's directory; others read the sort of the chore from it."""
    params, scene = description["pddl_params"], description["scene"]["scene_num"]
    target = params["parent_target"] or params["toggle_target"]
    return f"{description['task_type']}-{params['object_target']}-None-{target}-{scene}"
