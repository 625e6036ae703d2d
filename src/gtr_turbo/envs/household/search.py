"""An expert that knows no more than it has seen.

It looks through receptacles in a fixed order, the likeliest for the wanted kind first, takes the
first object that will do, and carries it to the nearest place by number. What to do next follows
from the goal, the receptacles in the room, what was looked into so far, and what is in sight; only
where a second object or a lamp was seen earlier does it also remember where.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.commands import LOOK, Action, Verb
from gtr_turbo.envs.household.engine import IN_HAND, NOTHING, Household, State
from gtr_turbo.envs.household.planner import STATION_VERBS, Purpose, Step


@final
@dataclass(slots=True)
class Memory:
    """What was seen since the start of an episode."""

    places: dict[int, int] = field(default_factory=dict)
    """Item → the receptacle in which it was last seen."""
    known: set[int] = field(default_factory=set)
    """Receptacles that were looked into."""

    def add(self, house: Household, state: State) -> None:
        """Remember what is in sight in a state."""
        self.places.pop(state.held, None)
        for index in house.receptacles_at[state.location]:
            if house.is_visible(state, index):
                self.known.add(index)
        for item, place in enumerate(state.places):
            is_here = place != IN_HAND and house.location_of[place] == state.location
            if is_here and house.is_visible(state, place):
                self.places[item] = place


def search(house: Household, states: Sequence[State], num_steps: int) -> tuple[Step, ...]:
    """Return what the expert does from the last of the states on, until the goal or `num_steps`.

    `states` are all those of the episode so far, from its start.
    """
    memory = Memory()
    for state in states:
        memory.add(house, state)
    steps: list[Step] = []
    state = states[-1]
    while not house.won(state) and len(steps) < num_steps:
        steps.append(next_step(house, memory, state))
        state = house.apply(state, steps[-1].action)
        memory.add(house, state)
    return tuple(steps)


def next_step(house: Household, memory: Memory, state: State) -> Step:
    """Return what the expert does in a state."""
    if state.held == NOTHING:
        return _fetch(house, memory, state)
    if state.held not in house.wanted:
        places = [r for r in range(len(house.game.receptacles)) if house.fits(r, state.held)]
        places.sort(key=lambda r: house.location_of[r] != state.location)
        return _put(house, state, places, Purpose.FREE_HAND)
    task_type = house.game.goal.task_type
    if task_type == tables.LOOK_IN_LIGHT:
        return _light(house, memory, state)
    if task_type in STATION_VERBS and not house.changed(state) >> state.held & 1:
        return _change(house, state)
    return _put(house, state, _targets(house, memory), Purpose.DELIVER)


def _fetch(house: Household, memory: Memory, state: State) -> Step:
    kind = house.game.goal.object_kind
    placed: set[int] = set()
    if house.game.goal.task_type == tables.PICK_TWO:
        placed = set(_targets(house, memory)[:1])
    candidates = [
        item for item in house.wanted if item in memory.places and memory.places[item] not in placed
    ]
    if not candidates:
        return _look_for(house, memory, state, kind, tables.PLACES.get(kind, ()))
    item = min(candidates, key=lambda item: (_is_away(house, state, memory.places[item]), item))
    name, place = house.game.items[item].name, memory.places[item]
    receptacle = house.game.receptacles[place].name
    approach = _reach_into(house, state, place)
    return Step(
        action=approach or Action(Verb.TAKE, name, receptacle), purpose=Purpose.FETCH, about=name
    )


def _look_for(
    house: Household, memory: Memory, state: State, kind: str, likely: Sequence[str]
) -> Step:
    """Return the step towards the likeliest receptacle that nobody has looked into yet."""
    ranks = {place: rank for rank, place in enumerate(likely)}
    unknown = [r for r in range(len(house.game.receptacles)) if r not in memory.known]
    if not unknown:
        return Step(action=LOOK, purpose=Purpose.REST, about=kind)

    kinds = [receptacle.kind for receptacle in house.game.receptacles]
    near = {r for r in unknown if kinds[r] in ranks and not _is_away(house, state, r)}
    receptacle = min(unknown, key=lambda r: (r not in near, ranks.get(kinds[r], len(ranks)), r))
    approach = _reach_into(house, state, receptacle)
    return Step(action=approach or LOOK, purpose=Purpose.SEARCH, about=kind)


def _light(house: Household, memory: Memory, state: State) -> Step:
    name, lamp_kind = house.game.items[state.held].name, house.game.goal.lamp_kind or ""
    lamps = [
        item
        for item in sorted(memory.places)
        if house.game.items[item].kind == lamp_kind and house.game.items[item].is_toggleable
    ]
    if not lamps:
        return _look_for(house, memory, state, lamp_kind, tables.LAMP_PLACES)
    lamp = min(lamps, key=lambda lamp: (_is_away(house, state, memory.places[lamp]), lamp))
    use = Action(Verb.USE, house.game.items[lamp].name)
    action = _go(house, state, memory.places[lamp]) or use
    return Step(action=action, purpose=Purpose.LIGHT, about=name)


def _change(house: Household, state: State) -> Step:
    name, stations = house.game.items[state.held].name, house.stations(state.held)
    if not stations:
        return Step(action=LOOK, purpose=Purpose.REST, about=name)
    station = min(stations, key=lambda r: (_is_away(house, state, r), r))
    verb = STATION_VERBS[house.game.goal.task_type]
    change = Action(verb, name, house.game.receptacles[station].name)
    action = _go(house, state, station) or change
    return Step(action=action, purpose=Purpose.CHANGE, about=name)


def _put(house: Household, state: State, places: Sequence[int], purpose: Purpose) -> Step:
    name = house.game.items[state.held].name
    if not places:
        return Step(action=LOOK, purpose=Purpose.REST, about=name)
    put = Action(Verb.PUT, name, house.game.receptacles[places[0]].name)
    action = _reach_into(house, state, places[0]) or put
    return Step(action=action, purpose=purpose, about=name)


def _targets(house: Household, memory: Memory) -> list[int]:
    """Return where the goal wants the object, by number.

    Of two objects that belong together, the second goes to where the first was seen.
    """
    targets = house.targets(house.wanted[0]) if house.wanted else ()
    if house.game.goal.task_type != tables.PICK_TWO:
        return list(targets)
    seen = [memory.places[item] for item in house.wanted if item in memory.places]
    return sorted(targets, key=lambda target: (-seen.count(target), target))


def _is_away(house: Household, state: State, receptacle: int) -> bool:
    return house.location_of[receptacle] != state.location


def _go(house: Household, state: State, receptacle: int) -> Action | None:
    """Return how to get to a receptacle; None: one is there."""
    if not _is_away(house, state, receptacle):
        return None
    return Action(Verb.GO, house.game.receptacles[receptacle].name)


def _reach_into(house: Household, state: State, receptacle: int) -> Action | None:
    """Return what is needed next to reach into a receptacle; None: nothing."""
    go = _go(house, state, receptacle)
    if go is not None or house.is_visible(state, receptacle):
        return go
    return Action(Verb.OPEN, house.game.receptacles[receptacle].name)
