"""The state of a text game as facts: what the agent may see of it, and how near the goal is.

TextWorld tells everything that is true, also what is behind closed doors. `view_of` keeps what an
agent at its place would see; `goal_rate` judges the rest, as THOR's own tasks do.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from gtr_turbo.envs.alfworld.files import CHORE_FILE
from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.view import SeenObject, SeenReceptacle, View
from gtr_turbo.errors import TaskError

_STATES: Final = {
    tables.CLEAN_AND_PLACE: "isclean",
    tables.HEAT_AND_PLACE: "ishot",
    tables.COOL_AND_PLACE: "iscool",
}
_WORDS: Final = {
    tables.PICK_AND_PLACE: "put a {thing} in {receptacle}",
    tables.LOOK_IN_LIGHT: "look at {thing} under the {lamp}",
    tables.CLEAN_AND_PLACE: "put a clean {thing} in {receptacle}",
    tables.HEAT_AND_PLACE: "put a hot {thing} in {receptacle}",
    tables.COOL_AND_PLACE: "put a cool {thing} in {receptacle}",
    tables.PICK_TWO: "put two {thing} in {receptacle}",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """What has to be done, in kinds such as ``mug``."""

    task_type: str
    thing: str
    receptacle: str
    """Empty where nothing has to be placed."""
    lamp: str
    """Empty where no lamp is needed."""

    @property
    def in_words(self) -> str:
        """The task, in the words that ALFWorld's first templates have."""
        words = _WORDS[self.task_type]
        return words.format(thing=self.thing, receptacle=self.receptacle, lamp=self.lamp)


def read_chore(game: Path) -> Chore:
    """Return the chore of the game in a directory, from its ``traj_data.json``.

    Raises TaskError when that file is missing or is no description of a chore.
    """
    path = game / CHORE_FILE
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        params: dict[str, str] = data["pddl_params"]
        chore = Chore(
            task_type=str(data["task_type"]),
            thing=str(params["object_target"]).lower(),
            receptacle=str(params["parent_target"] or "").lower(),
            lamp=str(params["toggle_target"] or "").lower(),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TaskError(f"{path} does not describe a chore: {error!r}.") from error
    if chore.task_type not in tables.TASK_TYPES:
        known = ", ".join(tables.TASK_TYPES)
        raise TaskError(f'{path}: "{chore.task_type}" is not one of the chores {known}.')
    return chore


@final
class Facts:
    """What is true, by predicate."""

    def __init__(self, facts: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        """Take (predicate, names); blanks around names are dropped, and so are negations."""
        self._facts: dict[str, set[tuple[str, ...]]] = {}
        for predicate, names in facts:
            self._facts.setdefault(predicate, set()).add(tuple(name.strip() for name in names))

    def rows(self, predicate: str) -> list[tuple[str, ...]]:
        """Return the rows of a predicate, sorted by kind and number."""
        return sorted(self._facts.get(predicate, ()), key=lambda row: [_order(n) for n in row])

    def holds(self, predicate: str, *names: str) -> bool:
        """Return whether a fact is true."""
        return names in self._facts.get(predicate, ())

    def firsts(self, predicate: str, *, of: str) -> list[str]:
        """Return who stands in a relation (thing, place) with the place `of`, sorted."""
        return [row[0] for row in self.rows(predicate) if row[-1] == of]

    @property
    def place(self) -> str:
        """The location of the agent."""
        return self.rows("atlocation")[0][-1]

    @property
    def held(self) -> str | None:
        """The thing in the agent's hand."""
        return next((row[-1] for row in self.rows("holds")), None)


def kind_of(name: str) -> str:
    """Return the kind of a thing.

    >>> kind_of("sinkbasin 1")
    'sinkbasin'
    """
    return name.partition(" ")[0]


def _order(name: str) -> tuple[str, int]:
    kind, _, number = name.partition(" ")
    return kind, int(number) if number.isdecimal() else 0


def view_of(facts: Facts, goal: str) -> View:
    """Return what the agent sees; things behind closed doors are not in it."""
    names = [row[0] for row in facts.rows("receptacleatlocation")]
    here = facts.firsts("receptacleatlocation", of=facts.place)
    held = facts.held
    return View(
        goal=goal,
        room=tuple((name, kind_of(name)) for name in names),
        here=tuple(_seen_receptacle(facts, name) for name in here),
        hand=None if held is None else _seen_object(facts, held),
    )


def _seen_receptacle(facts: Facts, name: str) -> SeenReceptacle:
    is_open = facts.holds("opened", name) if facts.holds("openable", name) else None
    inside = tuple(_seen_object(facts, thing) for thing in facts.firsts("inreceptacle", of=name))
    return SeenReceptacle(
        name=name,
        kind=kind_of(name),
        is_open=is_open,
        contents=None if is_open is False else inside,
    )


def _seen_object(facts: Facts, name: str) -> SeenObject:
    return SeenObject(
        name=name,
        kind=kind_of(name),
        is_hot=facts.holds("ishot", name),
        is_cool=facts.holds("iscool", name),
        is_clean=facts.holds("isclean", name),
        is_sliced=facts.holds("issliced", name),
        is_on=facts.holds("istoggled", name),
    )


def goal_rate(facts: Facts, chore: Chore) -> float:
    """Return the share of the chore's conditions that hold, counted as THOR's tasks count them.

    Placing has one condition; two things have one each; light has the thing in the hand and a lamp
    that shines here; heat, cold and cleaning have a thing in place, a thing in that state, and both
    in one.
    """
    conditions = _CONDITIONS.get(chore.task_type, _in_a_state)(facts, chore)
    return sum(conditions) / len(conditions)


def _in_place(facts: Facts, chore: Chore) -> list[list[str]]:
    """Return the things of the chore's kind in each receptacle of its kind."""
    holders = [row[0] for row in facts.rows("receptacleatlocation")]
    return [
        [t for t in facts.firsts("inreceptacle", of=name) if kind_of(t) == chore.thing]
        for name in holders
        if kind_of(name) == chore.receptacle
    ]


def _one_placed(facts: Facts, chore: Chore) -> list[bool]:
    return [any(_in_place(facts, chore))]


def _two_placed(facts: Facts, chore: Chore) -> list[bool]:
    most = max((len(things) for things in _in_place(facts, chore)), default=0)
    return [most >= 1, most >= 2]  # noqa: PLR2004 - the two things


def _in_light(facts: Facts, chore: Chore) -> list[bool]:
    near = facts.firsts("receptacleatlocation", of=facts.place)
    lamps = [t for name in near for t in facts.firsts("inreceptacle", of=name)]
    shines = any(kind_of(t) == chore.lamp and facts.holds("istoggled", t) for t in lamps)
    return [facts.held is not None and kind_of(facts.held) == chore.thing, shines]


def _in_a_state(facts: Facts, chore: Chore) -> list[bool]:
    state = _STATES[chore.task_type]
    placed = [thing for things in _in_place(facts, chore) for thing in things]
    changed = {row[0] for row in facts.rows(state) if kind_of(row[0]) == chore.thing}
    return [bool(placed), bool(changed), any(thing in changed for thing in placed)]


_CONDITIONS: Final[dict[str, Callable[[Facts, Chore], list[bool]]]] = {
    tables.PICK_AND_PLACE: _one_placed,
    tables.PICK_TWO: _two_placed,
    tables.LOOK_IN_LIGHT: _in_light,
}
