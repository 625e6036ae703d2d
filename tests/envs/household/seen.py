"""Views for the tests of the pictures."""

from typing import Any

from hypothesis import strategies as st

from gtr_turbo.envs.household.icons import drawings
from gtr_turbo.envs.household.tables import OBJECT_KINDS, RECEPTACLES
from gtr_turbo.envs.household.view import SeenObject, SeenReceptacle, View

PLACE_KINDS = sorted({kind for kinds in RECEPTACLES.values() for kind in kinds})
DRAWN_KINDS = sorted(name for name in drawings() if " " not in name)
STATES = ("is_hot", "is_cool", "is_clean", "is_sliced", "is_on")
ROOM = (("cabinet 1", "cabinet"), ("cabinet 2", "cabinet"), ("fridge 1", "fridge"))


def thing(name: str, **states: bool) -> SeenObject:
    return SeenObject(name=name, kind=name.split()[0], **states)


def place(
    name: str, *contents: SeenObject, is_open: bool | None = None, is_hidden: bool = False
) -> SeenReceptacle:
    return SeenReceptacle(
        name=name,
        kind=name.split()[0],
        is_open=is_open,
        contents=None if is_hidden else contents,
    )


def view(
    *here: SeenReceptacle,
    hand: SeenObject | None = None,
    room: tuple[tuple[str, str], ...] = ROOM,
    goal: str = "put a mug in the fridge",
) -> View:
    return View(goal=goal, room=room, here=here, hand=hand)


def many(count: int) -> tuple[SeenObject, ...]:
    """Return objects of many kinds, no two of one name."""
    names = [f"{OBJECT_KINDS[i % len(OBJECT_KINDS)]} {i + 1}" for i in range(count)]
    return tuple(thing(name) for name in names)


# Views are drawn as plain values and built in the test: the type checks inside a dataclass look at
# random entries, which hypothesis does not allow while it draws.

_kinds = st.one_of(st.sampled_from(DRAWN_KINDS), st.text(max_size=30))
_named = st.tuples(st.one_of(st.sampled_from(["mug 1", "mug 2", "fridge 10"]), st.text()), _kinds)
_objects = st.tuples(_named, st.tuples(*[st.booleans()] * len(STATES)))
_receptacles = st.tuples(
    _named, st.none() | st.booleans(), st.none() | st.lists(_objects, max_size=8)
)
any_values = st.tuples(
    st.lists(_named, max_size=12),
    st.lists(_receptacles, max_size=6),
    st.none() | _objects,
)
"""The parts of any view at all, also such as no game would show."""


def build_view(values: Any) -> View:
    """Return the view of what `any_values` has drawn."""
    room, receptacles, held = values
    return view(
        *[
            SeenReceptacle(
                name=name,
                kind=kind,
                is_open=is_open,
                contents=None if contents is None else tuple(map(_build_object, contents)),
            )
            for (name, kind), is_open, contents in receptacles
        ],
        hand=None if held is None else _build_object(held),
        room=tuple(room),
    )


def _build_object(values: Any) -> SeenObject:
    (name, kind), states = values
    return SeenObject(name=name, kind=kind, **dict(zip(STATES, states, strict=True)))
