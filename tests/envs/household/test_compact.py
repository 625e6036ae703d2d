import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from gtr_turbo.envs.household.compact import (
    CELL_SIDE,
    COMPACT_SIZE,
    MAX_COMPACT_CONTENTS,
    draw_compact,
)
from gtr_turbo.envs.household.tables import OPENABLE
from gtr_turbo.envs.household.view import View
from tests.envs.household.seen import (
    DRAWN_KINDS,
    STATES,
    any_values,
    build_view,
    many,
    place,
    thing,
    view,
)


def looks(shown: View) -> bytes:
    picture = draw_compact(shown)
    assert picture.shape == (*COMPACT_SIZE, 3)
    assert picture.dtype == np.uint8
    return picture.tobytes()


def changed_cells(first: View, second: View) -> set[tuple[int, int]]:
    """Return row and column of the cells that differ."""
    changed = (draw_compact(first) != draw_compact(second)).any(axis=2)
    return {(int(y) // CELL_SIDE, int(x) // CELL_SIDE) for y, x in np.argwhere(changed)}


def test_a_picture_is_eight_merged_patches() -> None:
    assert COMPACT_SIZE == (56, 112)
    assert CELL_SIDE == 28


@settings(max_examples=40, deadline=None)
@given(values=any_values)
def test_any_view_can_be_drawn_and_always_the_same(values: Any) -> None:
    shown = build_view(values)
    assert looks(shown) == looks(shown)


def test_a_picture_may_be_written_to() -> None:
    first = looks(view())
    draw_compact(view())[:] = 0
    assert looks(view()) == first


def test_each_thing_has_its_cell() -> None:
    empty = view(place("desk 1"))
    assert changed_cells(empty, view(place("bed 1"))) == {(0, 0)}
    assert changed_cells(empty, view(place("desk 1"), hand=thing("egg 1"))) == {(1, 0)}
    cells = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]
    for count in range(1, 7):
        full = view(place("desk 1", *many(count)))
        assert changed_cells(empty, full) == set(cells[:count])


def test_a_closed_receptacle_hides_its_contents() -> None:
    hidden = [
        place("fridge 1", is_open=False, is_hidden=True),
        place("fridge 1", thing("mug 1"), is_open=False),
    ]
    assert looks(view(hidden[0])) == looks(view(hidden[1]))


@pytest.mark.parametrize("kind", sorted(OPENABLE))
def test_open_empty_and_closed_differ(kind: str) -> None:
    shown = [
        place(f"{kind} 1", is_open=True),
        place(f"{kind} 1", is_open=False, is_hidden=True),
        place(f"{kind} 1", thing("mug 1"), is_open=True),
    ]
    assert len({looks(view(there)) for there in shown}) == 3


@pytest.mark.parametrize("num_others", [0, 9])
def test_each_set_of_states_is_visible(num_others: int) -> None:
    """In full size, and in half size among many."""
    on_top, in_hand = set[bytes](), set[bytes]()
    for values in itertools.product((False, True), repeat=len(STATES)):
        seen = thing("tomato 1", **dict(zip(STATES, values, strict=True)))
        on_top.add(looks(view(place("desk 1", *many(num_others), seen))))
        in_hand.add(looks(view(place("desk 1", *many(num_others)), hand=seen)))
    assert len(on_top) == len(in_hand) == 2 ** len(STATES)


def test_any_two_kinds_differ() -> None:
    first = {looks(view(place(f"{k} 1"))) for k in DRAWN_KINDS}
    second = {looks(view(place("desk 1", thing(f"{k} 1")))) for k in DRAWN_KINDS}
    third = {looks(view(hand=thing(f"{k} 1"))) for k in DRAWN_KINDS}
    fourth = {looks(view(room=((f"{k} 1", k),))) for k in DRAWN_KINDS}
    assert {len(each) for each in (first, second, third, fourth)} == {len(DRAWN_KINDS)}


def test_numbers_tell_two_of_a_kind_apart() -> None:
    cabinets = {looks(view(place(f"cabinet {n}", is_open=False))) for n in range(1, 20)}
    assert len(cabinets) == 19
    contents = [("mug 1", "mug 2"), ("mug 2", "mug 1"), ("mug 1",), ("mug 2",)]
    shown = {looks(view(place("desk 1", *[thing(name) for name in c]))) for c in contents}
    assert len(shown) == len(contents)


def test_all_contents_are_shown_up_to_the_limit_and_then_counted() -> None:
    counts = [*range(MAX_COMPACT_CONTENTS + 5), 500]
    assert len({looks(view(place("desk 1", *many(count)))) for count in counts}) == len(counts)
    full = many(MAX_COMPACT_CONTENTS)
    for i in range(MAX_COMPACT_CONTENTS):
        other = (*full[:i], thing("chair 1"), *full[i + 1 :])
        assert looks(view(place("desk 1", *full))) != looks(view(place("desk 1", *other)))


def test_the_room_shows_each_kind_once_and_counts_the_rest() -> None:
    kinds = DRAWN_KINDS[:30]
    rooms = [tuple((f"{kind} 1", kind) for kind in kinds[:count]) for count in range(31)]
    assert len({looks(view(room=room)) for room in rooms}) == len(rooms)
    twice = tuple((f"shelf {n}", "shelf") for n in (1, 2))
    assert looks(view(room=twice)) == looks(view(room=twice[:1]))


def test_several_receptacles_at_one_location_are_all_shown() -> None:
    plain = looks(view(place("shelf 1"), place("shelf 2")))
    assert plain != looks(view(place("shelf 1"), place("shelf 3")))
    assert plain != looks(view(place("shelf 1"), place("shelf 2", thing("egg 1"))))
    crowds = {looks(view(*[place("shelf 1")] * n)) for n in range(2, 8)}
    assert len(crowds) == 6
