import itertools

import numpy as np
import pytest

from gtr_turbo.envs.household.tiles import (
    more_tile,
    number_of,
    numbers_shown,
    object_tile,
    place_tile,
    text_tile,
)
from tests.envs.household.seen import STATES, thing


@pytest.mark.parametrize(
    ("name", "number"),
    [("mug 1", "1"), ("mug 12", "12"), ("mug", ""), ("", ""), ("mug ²", ""), ("a b 3", "3")],
)
def test_the_number_is_the_digits_at_the_end(name: str, number: str) -> None:
    assert number_of(name) == number


def test_numbers_stand_only_where_there_are_others_of_the_kind() -> None:
    things = [("mug 1", "mug"), ("egg 1", "egg"), ("pot 2", "pot")]
    assert numbers_shown(things, ["mug", "egg", "pot"]) == ["", "", "2"]
    assert numbers_shown(things, ["mug", "egg", "pot", "mug"]) == ["1", "", "2"]


@pytest.mark.parametrize("side", [14, 28, 64])
def test_each_set_of_states_looks_different(side: int) -> None:
    sets = itertools.chain.from_iterable(itertools.combinations(STATES, n) for n in range(6))
    tiles = {
        object_tile(thing("potato 1", **dict.fromkeys(states, True)), "", side).tobytes()
        for states in sets
    }
    assert len(tiles) == 2 ** len(STATES)


def test_a_number_is_written() -> None:
    plain, first, second = (object_tile(thing("mug 1"), number, 28) for number in ("", "1", "2"))
    assert len({plain.tobytes(), first.tobytes(), second.tobytes()}) == 3
    upper = (0, 0, 28, 10)
    assert plain.crop(upper).tobytes() == first.crop(upper).tobytes()


def test_a_place_has_an_edge_only_if_it_opens() -> None:
    edges = {
        is_open: place_tile("safe", is_open, "", 28).getpixel((14, 0))
        for is_open in (None, True, False)
    }
    assert edges[True] == (60, 156, 72, 255)
    assert edges[False] == (214, 48, 44, 255)
    assert edges[None] not in (edges[True], edges[False])


def test_text_is_squeezed_when_it_is_too_wide() -> None:
    short, long = text_tile("mug 1", 9, 60), text_tile("peppershaker 12", 9, 60)
    assert short.width < 40
    assert long.width == 60
    assert short.height == long.height
    assert (np.asarray(long) < 120).any()


@pytest.mark.parametrize("text", ["", "\n", "\ud800", "w" * 100_000])
def test_any_text_can_be_written(text: str) -> None:
    assert 1 <= text_tile(text, 9, 60).width <= 60


def test_a_count_of_the_rest_is_written() -> None:
    assert more_tile(3, 28).tobytes() != more_tile(4, 28).tobytes()
    assert more_tile(10**9, 14).size == (14, 14)
