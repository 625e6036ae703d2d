import hashlib

import numpy as np
import PIL
import pytest

from gtr_turbo.envs.blackjack.render import draw_compact, draw_table
from gtr_turbo.envs.cards.hands import SUITS, Card
from gtr_turbo.envs.cards.render import draw_card, draw_cell

GREEN = (0x35, 0x65, 0x4D)
DECK = [Card(rank, suit) for rank in range(1, 14) for suit in SUITS]
OWN = (Card(1, "H"), Card(13, "S"))
DEALT = (Card(5, "D"), Card(9, "C"))
LONG = tuple(DECK[::7])

GOLDEN = {
    "table": "4e7714ca04f00fbc",
    "table, open": "a41e18184849f596",
    "compact": "d3dadd234b19a488",
    "compact, open": "653dc26df2a16ecf",
}


def pictures() -> dict[str, np.ndarray]:
    return {
        "table": draw_table(OWN, DEALT, open_hand=False),
        "table, open": draw_table(LONG, LONG[:5], open_hand=True),
        "compact": draw_compact(OWN, DEALT, open_hand=False),
        "compact, open": draw_compact(LONG, LONG[:5], open_hand=True),
    }


@pytest.mark.skipif(PIL.__version__ != "13.0.0", reason="glyphs differ between Pillow versions")
@pytest.mark.parametrize("name", list(GOLDEN))
def test_golden_pictures(name: str) -> None:
    assert hashlib.sha256(pictures()[name].tobytes()).hexdigest()[:16] == GOLDEN[name]


def test_the_table_has_the_lineages_geometry() -> None:
    """Cards of 70 × 98 at (5, 25), its back at (78, 25); the player's at (5, 150), (79, 150)."""
    picture = draw_table(OWN, DEALT, open_hand=False)
    assert picture.shape == (300, 300, 3)
    assert picture.dtype == np.uint8
    assert np.array_equal(picture[25:123, 5:75], draw_card(DEALT[0], 70, 98))
    assert np.array_equal(picture[150:248, 5:75], draw_card(OWN[0], 70, 98))
    assert np.array_equal(picture[150:248, 79:149], draw_card(OWN[1], 70, 98))
    is_table = (picture == GREEN).all(axis=2)
    assert not is_table[25:123, 78:148].any()
    assert is_table[25:123, 148:].all()
    assert is_table[248:].all()
    for top in (5, 130):
        assert not is_table[top : top + 19, 5:70].all()


def test_the_back_tells_nothing_and_the_end_shows_all() -> None:
    for draw in (draw_table, draw_compact):
        hidden = {draw(OWN, (DEALT[0], card), open_hand=False).tobytes() for card in DECK}
        shown = {draw(OWN, (DEALT[0], card), open_hand=True).tobytes() for card in DECK}
        assert (len(hidden), len(shown)) == (1, 52)
    assert np.array_equal(
        draw_table(OWN, DEALT, open_hand=True)[25:123, 79:149], draw_card(DEALT[1], 70, 98)
    )


@pytest.mark.parametrize("num_cards", range(2, 11))
def test_every_card_of_a_long_hand_can_be_told(num_cards: int) -> None:
    """Changing any one card of up to ten changes both pictures."""
    cards = LONG[:1] * num_cards
    for draw in (draw_table, draw_compact):
        base = draw(cards, DEALT, open_hand=False)
        for place in range(num_cards):
            other = (*cards[:place], Card(9, "C"), *cards[place + 1 :])
            assert not np.array_equal(draw(other, DEALT, open_hand=False), base)


def test_cards_never_leave_the_picture() -> None:
    for num_cards in (4, 5, 8, 22):
        hand = (DECK * 2)[:num_cards]
        picture = draw_table(tuple(hand), DEALT, open_hand=False)
        last = draw_card(hand[-1], 70, 98)
        row = picture[150:248]
        found = [left for left in range(231) if np.array_equal(row[:, left : left + 70], last)]
        assert found
        assert (picture[150:248, 299] == GREEN).all()


def test_a_compact_picture_is_two_rows_of_four_cells() -> None:
    picture = draw_compact(OWN, DEALT, open_hand=False)
    assert picture.shape == (56, 112, 3)
    assert np.array_equal(picture[:28, :28], draw_cell(DEALT[0]))
    assert np.array_equal(picture[28:, 28:56], draw_cell(OWN[1]))
    assert (picture[:, 56:] == GREEN).all()
    assert not np.array_equal(picture[:28, 28:56], draw_cell(DEALT[1]))


@pytest.mark.parametrize("num_cards", [2, 4, 5, 8, 12, 13, 22])
def test_a_compact_picture_keeps_its_size(num_cards: int) -> None:
    hand = tuple((DECK * 2)[:num_cards])
    for open_hand in (False, True):
        assert draw_compact(hand, hand, open_hand=open_hand).shape == (56, 112, 3)


def test_every_card_looks_different() -> None:
    for draw in (draw_table, draw_compact):
        own = {draw((card, OWN[1]), DEALT, open_hand=False).tobytes() for card in DECK}
        dealt = {draw(OWN, (card, DEALT[1]), open_hand=False).tobytes() for card in DECK}
        assert len(own) == len(dealt) == 52


def test_pictures_are_fresh_copies() -> None:
    for draw in (draw_table, draw_compact):
        before = draw(OWN, DEALT, open_hand=False)
        kept = before.copy()
        before[:] = 0
        assert np.array_equal(draw(OWN, DEALT, open_hand=False), kept)
