"""From a state to what the agent may see of it, and to the same in words."""

from gtr_turbo.envs.household.engine import NOTHING, Household, State
from gtr_turbo.envs.household.view import SeenObject, SeenReceptacle, View


def see(house: Household, state: State, goal: str) -> View:
    """Return what is in sight: what stands here, what lies in it if it is open, and the hand.

    Nothing is seen of the rest of the room but which receptacles there are.
    """
    return View(
        goal=goal,
        room=tuple((each.name, each.kind) for each in house.game.receptacles),
        here=tuple(
            _see_receptacle(house, state, index) for index in house.receptacles_at[state.location]
        ),
        hand=None if state.held == NOTHING else _see_item(house, state, state.held),
    )


def _see_receptacle(house: Household, state: State, index: int) -> SeenReceptacle:
    receptacle = house.game.receptacles[index]
    contents = None
    if house.is_visible(state, index):
        inside = [item for item, place in enumerate(state.places) if place == index]
        contents = tuple(_see_item(house, state, item) for item in inside)
    return SeenReceptacle(
        name=receptacle.name,
        kind=receptacle.kind,
        is_open=contents is not None if receptacle.is_openable else None,
        contents=contents,
    )


def _see_item(house: Household, state: State, index: int) -> SeenObject:
    item = house.game.items[index]
    return SeenObject(
        name=item.name,
        kind=item.kind,
        is_hot=bool(state.hot >> index & 1),
        is_cool=bool(state.cool >> index & 1),
        is_clean=bool(state.clean >> index & 1),
        is_sliced=bool(state.sliced >> index & 1),
        is_on=bool(state.toggled >> index & 1),
    )


def tell(view: View) -> str:
    """Return what is in sight in words."""
    hand = "Your hand is empty." if view.hand is None else f"You hold {name_with_marks(view.hand)}."
    if not view.here:
        names = ", ".join(name for name, _ in view.room)
        return f"You are in the middle of a room. In it there are: {names}. {hand}"
    return " ".join((*(f"You are at {describe(each)}." for each in view.here), hand))


def describe(receptacle: SeenReceptacle) -> str:
    """Return a receptacle's name with what can be seen of it, as the end of a sentence."""
    if receptacle.contents is None:
        return f"{receptacle.name}, which is closed"
    opened = "which is open and holds" if receptacle.is_open else "which holds"
    things = ", ".join(name_with_marks(each) for each in receptacle.contents) or "nothing"
    return f"{receptacle.name}, {opened} {things}"


def name_with_marks(seen: SeenObject) -> str:
    """Return an object's name, with what can be seen of its condition."""
    marks = {
        "hot": seen.is_hot,
        "cool": seen.is_cool,
        "clean": seen.is_clean,
        "sliced": seen.is_sliced,
        "switched on": seen.is_on,
    }
    found = [word for word, holds in marks.items() if holds]
    return f"{seen.name} ({', '.join(found)})" if found else seen.name
