import hashlib

import numpy as np
import PIL
import pytest

from gtr_turbo.envs.numberline.render import draw_compact, draw_lineage

GOLDEN = {
    "lineage": "775c6914fcee4430",
    "compact one digit": "8015844324dd5abe",
    "compact two digits": "70bcd250d1ae3c92",
}


def pictures() -> dict[str, np.ndarray]:
    return {
        "lineage": draw_lineage(3, 12),
        "compact one digit": np.concatenate([draw_compact(n, 9 - n) for n in range(10)]),
        "compact two digits": np.concatenate([draw_compact(n, 109 - n) for n in range(10, 100)]),
    }


@pytest.mark.skipif(PIL.__version__ != "13.0.0", reason="glyphs differ between Pillow versions")
@pytest.mark.parametrize("name", list(GOLDEN))
def test_golden_pictures(name: str) -> None:
    assert hashlib.sha256(pictures()[name].tobytes()).hexdigest()[:16] == GOLDEN[name]


def text_boxes(picture: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return (top, bottom, left, right) of the upper and of the lower half's text."""
    boxes: list[tuple[int, int, int, int]] = []
    for first in (0, 150):
        ink = (picture[first : first + 150] != 255).any(axis=2)
        rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
        boxes.append((rows[0] + first, rows[-1] + first, columns[0], columns[-1]))
    return boxes


def test_the_lineages_picture_has_its_geometry() -> None:
    """Text of 36 pixels from (30, 60) and (30, 180), black on white, 300 × 300 pixels."""
    picture = draw_lineage(99, 88)
    assert picture.shape == (300, 300, 3)
    assert picture.dtype == np.uint8
    assert tuple(picture[0, 0]) == (255, 255, 255)
    assert picture.min() == 0
    (top, bottom, left, right), (low_top, low_bottom, low_left, low_right) = text_boxes(picture)
    assert 60 <= top < bottom < 105
    assert 180 <= low_top < low_bottom < 225
    assert 30 <= left < 36
    assert 30 <= low_left < 36
    assert right < 290
    assert low_right < 290


def test_target_and_current_have_their_own_places() -> None:
    base, other_target, other_current = draw_lineage(1, 2), draw_lineage(1, 3), draw_lineage(4, 2)
    assert np.array_equal(base[150:], other_target[150:])
    assert np.array_equal(base[:150], other_current[:150])
    assert not np.array_equal(base[:150], other_target[:150])
    assert not np.array_equal(base[150:], other_current[150:])


def test_a_compact_picture_is_two_cells() -> None:
    picture = draw_compact(7, 3)
    assert picture.shape == (28, 56, 3)
    assert np.array_equal(draw_compact(7, 4)[:, 28:], picture[:, 28:])
    assert np.array_equal(draw_compact(8, 3)[:, :28], picture[:, :28])
    assert tuple(picture[0, 0]) != tuple(picture[0, 55])


def test_one_number_looks_different_as_target_and_as_current() -> None:
    for number in range(100):
        picture = draw_compact(number, number)
        assert not np.array_equal(picture[:, :28], picture[:, 28:])


def test_every_number_looks_different_and_stays_inside_its_cell() -> None:
    cells = [draw_compact(number, 0)[:, 28:] for number in range(100)]
    assert len({cell.tobytes() for cell in cells}) == 100
    for cell in cells:
        frame = np.concatenate([cell[0], cell[-1], cell[:, 0], cell[:, -1]])
        assert (frame == 255).all()
    assert len({draw_lineage(number, 0).tobytes() for number in range(100)}) == 100


def test_pictures_are_fresh_copies() -> None:
    for draw in (draw_lineage, draw_compact):
        before = draw(1, 2)
        kept = before.copy()
        before[:] = 0
        assert np.array_equal(draw(1, 2), kept)
