"""A game: a room, the things in it, and a goal. Described as plain facts, and dealt from a seed.

    Game(
        start="middle",                       # a location; receptacles elsewhere are out of reach
        receptacles=(
            Receptacle(name="shelf 1", kind="shelf", location="shelf 1"),
            Receptacle(name="drawer 1", kind="drawer", location="desk", is_openable=True),
        ),
        items=(Item(name="cd 1", kind="cd", place="drawer 1"),),
        goal=Goal(task_type="pick_and_place_simple", object_kind="cd", receptacle_kind="shelf"),
        can_contain={"shelf": frozenset({"cd"}), "drawer": frozenset({"cd"})},
    )

Nothing else is needed to play: `engine.Household` takes any such description, those of our own
dealer as well as those that were read from elsewhere. Several receptacles may share a location.
What a thing allows (`is_heatable` and so on) is a fact about each item, so that other tables than
ours can be described.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeVar, final

import numpy as np

from gtr_turbo.envs.episodes import make_generator
from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.rules import HouseholdRules
from gtr_turbo.envs.household.scenes import Scene, scenes_of
from gtr_turbo.errors import ConfigError

_NUM_GAMES: Final = 2**30
"""Games of one scene and split; even numbers are for training, odd ones for `valid_seen`."""
_NUMBERS_PER_GAME: Final = 1_000
"""Above every scene's number, so that a game's number and its scene make one seed."""
_TWIN_SHARE: Final = 0.25
"""How probable a second object of a kind is."""
_START: Final = "middle of the room"

_HARMONIC: Final = np.cumsum(1 / np.arange(1, 33))
"""Sums of 1 + 1/2 + 1/3 …, for as many kinds of places as a thing can have."""

Choice = TypeVar("Choice")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Receptacle:
    """Something that things can be in or on; it stays where it is."""

    name: str
    """Kind and number, unique in the game."""
    kind: str
    location: str
    """Where one stands to use it."""
    is_openable: bool = False
    is_open: bool = False
    """At the start; only what is openable can be closed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An object: what can be done to it, and where and how it is at the start."""

    name: str
    """Kind and number, unique in the game."""
    kind: str
    place: str
    """Name of the receptacle that it is in."""
    is_pickupable: bool = True
    is_heatable: bool = False
    is_coolable: bool = False
    is_cleanable: bool = False
    is_sliceable: bool = False
    is_toggleable: bool = False
    is_hot: bool = False
    is_cool: bool = False
    is_clean: bool = False
    is_sliced: bool = False
    is_toggled: bool = False
    has_location: bool = False
    """The domain's `objectAtLocation` holds from the start, so that it can be sliced where it is;
    without it a thing must be put down once before it can be sliced."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is to be done, in terms of kinds."""

    task_type: str
    """One of `tables.TASK_TYPES`."""
    object_kind: str
    receptacle_kind: str | None = None
    """Where it has to go; None for `look_at_obj_in_light`."""
    lamp_kind: str | None = None
    """Which lamp; None for all others."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """Everything that is the case at the start, and the goal."""

    start: str
    """The location at which the agent starts."""
    receptacles: tuple[Receptacle, ...]
    items: tuple[Item, ...]
    goal: Goal
    can_contain: Mapping[str, frozenset[str]] = field(default_factory=lambda: tables.CAN_CONTAIN)
    """Kind of receptacle → kinds of objects that can be put into it."""
    name: str = "game"
    """Where it is from, such as ``kitchen 12``."""


def make_item(name: str, kind: str, place: str) -> Item:
    """Return an item that allows what its kind allows in our tables."""
    return Item(
        name=name,
        kind=kind,
        place=place,
        is_pickupable=kind not in tables.TOGGLEABLE,
        is_heatable=kind in tables.HEATABLE,
        is_coolable=kind in tables.COOLABLE,
        is_cleanable=kind in tables.CLEANABLE,
        is_sliceable=kind in tables.SLICEABLE,
        is_toggleable=kind in tables.TOGGLEABLE,
    )


# ------------------------------------------------------------------------------------- the dealer


@final
class Dealer:
    """Deals games under the rules; each can be won, given steps enough."""

    def __init__(self, rules: HouseholdRules) -> None:
        """Raise ConfigError when a sort of goal has no game under the rules."""
        self._rules = rules
        scenes = tuple(
            scene
            for room in rules.rooms
            for scene in scenes_of(rules.split, room, rules.num_scenes)
        )
        self._choices = {
            task_type: _choices(task_type, scenes, rules.receptacle_kinds, rules.object_kinds)
            for task_type in rules.task_types
        }
        for task_type, choices in self._choices.items():
            if not choices:
                raise ConfigError(
                    f'no game of the type "{task_type}" fits `rooms`, `num_scenes`, '
                    "`receptacle_kinds` and `object_kinds`.",
                    hint="heating and cooling need a kitchen, cleaning a kitchen or a bathroom, "
                    "light a living room or a bedroom; allow more kinds or more scenes.",
                )

    def deal(self, chance: np.random.Generator) -> Game:
        """Return a game: first its sort is drawn, then a scene for it, then the game's number."""
        task_type = _pick(self._rules.task_types, chance)
        scene = _pick(self._choices[task_type], chance)
        number = 2 * int(chance.integers(_NUM_GAMES)) + (self._rules.split == "valid_seen")
        return make_game(self._rules, task_type, scene, number)


def make_game(rules: HouseholdRules, task_type: str, scene: Scene, number: int) -> Game:
    """Return a scene's game of a number: the goal, what is there, and where it lies."""
    generator = make_generator(number * _NUMBERS_PER_GAME + scene.number)
    options = _options(task_type, scene, rules.object_kinds)
    kind = _pick(tuple(dict.fromkeys(kind for kind, _ in options)), generator)
    target = _pick(tuple(place for of, place in options if of == kind), generator)
    goal = Goal(
        task_type=task_type,
        object_kind=kind,
        receptacle_kind=target or None,
        lamp_kind=None if target else tables.LAMP,
    )
    start = _pick_place(_starts(kind, target, [kind for kind, _ in scene.receptacles]), generator)
    needed = [start, target, tables.STATIONS.get(task_type, "")]
    if task_type == tables.LOOK_IN_LIGHT:
        present = {kind for kind, _ in scene.receptacles}
        needed = [start, next(place for place in tables.LAMP_PLACES if place in present)]
    receptacles = _receptacles(scene, [name for name in needed if name], rules, generator)
    return Game(
        start=_START,
        receptacles=receptacles,
        items=_items(goal, scene, receptacles, rules, generator),
        goal=goal,
        name=f"{scene.room} {scene.number}",
    )


@lru_cache(maxsize=256)
def _choices(
    task_type: str,
    scenes: tuple[Scene, ...],
    receptacle_kinds: tuple[str, ...],
    object_kinds: tuple[str, ...],
) -> tuple[Scene, ...]:
    """Return the scenes in which a sort of goal is possible, with the receptacles allowed."""
    restricted = [scene.restricted(receptacle_kinds) for scene in scenes]
    return tuple(scene for scene in restricted if _options(task_type, scene, object_kinds))


def _options(
    task_type: str, scene: Scene, object_kinds: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the (object kind, target receptacle kind) that can be asked for; "" is no target."""
    allowed = tables.CHANGEABLE.get(task_type, frozenset(scene.object_kinds))
    kinds = [k for k in object_kinds if k in scene.object_kinds and k in allowed]
    present = [kind for kind, _ in scene.receptacles]
    if task_type == tables.LOOK_IN_LIGHT:
        held = [kind for kind in kinds if _starts(kind, "", present)]
        return tuple((kind, "") for kind in held if scene.has_lamp)
    station = tables.STATIONS.get(task_type)
    if station is not None and station not in present:
        return ()
    return tuple(
        (kind, target)
        for kind in kinds
        for target in present
        if kind in tables.CAN_CONTAIN.get(target, ())
        and target != station
        and _starts(kind, target, present)
    )


def _starts(kind: str, target: str, present: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of receptacles that an object may lie in at first, the likeliest first."""
    return tuple(place for place in tables.PLACES[kind] if place in present and place != target)


def _receptacles(
    scene: Scene, needed: Sequence[str], rules: HouseholdRules, generator: np.random.Generator
) -> tuple[Receptacle, ...]:
    """Return the scene's receptacles, or so many as the rules allow, the needed kinds first.

    Where some are left out, those that stay are of as many kinds as possible.
    """
    counts = dict(scene.receptacles)
    kept = dict.fromkeys(needed, 1)
    num_kept = len(kept)
    others = [kind for kind in counts if kind not in kept]
    first = [others[i] for i in generator.permutation(len(others))]
    spares = [kind for kind, count in counts.items() for _ in range(count - 1)]
    then = [spares[i] for i in generator.permutation(len(spares))]
    for kind in (*first, *then)[: max(rules.max_receptacles - num_kept, 0)]:
        kept[kind] = kept.get(kind, 0) + 1
    return tuple(
        Receptacle(
            name=f"{kind} {number}",
            kind=kind,
            location=f"{kind} {number}",
            is_openable=kind in tables.OPENABLE,
        )
        for kind in counts
        for number in range(1, kept.get(kind, 0) + 1)
    )


def _items(
    goal: Goal,
    scene: Scene,
    receptacles: Sequence[Receptacle],
    rules: HouseholdRules,
    generator: np.random.Generator,
) -> tuple[Item, ...]:
    """Return the things in the room, each in a likely place; none lies where the goal wants it."""
    present = tuple(dict.fromkeys(receptacle.kind for receptacle in receptacles))
    num_wanted = 2 if goal.task_type == tables.PICK_TWO else 1
    wanted = goal.object_kind
    kinds = [wanted] * (num_wanted + int(generator.random() < _TWIN_SHARE))
    others = [k for k in scene.object_kinds if k in rules.object_kinds and k != wanted]
    for index in generator.permutation(len(others)):
        kinds += [others[index]] * (1 + int(generator.random() < _TWIN_SHARE))
    placed: list[tuple[str, str]] = []
    for kind in kinds[: rules.num_objects]:
        starts = _starts(kind, goal.receptacle_kind or "" if kind == wanted else "", present)
        if starts:
            placed.append((kind, _pick_receptacle(starts, receptacles, generator)))
    lamp_places = tuple(place for place in tables.LAMP_PLACES if place in present)
    if scene.has_lamp and lamp_places:
        placed.append((tables.LAMP, _pick_receptacle(lamp_places, receptacles, generator)))
    order = generator.permutation(len(placed))
    return _numbered([placed[index] for index in order])


def _numbered(placed: Sequence[tuple[str, str]]) -> tuple[Item, ...]:
    """Return items for (kind, place), numbered within their kinds, sorted by name."""
    items: list[Item] = []
    for index, (kind, place) in enumerate(placed):
        number = 1 + sum(of == kind for of, _ in placed[:index])
        items.append(make_item(f"{kind} {number}", kind, place))
    return tuple(sorted(items, key=lambda item: item.name))


def _pick_receptacle(
    kinds: Sequence[str], receptacles: Sequence[Receptacle], generator: np.random.Generator
) -> str:
    kind = _pick_place(kinds, generator)
    return _pick([each.name for each in receptacles if each.kind == kind], generator)


def _pick_place(kinds: Sequence[str], generator: np.random.Generator) -> str:
    """Return one of `kinds`; the n-th is an n-th as probable as the first."""
    sums = _HARMONIC[: len(kinds)]
    return kinds[int(np.searchsorted(sums, generator.random() * sums[-1], side="right"))]


def _pick(choices: Sequence[Choice], generator: np.random.Generator) -> Choice:
    return choices[int(generator.integers(len(choices)))]
