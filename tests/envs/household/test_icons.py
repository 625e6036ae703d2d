import itertools
import string

import numpy as np
import pytest
from PIL import Image

from gtr_turbo.envs.household import icons
from gtr_turbo.envs.household.icons import drawing_of, drawings, icon, is_known, read_drawing
from gtr_turbo.envs.household.tables import OBJECT_KINDS, OPENABLE
from tests.envs.household.seen import DRAWN_KINDS, PLACE_KINDS


def pixels(image: Image.Image) -> np.ndarray:
    """Return what an icon looks like on white."""
    ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return np.asarray(Image.alpha_composite(ground, image).convert("RGB")).astype(int)


@pytest.mark.parametrize("kind", [*OBJECT_KINDS, *PLACE_KINDS, "floorlamp", "cart"])
def test_each_kind_of_the_games_has_an_icon_of_its_own(kind: str) -> None:
    assert is_known(kind)


@pytest.mark.parametrize("kind", sorted(OPENABLE))
def test_what_opens_looks_different_open(kind: str) -> None:
    closed, opened = (pixels(icon(kind, 28, 28, is_open=is_open)) for is_open in (False, True))
    assert (np.abs(closed - opened).max(axis=2) > 60).sum() > 40


@pytest.mark.parametrize("kind", PLACE_KINDS)
def test_each_receptacle_says_where_its_contents_are(kind: str) -> None:
    shown = drawing_of(kind, is_open=kind in OPENABLE)
    assert (shown.inside is None) != (shown.surface is None)


@pytest.mark.parametrize("side", [14, 28])
def test_no_two_icons_look_alike(side: int) -> None:
    """At least 1 pixel in 12 differs clearly, even between a roll and its cardboard."""
    seen = {
        name: pixels(icon(name.removesuffix(" open"), side, side, is_open=name.endswith(" open")))
        for name in drawings()
    }
    for (one, first), (other, second) in itertools.combinations(seen.items(), 2):
        num_different = (np.abs(first - second).max(axis=2) > 40).sum()
        assert num_different > side * side / 12, f"{one} and {other}"


@pytest.mark.parametrize("kind", DRAWN_KINDS)
def test_icons_fill_their_square_and_stand_out(kind: str) -> None:
    image = icon(kind, 28, 28)
    assert (image.size, image.mode) == ((28, 28), "RGBA")
    assert (np.asarray(image)[..., 3] > 128).mean() > 0.12


def test_shapes_stay_on_the_grid() -> None:
    """A unit or two may stick out: a line's end, or a door that swings towards the viewer."""
    for name, drawing in drawings().items():
        corners = drawing.inside or (0.0, 0.0, 28.0, 28.0)
        assert 0 <= corners[0] < corners[2] <= icons.GRID, name
        assert 0 <= corners[1] < corners[3] <= icons.GRID, name
        for shape in drawing.shapes:
            inside = [n for n in shape.numbers if -1 <= n <= icons.GRID + 1]
            assert shape.form == "arc" or len(inside) == len(shape.numbers), name


def test_a_line_of_the_file_is_read() -> None:
    read = read_drawing("in 1 2 3 4; box red 1 2 3 4 5; flat oval white 6 7 8 9.5")
    assert read.inside == (1, 2, 3, 4)
    assert [(s.form, s.is_flat, s.numbers) for s in read.shapes] == [
        ("box", False, (1, 2, 3, 4, 5)),
        ("oval", True, (6, 7, 8, 9.5)),
    ]
    assert read.shapes[0].color == icons.COLORS["red"]
    assert read_drawing("on 7; box red 1 2 3 4").surface == 7


def test_the_file_names_no_form_that_is_not_drawn() -> None:
    forms = {shape.form for drawing in drawings().values() for shape in drawing.shapes}
    assert forms == {"box", "oval", "poly", "line", "arc"}


@pytest.mark.parametrize("kind", ["zorb", "", " ", "Größe", "\ud800", "x" * 9_999, "apple 1\n"])
def test_an_unknown_kind_gets_a_plain_tile(kind: str) -> None:
    assert not is_known(kind)
    assert icon(kind, 28, 28).tobytes() == icon.__wrapped__(kind, 28, 28).tobytes()
    assert (np.asarray(icon(kind, 28, 28))[..., 3] > 128).mean() > 0.5


def test_unknown_kinds_differ() -> None:
    kinds = [a + b for a in string.ascii_lowercase for b in "xyz"]
    assert len({icon(kind, 28, 28).tobytes() for kind in kinds}) == len(kinds)


def test_a_sliced_kind_without_an_icon_looks_like_the_whole() -> None:
    assert drawing_of("kiwisliced") == drawing_of("kiwisliced")
    assert drawing_of("eggsliced") == drawing_of("egg")
    assert icon("eggsliced", 28, 28).tobytes() == icon("egg", 28, 28).tobytes()


def test_icons_are_stretched_to_any_size() -> None:
    assert icon("fridge", 290, 150).size == (290, 150)
    assert icon("fridge", 1, 1).size == (1, 1)


def test_text_becomes_ascii() -> None:
    assert icons.readable("mug 1\n\ud800é") == "mug 1???"
