"""Shortest plans of an agent that knows where everything is.

A plan is a chain of errands: free the hand, fetch an object, change it, bring it somewhere. Every
sensible chain is walked, and the shortest one counts, the first among equals.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import final

from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.commands import Action, Verb
from gtr_turbo.envs.household.engine import IN_HAND, NOTHING, Household, State

STATION_VERBS = {
    tables.CLEAN_AND_PLACE: Verb.CLEAN,
    tables.HEAT_AND_PLACE: Verb.HEAT,
    tables.COOL_AND_PLACE: Verb.COOL,
}
"""Task type → what changes an object as the goal asks."""


@final
class Purpose(StrEnum):
    """What an expert does something for."""

    SEARCH = "search"
    FETCH = "fetch"
    CHANGE = "change"
    DELIVER = "deliver"
    LIGHT = "light"
    FREE_HAND = "free the hand"
    REST = "rest"
    """Nothing is left to be done."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An expert's action, and what it is for."""

    action: Action
    purpose: Purpose
    about: str
    """The object's name, or while it is searched for its kind."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Route:
    """A plan's beginning, and how things stand after it."""

    house: Household
    state: State
    steps: tuple[Step, ...] = ()

    def act(self, action: Action, purpose: Purpose, about: str) -> "_Route":
        """Return the route with one more action, which must be admissible."""
        step = Step(action=action, purpose=purpose, about=about)
        after = self.house.apply(self.state, action)
        return replace(self, state=after, steps=(*self.steps, step))

    def go(self, receptacle: int, purpose: Purpose, about: str) -> "_Route":
        """Return the route up to a receptacle."""
        if self.house.location_of[receptacle] == self.state.location:
            return self
        name = self.house.game.receptacles[receptacle].name
        return self.act(Action(Verb.GO, name), purpose, about)

    def reach_into(self, receptacle: int, purpose: Purpose, about: str) -> "_Route":
        """Return the route up to a receptacle that is open."""
        there = self.go(receptacle, purpose, about)
        if self.house.is_visible(there.state, receptacle):
            return there
        name = self.house.game.receptacles[receptacle].name
        return there.act(Action(Verb.OPEN, name), purpose, about)

    def fetch(self, item: int) -> "_Route | None":
        """Return the route with an item in hand; None where another one is in the way."""
        place, name = self.state.places[item], self.house.game.items[item].name
        if place == IN_HAND:
            return self
        if self.state.held != NOTHING or not self.house.game.items[item].is_pickupable:
            return None
        there = self.reach_into(place, Purpose.FETCH, name)
        receptacle = self.house.game.receptacles[place].name
        return there.act(Action(Verb.TAKE, name, receptacle), Purpose.FETCH, name)

    def put(self, receptacle: int, purpose: Purpose) -> "_Route":
        """Return the route with the thing in hand brought to a receptacle that it fits."""
        held = self.house.game.items[self.state.held].name
        there = self.reach_into(receptacle, purpose, held)
        name = self.house.game.receptacles[receptacle].name
        return there.act(Action(Verb.PUT, held, name), purpose, held)


def make_plan(house: Household, state: State) -> tuple[Step, ...] | None:
    """Return a shortest plan from a state to the goal, or None when there is none."""
    if house.won(state):
        return ()
    routes = [
        route
        for start in _with_right_hand(_Route(house=house, state=state))
        for route in _routes(start)
    ]
    return min((route.steps for route in routes), key=len, default=None)


def _with_right_hand(start: _Route) -> Iterator[_Route]:
    """Yield ways to begin: as things are, or with what is in hand put down somewhere.

    What is wanted is only put down on the spot.
    """
    yield start
    house, state = start.house, start.state
    if state.held == NOTHING:
        return
    is_wanted = state.held in house.wanted
    for receptacle, location in enumerate(house.location_of):
        is_here = location == state.location and house.is_visible(state, receptacle)
        if house.fits(receptacle, state.held) and (is_here or not is_wanted):
            yield start.put(receptacle, Purpose.FREE_HAND)


def _routes(start: _Route) -> Iterator[_Route]:
    """Yield all chains of errands that reach the goal."""
    house, task_type = start.house, start.house.game.goal.task_type
    if house.won(start.state):
        yield start
        return
    if task_type == tables.PICK_TWO:
        yield from _routes_for_two(start)
        return
    for item in house.wanted:
        with_item = start.fetch(item)
        if with_item is None:
            continue
        if task_type == tables.LOOK_IN_LIGHT:
            yield from _to_light(with_item, item)
        else:
            for changed in _changed(with_item, item):
                for target in house.targets(item):
                    yield changed.put(target, Purpose.DELIVER)


def _routes_for_two(start: _Route) -> Iterator[_Route]:
    house = start.house
    for target in range(len(house.game.receptacles)):
        others = [i for i in house.wanted if start.state.places[i] != target]
        num_missing = 2 - (len(house.wanted) - len(others))
        for first in others:
            with_first = start.fetch(first)
            if with_first is None or target not in house.targets(first):
                continue
            after_first = with_first.put(target, Purpose.DELIVER)
            if num_missing <= 1:
                yield after_first
                continue
            for second in others:
                with_second = None if second == first else after_first.fetch(second)
                if with_second is not None:
                    yield with_second.put(target, Purpose.DELIVER)


def _to_light(route: _Route, item: int) -> Iterator[_Route]:
    house, name = route.house, route.house.game.items[item].name
    for lamp, thing in enumerate(house.game.items):
        if thing.kind == house.game.goal.lamp_kind and thing.is_toggleable:
            place = route.state.places[lamp]
            if place == IN_HAND:
                continue
            there = route.go(place, Purpose.LIGHT, name)
            is_used = there.state.toggled >> lamp & 1
            use = Action(Verb.USE, thing.name)
            yield there if is_used else there.act(use, Purpose.LIGHT, name)


def _changed(route: _Route, item: int) -> Iterator[_Route]:
    """Yield routes after which the item is as the goal asks."""
    house, name = route.house, route.house.game.items[item].name
    verb = STATION_VERBS.get(house.game.goal.task_type)
    if verb is None or house.changed(route.state) >> item & 1:
        yield route
        return
    for station in house.stations(item):
        there = route.go(station, Purpose.CHANGE, name)
        receptacle = house.game.receptacles[station].name
        yield there.act(Action(verb, name, receptacle), Purpose.CHANGE, name)
