import hashlib

import numpy as np
import PIL
import pytest

from gtr_turbo.envs.cards.hands import SUITS, Card
from gtr_turbo.envs.cards.render import draw_compact, draw_table

GREEN = (0x35, 0x65, 0x4D)
WHITE = (255, 255, 255)
FOUR = tuple(Card(rank, suit) for rank, suit in zip((1, 10, 13, 8), SUITS, strict=True))
TWO = (Card(5, "S"), Card(12, "H"))
DECK = [Card(rank, suit) for rank in range(1, 14) for suit in SUITS]

GOLDEN = {
    "four, empty": "3d9d3f63402c9d96",
    "four, formula": "395ba01ae02e7b7a",
    "two, formula": "cb65f3a8b319504f",
    "compact four": "f53e021135386599",
    "compact deck": "717ee41a3aa87125",
}


def pixel(picture: np.ndarray, left: int, top: int) -> tuple[int, ...]:
    return tuple(int(value) for value in picture[top, left])


def pictures() -> dict[str, np.ndarray]:
    return {
        "four, empty": draw_table(FOUR, ()),
        "four, formula": draw_table(FOUR, ("(", "10", "-", "8", ")", "*")),
        "two, formula": draw_table(TWO, ("5", "*")),
        "compact four": draw_compact(FOUR),
        "compact deck": draw_compact(tuple(DECK)),
    }


@pytest.mark.skipif(PIL.__version__ != "13.0.0", reason="glyphs differ between Pillow versions")
@pytest.mark.parametrize("name", list(GOLDEN))
def test_golden_pictures(name: str) -> None:
    assert hashlib.sha256(pictures()[name].tobytes()).hexdigest()[:16] == GOLDEN[name]


def test_the_table_has_the_lineages_geometry() -> None:
    """Cards 67 × 93 at left 5, 78, 152, 226 and top 103 (method: 300 pixels, four cards)."""
    picture = draw_table(FOUR, ())
    assert picture.shape == (300, 300, 3)
    assert picture.dtype == np.uint8
    middle = picture[149]
    is_table = (middle == GREEN).all(axis=1)
    edges = np.flatnonzero(np.diff(is_table.astype(int)))
    assert edges.tolist() == [4, 71, 77, 144, 151, 218, 225, 292]
    column = (picture[:200, 40] == GREEN).all(axis=1)
    assert np.flatnonzero(np.diff(column.astype(int))).tolist() == [102, 195]
    assert pixel(picture, 0, 0) == pixel(picture, 299, 299) == GREEN


def test_two_cards_are_larger() -> None:
    """⌊150 · 0.9⌋ = 135 wide, 189 high, left 5 and 153, top 55."""
    picture = draw_table(TWO, ())
    is_table = (picture[149] == GREEN).all(axis=1)
    assert np.flatnonzero(np.diff(is_table.astype(int))).tolist() == [4, 139, 152, 287]
    column = (picture[:, 70] == GREEN).all(axis=1)
    assert np.flatnonzero(np.diff(column.astype(int)))[:2].tolist() == [54, 243]


def text_box(picture: np.ndarray, from_row: int) -> tuple[int, int, int, int]:
    """Return first row, last row, first and last column that are not the table's green."""
    written = (picture[from_row:] != GREEN).any(axis=2)
    rows, columns = np.flatnonzero(written.any(axis=1)), np.flatnonzero(written.any(axis=0))
    return rows[0] + from_row, rows[-1] + from_row, columns[0], columns[-1]


def test_the_formula_stands_below_the_cards() -> None:
    top, bottom, left, _ = text_box(draw_table(FOUR, ("7",)), 200)
    assert 210 <= top < 220
    assert 240 < bottom < 260
    assert 10 <= left < 15
    empty_bottom = text_box(draw_table(FOUR, ()), 200)[1]
    assert empty_bottom < 232  # only "Formula:"


@pytest.mark.parametrize(("hand", "num_pairs"), [(FOUR, 12), (TWO, 7)], ids=["four", "two"])
def test_long_formulas_go_on_in_further_lines(hand: tuple[Card, ...], num_pairs: int) -> None:
    long = ("10", "+") * num_pairs
    _, bottom, _, right = text_box(draw_table(hand, long), 246)
    assert right <= 290
    assert bottom > 265
    assert not np.array_equal(draw_table(hand, long), draw_table(hand, long[:-1]))


def test_a_formula_without_end_is_cut_at_the_edge() -> None:
    assert draw_table(FOUR, ("+",) * 300).shape == (300, 300, 3)


def test_compact_cards_are_cells_of_28_pixels() -> None:
    assert draw_compact(TWO).shape == (28, 56, 3)
    picture = draw_compact(FOUR)
    assert picture.shape == (28, 112, 3)
    for place, card in enumerate(FOUR):
        assert np.array_equal(picture[:, 28 * place : 28 * (place + 1)], draw_compact((card,)))


def test_every_card_looks_different() -> None:
    tables = {draw_table((card, *FOUR[1:]), ()).tobytes() for card in DECK}
    compact = {draw_compact((card,)).tobytes() for card in DECK}
    assert len(tables) == len(compact) == 52


def test_red_suits_are_red() -> None:
    for card in DECK:
        cell = draw_compact((card,)).astype(int)
        redness = (cell[..., 0] - cell[..., 1]).max()
        assert (redness > 150) == (card.suit in "HD")


def test_glyphs_stay_inside_their_card() -> None:
    """The frame of a cell is whole: nothing is drawn over it, nothing is cut off."""
    for card in DECK:
        cell = draw_compact((card,))
        frame = np.concatenate([cell[0], cell[-1], cell[:, 0], cell[:, -1]])
        assert (frame == frame[0]).all()


def test_pictures_are_fresh_copies() -> None:
    for draw in (lambda: draw_table(FOUR, ("7",)), lambda: draw_compact(FOUR)):
        before = draw()
        kept = before.copy()
        before[:] = 0
        assert np.array_equal(draw(), kept)
