import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from gtr_turbo.envs.household.render import ROOM_SIDE, draw_room
from gtr_turbo.envs.household.tables import OBJECT_KINDS, OPENABLE
from gtr_turbo.envs.household.view import View
from tests.envs.household.seen import (
    DRAWN_KINDS,
    PLACE_KINDS,
    STATES,
    any_values,
    build_view,
    many,
    place,
    thing,
    view,
)

BOTH = pytest.mark.parametrize("labels", [False, True])


def looks(shown: View, *, labels: bool = False) -> bytes:
    picture = draw_room(shown, labels=labels)
    assert picture.shape == (ROOM_SIDE, ROOM_SIDE, 3)
    assert picture.dtype == np.uint8
    return picture.tobytes()


@settings(max_examples=40, deadline=None)
@given(values=any_values)
def test_any_view_can_be_drawn_and_always_the_same(values: Any) -> None:
    shown = build_view(values)
    for labels in (False, True):
        assert looks(shown, labels=labels) == looks(shown, labels=labels)


def test_a_picture_may_be_written_to() -> None:
    shown = view()
    first = looks(shown)
    draw_room(shown, labels=False)[:] = 0
    assert looks(shown) == first


@BOTH
def test_a_closed_receptacle_hides_its_contents(labels: bool) -> None:
    hidden = [
        place("fridge 1", is_open=False, is_hidden=True),
        place("fridge 1", is_open=False),
        place("fridge 1", thing("mug 1"), is_open=False),
    ]
    assert len({looks(view(there), labels=labels) for there in hidden}) == 1


@BOTH
def test_the_goal_is_not_in_the_picture(labels: bool) -> None:
    assert looks(view(goal="a"), labels=labels) == looks(view(goal="b"), labels=labels)


@BOTH
@pytest.mark.parametrize("kind", sorted(OPENABLE))
def test_open_empty_and_closed_differ(kind: str, labels: bool) -> None:
    shown = [
        place(f"{kind} 1", is_open=True),
        place(f"{kind} 1", is_open=False, is_hidden=True),
        place(f"{kind} 1", thing("mug 1"), is_open=True),
    ]
    assert len({looks(view(there), labels=labels) for there in shown}) == 3


@BOTH
@pytest.mark.parametrize("is_held", [False, True])
def test_each_set_of_states_is_visible(labels: bool, is_held: bool) -> None:
    pictures: set[bytes] = set()
    for values in itertools.product((False, True), repeat=len(STATES)):
        seen = thing("tomato 1", **dict(zip(STATES, values, strict=True)))
        there = place("countertop 1", *(() if is_held else (seen,)))
        pictures.add(looks(view(there, hand=seen if is_held else None), labels=labels))
    assert len(pictures) == 2 ** len(STATES)


def test_any_two_objects_differ() -> None:
    on_top = {looks(view(place("desk 1", thing(f"{k} 1")))) for k in DRAWN_KINDS}
    in_hand = {looks(view(hand=thing(f"{k} 1"))) for k in DRAWN_KINDS}
    assert len(on_top) == len(in_hand) == len(DRAWN_KINDS)


def test_any_two_receptacles_differ() -> None:
    close = {looks(view(place(f"{k} 1"))) for k in DRAWN_KINDS}
    afar = {looks(view(room=((f"{k} 1", k),))) for k in DRAWN_KINDS}
    assert len(close) == len(afar) == len(DRAWN_KINDS)


@BOTH
def test_numbers_tell_two_of_a_kind_apart(labels: bool) -> None:
    contents = [("mug 1", "mug 2"), ("mug 2", "mug 1"), ("mug 1", "mug 3"), ("mug 1",), ("mug 2",)]
    pictures = {
        looks(view(place("desk 1", *[thing(name) for name in names])), labels=labels)
        for names in contents
    }
    assert len(pictures) == len(contents)
    cabinets = {looks(view(place(f"cabinet {n}", is_open=True)), labels=labels) for n in (1, 2)}
    assert len(cabinets) == 2


def test_labels_are_words_and_icons_are_not() -> None:
    """Two names of one kind and number look alike without labels, but not with them."""
    one, other = (
        view(room=(("fridge 1", "fridge"),), hand=thing(name)) for name in ("mug 1", "mug x 1")
    )
    assert looks(one) == looks(other)
    assert looks(one, labels=True) != looks(other, labels=True)
    assert looks(one) != looks(one, labels=True)


@BOTH
@pytest.mark.parametrize("kind", PLACE_KINDS)
def test_contents_show_in_each_kind_of_receptacle(kind: str, labels: bool) -> None:
    is_open = True if kind in OPENABLE else None
    for held in (thing("mug 1"), thing("egg 1")):
        assert looks(view(place(f"{kind} 1", held, is_open=is_open)), labels=labels) != looks(
            view(place(f"{kind} 1", is_open=is_open)), labels=labels
        )


@BOTH
@pytest.mark.parametrize("kind", ["desk", "sinkbasin", "zorb"])
def test_of_too_many_things_the_rest_is_counted(kind: str, labels: bool) -> None:
    """The last place says how many are missing: 3 more change only that number."""
    shown = [view(place(f"{kind} 1", *many(count))) for count in (200, 203)]
    first, second = (draw_room(each, labels=labels).astype(int) for each in shown)
    changed = np.argwhere((first != second).any(axis=2))
    assert len(changed) > 0
    assert (changed.max(axis=0) - changed.min(axis=0) < 30).all()


@BOTH
@pytest.mark.parametrize("count", [0, 1, 12, 13, 24, 32, 40, 54])
def test_each_receptacle_of_the_room_is_shown(count: int, labels: bool) -> None:
    room = tuple((f"shelf {i + 1}", "shelf") for i in range(count))
    plain = looks(view(room=room), labels=labels)
    for i in range(count):
        other = (*room[:i], (f"bed {i + 1}", "bed"), *room[i + 1 :])
        assert looks(view(room=other), labels=labels) != plain


def test_a_room_with_too_many_receptacles_counts_the_rest() -> None:
    rooms = [tuple((f"shelf {i + 1}", "shelf") for i in range(n)) for n in (54, 55, 70, 10_000)]
    assert len({looks(view(room=room)) for room in rooms}) == len(rooms)


@BOTH
def test_several_receptacles_at_one_location_are_all_shown(labels: bool) -> None:
    kinds = ["stoveburner", "cabinet", "drawer", "fridge"]
    for count in range(1, 5):
        there = [place(f"{kind} 1", is_open=False) for kind in kinds[:count]]
        plain = looks(view(*there), labels=labels)
        for i in range(count):
            opened = place(f"{kinds[i]} 1", thing("egg 1"), is_open=True)
            assert looks(view(*there[:i], opened, *there[i + 1 :]), labels=labels) != plain
    crowds = {looks(view(*[place("shelf 1")] * n), labels=labels) for n in (4, 5, 6)}
    assert len(crowds) == 3


@BOTH
def test_the_hand_stays_in_its_corner(labels: bool) -> None:
    empty = draw_room(view(place("desk 1")), labels=labels)
    for kind in OBJECT_KINDS:
        holding = draw_room(view(place("desk 1"), hand=thing(f"{kind} 1")), labels=labels)
        changed = np.argwhere((holding != empty).any(axis=2))
        assert changed.min() >= 244
