"""Pictures of blackjack: the lineage's table, and one of cells for tiny models.

While a hand is played the dealer shows one card and a back, after its end all cards. The same
state always has the same bytes (under one version of Pillow).
"""

from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from gtr_turbo.envs.cards.hands import Card, Hand
from gtr_turbo.envs.cards.render import (
    EDGE,
    GREEN,
    TABLE_SIDE,
    WHITE,
    draw_card,
    draw_cell,
    suit_color,
)
from gtr_turbo.envs.drawing import CELL_SIDE, Color, Picture, load_font

CARD_WIDTH, CARD_HEIGHT = 70, 98
"""A card on the table, in pixels."""
COMPACT_COLUMNS = 4
"""Cells in a row of the compact picture; a longer hand has narrower cards."""

_BLUE: Color = (40, 60, 130)
_LIGHT_BLUE: Color = (110, 130, 200)
_LEFT, _PITCH = 5, 74
_DEALER_TOP, _PLAYER_TOP = 25, 150
_LABEL_RISE, _LABEL_SIZE = 20, 16
_BACK_LEFT = 78
_HATCH = 7
_NARROWEST = 9
"""Least width of a compact card: of a hand of more than twelve, the last twelve are shown."""


def draw_table(player: Hand, dealer: Hand, *, open_hand: bool) -> Picture:
    """Return the 300 × 300 table: the dealer's cards above, the player's below.

    The geometry is the lineage's: cards of 70 × 98 pixels, the dealer's from (5, 25), the player's
    from (5, 150), 74 pixels apart. The fifth card would lie outside, so from there on the cards
    overlap; each still shows its left corner with rank and suit.
    """
    picture = _empty_table().copy()
    if open_hand:
        _lay_out(picture, dealer, _DEALER_TOP)
    else:
        _lay_out(picture, dealer[:1], _DEALER_TOP)
        bottom, right = _DEALER_TOP + CARD_HEIGHT, _BACK_LEFT + CARD_WIDTH
        picture[_DEALER_TOP:bottom, _BACK_LEFT:right] = _card_back(CARD_WIDTH, CARD_HEIGHT)
    _lay_out(picture, player, _PLAYER_TOP)
    return picture


def draw_compact(player: Hand, dealer: Hand, *, open_hand: bool) -> Picture:
    """Return 56 × 112 pixels: the dealer's row above, the player's below, a cell for each card."""
    above = _row(dealer) if open_hand else _row(dealer[:1])
    if not open_hand:
        above[:, CELL_SIDE : 2 * CELL_SIDE] = _card_back(CELL_SIDE, CELL_SIDE)
    return np.concatenate([above, _row(player)])


@lru_cache(maxsize=1)
def _empty_table() -> Picture:
    image = Image.new("RGB", (TABLE_SIDE, TABLE_SIDE), GREEN)
    pen, font = ImageDraw.Draw(image), load_font(_LABEL_SIZE, bold=True)
    pen.text((_LEFT, _DEALER_TOP - _LABEL_RISE), "Dealer", WHITE, font)
    pen.text((_LEFT, _PLAYER_TOP - _LABEL_RISE), "Player", WHITE, font)
    return np.asarray(image)


def _lay_out(picture: Picture, hand: Hand, top: int) -> None:
    """Put a hand into a picture, from left to right, later cards over earlier ones."""
    room = TABLE_SIDE - _LEFT - CARD_WIDTH - 1
    pitch = min(_PITCH, room // max(1, len(hand) - 1))
    for place, card in enumerate(hand):
        left = _LEFT + place * pitch
        face = draw_card(card, CARD_WIDTH, CARD_HEIGHT)
        picture[top : top + CARD_HEIGHT, left : left + CARD_WIDTH] = face


@lru_cache(maxsize=4)
def _card_back(width: int, height: int) -> Picture:
    """Return a card's back: blue with a lattice."""
    image = Image.new("RGB", (width, height), _BLUE)
    pen = ImageDraw.Draw(image)
    for start in range(-height, width, _HATCH):
        pen.line((start, 0, start + height, height), fill=_LIGHT_BLUE)
        pen.line((start, height, start + height, 0), fill=_LIGHT_BLUE)
    pen.rectangle((0, 0, width - 1, height - 1), outline=EDGE)
    return np.asarray(image)


def _row(hand: Hand) -> Picture:
    """Return a row: a cell for each card, narrower ones where it holds too few, then green."""
    row = np.full((CELL_SIDE, COMPACT_COLUMNS * CELL_SIDE, 3), GREEN, np.uint8)
    is_narrow = len(hand) > COMPACT_COLUMNS
    width = max(row.shape[1] // len(hand), _NARROWEST) if is_narrow else CELL_SIDE
    for place, card in enumerate(hand[-(row.shape[1] // width) :]):
        cell = _narrow_cell(card, width) if is_narrow else draw_cell(card)
        row[:, place * width : (place + 1) * width] = cell
    return row


@lru_cache(maxsize=256)
def _narrow_cell(card: Card, width: int) -> Picture:
    """Return a cell less wide than high: the rank, as large as it fits."""
    image = Image.new("RGB", (width, CELL_SIDE), WHITE)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, width - 1, CELL_SIDE - 1), outline=EDGE)
    font = load_font(width - 2, bold=True)
    pen.text((width / 2, CELL_SIDE / 2), card.face, suit_color(card.suit), font, anchor="mm")
    return np.asarray(image)
