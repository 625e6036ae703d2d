"""The rules of the household: what can be done in a state, what comes of it, and when it is won.

The semantics are those of the ALFRED domain as ALFWorld plays it under TextWorld, in words of our
own (docs/environments.md has the table). A state is a small immutable value; sets of receptacles
and items are bit masks over their indices in the game.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, final

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.commands import HELP, INVENTORY, LOOK, Action, Verb
from gtr_turbo.envs.household.games import Game, Item
from gtr_turbo.errors import TaskError

IN_HAND: Final = -1
"""In place of a receptacle's index: the item is held."""
NOTHING: Final = -1
"""In place of an item's index: the hand is empty."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How things stand."""

    location: int
    """Index into `Household.locations`."""
    held: int
    """Index of the item in hand, or `NOTHING`."""
    places: tuple[int, ...]
    """For each item the index of its receptacle, or `IN_HAND`."""
    opened: int
    """Mask of receptacles that are open."""
    hot: int
    cool: int
    clean: int
    sliced: int
    toggled: int
    """Mask of lamps that were ever used."""
    located: int
    """Mask of items of which the domain knows the location: what was put down stays in it until
    it is taken up."""


@final
class Household:
    """One game's rules."""

    def __init__(self, game: Game) -> None:
        """Raise TaskError when a name occurs twice or an item lies in no receptacle."""
        _check_names(game)
        self.game = game
        self.locations = tuple(dict.fromkeys((game.start, *(r.location for r in game.receptacles))))
        self.receptacle_index = {r.name: index for index, r in enumerate(game.receptacles)}
        self.item_index = {item.name: index for index, item in enumerate(game.items)}
        self.location_of = tuple(self.locations.index(r.location) for r in game.receptacles)
        """For each receptacle the index of its location."""
        self.receptacles_at = tuple(
            tuple(i for i, where in enumerate(self.location_of) if where == location)
            for location in range(len(self.locations))
        )
        """For each location the indices of the receptacles there."""
        self._openable = _mask([r.is_openable for r in game.receptacles])
        self._go = tuple(Action(Verb.GO, r.name) for r in game.receptacles)
        self._goto = tuple(
            tuple(go for go, where in zip(self._go, self.location_of, strict=True) if where != here)
            for here in range(len(self.locations))
        )
        self._examine = tuple(Action(Verb.EXAMINE, r.name) for r in game.receptacles)
        self.wanted = tuple(
            index for index, item in enumerate(game.items) if item.kind == game.goal.object_kind
        )
        """Indices of the items that are of the goal's kind."""
        self._pickupable = [index for index, item in enumerate(game.items) if item.is_pickupable]
        self._lamps = [index for index, item in enumerate(game.items) if item.is_toggleable]
        self._last: tuple[State, tuple[Action, ...]] | None = None
        self.start = self._start()
        """The state at the start."""

    def is_visible(self, state: State, receptacle: int) -> bool:
        """Return whether one can see into a receptacle and reach into it, once there."""
        return not (self._openable & ~state.opened) >> receptacle & 1

    def fits(self, receptacle: int, item: int) -> bool:
        """Return whether an item can be put into a receptacle, doors apart."""
        kinds = self.game.can_contain.get(self.game.receptacles[receptacle].kind, frozenset())
        return self.game.items[item].kind in kinds

    def admissible(self, state: State) -> tuple[Action, ...]:
        """Return all that can be done, in a fixed order and without repetition."""
        if self._last is None or self._last[0] is not state:
            self._last = (state, self._all_admissible(state))
        return self._last[1]

    def _all_admissible(self, state: State) -> tuple[Action, ...]:
        actions = list(self._goto[state.location])
        here = self.receptacles_at[state.location]
        for index in here:
            name = self.game.receptacles[index].name
            if self._openable >> index & 1:
                verb = Verb.CLOSE if state.opened >> index & 1 else Verb.OPEN
                actions.append(Action(verb, name))
        if state.held == NOTHING:
            open_here = [index for index in here if self.is_visible(state, index)]
            actions += [
                _taking(self.game.items[item].name, self.game.receptacles[state.places[item]].name)
                for item in self._pickupable
                if state.places[item] in open_here
            ]
        else:
            actions += self._handlings(state, here)
        actions += [
            Action(Verb.USE, self.game.items[lamp].name)
            for lamp in self._lamps
            if state.places[lamp] in here
        ]
        actions += [self._examine[index] for index in here]
        if state.held != NOTHING:
            actions.append(Action(Verb.EXAMINE, self.game.items[state.held].name))
        return (*actions, LOOK, INVENTORY, HELP)

    def apply(self, state: State, action: Action) -> State:
        """Return the state after an action; one that is not admissible changes nothing."""
        if action not in self.admissible(state):
            return state
        effect = _EFFECTS.get(action.verb)
        return state if effect is None else effect(self, state, action)

    def goal_progress(self, state: State) -> tuple[int, int]:
        """Return how many conditions of the goal hold, and how many there are.

        All of them hold exactly when the game is won. Placing has one; placing two has one for
        each in the same receptacle; clean, hot or cool has three (some such object in place, some
        in the wanted condition, and some both); light has two (the object in hand, and a lamp that
        was used where the agent stands).
        """
        goal = self.game.goal
        if goal.task_type == tables.LOOK_IN_LIGHT:
            return int(state.held in self.wanted) + self._is_lit(state), 2
        in_place = [
            index
            for index in self.wanted
            if state.places[index] != IN_HAND
            and self.game.receptacles[state.places[index]].kind == goal.receptacle_kind
        ]
        if goal.task_type == tables.PICK_TWO:
            targets = [state.places[index] for index in in_place]
            return min(2, max(map(targets.count, targets), default=0)), 2
        if goal.task_type == tables.PICK_AND_PLACE:
            return int(bool(in_place)), 1
        changed = self.changed(state)
        is_both = any(changed >> index & 1 for index in in_place)
        is_changed = any(changed >> index & 1 for index in self.wanted)
        return int(bool(in_place)) + int(is_changed) + int(is_both), 3

    def won(self, state: State) -> bool:
        """Return whether the goal is reached."""
        met, total = self.goal_progress(state)
        return met == total

    def changed(self, state: State) -> int:
        """Return the mask of items in the condition that the goal's type asks for."""
        masks = {
            tables.CLEAN_AND_PLACE: state.clean,
            tables.HEAT_AND_PLACE: state.hot,
            tables.COOL_AND_PLACE: state.cool,
        }
        return masks.get(self.game.goal.task_type, 0)

    def stations(self, item: int) -> tuple[int, ...]:
        """Return the receptacles that can change an item as the goal's type asks."""
        kind = tables.STATIONS.get(self.game.goal.task_type)
        return tuple(
            index
            for index, receptacle in enumerate(self.game.receptacles)
            if receptacle.kind == kind
            and _station_verb(receptacle.kind, self.game.items[item]) is not None
        )

    def targets(self, item: int) -> tuple[int, ...]:
        """Return the receptacles in which the goal wants an item."""
        return tuple(
            index
            for index, receptacle in enumerate(self.game.receptacles)
            if receptacle.kind == self.game.goal.receptacle_kind and self.fits(index, item)
        )

    def _start(self) -> State:
        game = self.game
        return State(
            location=0,
            held=NOTHING,
            places=tuple(self.receptacle_index[item.place] for item in game.items),
            opened=_mask([r.is_openable and r.is_open for r in game.receptacles]),
            hot=_mask([item.is_hot for item in game.items]),
            cool=_mask([item.is_cool for item in game.items]),
            clean=_mask([item.is_clean for item in game.items]),
            sliced=_mask([item.is_sliced for item in game.items]),
            toggled=_mask([item.is_toggled for item in game.items]),
            located=_mask([item.has_location for item in game.items]),
        )

    def _is_lit(self, state: State) -> int:
        here = self.receptacles_at[state.location]
        return int(
            any(
                self.game.items[lamp].kind == self.game.goal.lamp_kind
                and state.toggled >> lamp & 1
                and state.places[lamp] in here
                for lamp in self._lamps
            )
        )

    def _handlings(self, state: State, here: Sequence[int]) -> list[Action]:
        """Return what can be done with the thing in hand."""
        held = self.game.items[state.held]
        actions: list[Action] = []
        for index in here:
            receptacle = self.game.receptacles[index]
            if self.is_visible(state, index) and self.fits(index, state.held):
                actions.append(Action(Verb.PUT, held.name, receptacle.name))
            verb = _station_verb(receptacle.kind, held)
            if verb is not None:
                actions.append(Action(verb, held.name, receptacle.name))
        if held.kind in tables.KNIVES:
            actions += [
                Action(Verb.SLICE, item.name, held.name)
                for index, (item, place) in enumerate(
                    zip(self.game.items, state.places, strict=True)
                )
                if item.is_sliceable and place in here and state.located >> index & 1
            ]
        return actions


@lru_cache(maxsize=16_384)
def _taking(item: str, receptacle: str) -> Action:
    return Action(Verb.TAKE, item, receptacle)


def _check_names(game: Game) -> None:
    names = [each.name for each in (*game.receptacles, *game.items)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TaskError(f"names occur twice in a game: {', '.join(twice)}.")
    known = {receptacle.name for receptacle in game.receptacles}
    lost = [item.name for item in game.items if item.place not in known]
    if lost:
        raise TaskError(
            f"items lie in no receptacle: {', '.join(lost)}.",
            hint="`place` is the name of one of the game's receptacles.",
        )


def _mask(flags: Sequence[bool]) -> int:
    return sum(1 << index for index, flag in enumerate(flags) if flag)


def _station_verb(receptacle_kind: str, item: Item) -> Verb | None:
    """Return what a receptacle can do to an item; doors do not matter for it."""
    if receptacle_kind == "sinkbasin" and item.is_cleanable:
        return Verb.CLEAN
    if receptacle_kind == "microwave" and item.is_heatable:
        return Verb.HEAT
    if receptacle_kind == "fridge" and item.is_coolable:
        return Verb.COOL
    return None


# ------------------------------------------------------------ what comes of an admissible action


def _go(house: Household, state: State, action: Action) -> State:
    receptacle = house.receptacle_index[action.first]
    return replace(state, location=house.location_of[receptacle])


def _open(house: Household, state: State, action: Action) -> State:
    return replace(state, opened=state.opened | 1 << house.receptacle_index[action.first])


def _close(house: Household, state: State, action: Action) -> State:
    return replace(state, opened=state.opened & ~(1 << house.receptacle_index[action.first]))


def _take(house: Household, state: State, action: Action) -> State:
    item = house.item_index[action.first]
    return replace(
        state,
        held=item,
        places=_moved(state.places, item, IN_HAND),
        located=state.located & ~(1 << item),
    )


def _put(house: Household, state: State, action: Action) -> State:
    item = house.item_index[action.first]
    return replace(
        state,
        held=NOTHING,
        places=_moved(state.places, item, house.receptacle_index[action.second]),
        located=state.located | 1 << item,
    )


def _moved(places: tuple[int, ...], item: int, place: int) -> tuple[int, ...]:
    return (*places[:item], place, *places[item + 1 :])


def _use(house: Household, state: State, action: Action) -> State:
    return replace(state, toggled=state.toggled | 1 << house.item_index[action.first])


def _clean(house: Household, state: State, action: Action) -> State:
    return replace(state, clean=state.clean | 1 << house.item_index[action.first])


def _heat(house: Household, state: State, action: Action) -> State:
    bit = 1 << house.item_index[action.first]
    return replace(state, hot=state.hot | bit, cool=state.cool & ~bit)


def _cool(house: Household, state: State, action: Action) -> State:
    bit = 1 << house.item_index[action.first]
    return replace(state, cool=state.cool | bit, hot=state.hot & ~bit)


def _slice(house: Household, state: State, action: Action) -> State:
    return replace(state, sliced=state.sliced | 1 << house.item_index[action.first])


_EFFECTS: Final[dict[Verb, Callable[[Household, State, Action], State]]] = {
    Verb.GO: _go,
    Verb.OPEN: _open,
    Verb.CLOSE: _close,
    Verb.TAKE: _take,
    Verb.PUT: _put,
    Verb.USE: _use,
    Verb.CLEAN: _clean,
    Verb.HEAT: _heat,
    Verb.COOL: _cool,
    Verb.SLICE: _slice,
}
"""Verb → its effect; a verb that is missing changes nothing."""
