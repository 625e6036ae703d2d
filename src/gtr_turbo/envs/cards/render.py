"""Pictures of hands: the lineage's table, and a compact one for tiny models.

Faces show rank and suit in the bundled DejaVu fonts; other card tables use them too. Each face and
each word is drawn once and then copied. The same state always has the same bytes (under one version
of Pillow).
"""

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from PIL import Image, ImageDraw

from gtr_turbo.envs.cards.hands import Card, Hand
from gtr_turbo.envs.drawing import CELL_SIDE, Color, Picture, load_font

TABLE_SIDE = 300
"""Height and width of the table in pixels."""

GREEN: Color = (0x35, 0x65, 0x4D)
WHITE: Color = (255, 255, 255)
_BLACK: Color = (0, 0, 0)
_RED: Color = (200, 0, 0)
EDGE: Color = (70, 70, 70)
_SUIT_SIGNS = {"H": "♥", "S": "♠", "D": "♦", "C": "♣"}
_TEXT_LEFT = 10
_TEN_FACE = "10"


def draw_table(hand: Hand, formula: Sequence[str]) -> Picture:
    """Return the 300 × 300 table: cards in the middle, the formula in white below.

    The geometry is the lineage's: cards are ⌊300/n · 0.9⌋ pixels wide and 7/5 as high; card i
    begins at 5 + ⌊1.1 · i · width⌋. Long formulas go on in further lines.
    """
    picture = _table_with_hand(hand).copy()
    _write_formula(picture, len(hand), formula)
    return picture


def draw_compact(hand: Hand) -> Picture:
    """Return the cards side by side, one cell of 28 × 28 pixels for each; no formula."""
    return np.concatenate([draw_cell(card) for card in hand], axis=1)


@cache
def _empty_table() -> Picture:
    return np.full((TABLE_SIDE, TABLE_SIDE, 3), GREEN, np.uint8)


@lru_cache(maxsize=256)
def _table_with_hand(hand: Hand) -> Picture:
    width = int(TABLE_SIDE / len(hand) * 0.9)
    height = width * 7 // 5
    top = (TABLE_SIDE - height) // 2
    picture = _empty_table().copy()
    for i, card in enumerate(hand):
        left = 5 + int(i * width * 1.1)
        picture[top : top + height, left : left + width] = draw_card(card, width, height)
    return picture


@lru_cache(maxsize=256)
def draw_card(card: Card, width: int, height: int) -> Picture:
    """Return a card face: rank and suit in two corners, the suit large in the middle.

    Not to be written into: every caller gets the same array.
    """
    color = suit_color(card.suit)
    image = Image.new("RGB", (width, height), GREEN)
    pen = ImageDraw.Draw(image)
    radius = width // 12
    pen.rounded_rectangle((0, 0, width - 1, height - 1), radius, fill=WHITE, outline=EDGE)
    corner = _card_corner(card, width)
    inset = radius // 2 + 1
    image.paste(corner, (inset, inset))
    far = (width - inset - corner.width, height - inset - corner.height)
    image.paste(corner.transpose(Image.Transpose.ROTATE_180), far)
    sign_font = load_font(width * 60 // 100)
    pen.text((width / 2, height / 2), _SUIT_SIGNS[card.suit], color, sign_font, anchor="mm")
    return np.asarray(image)


def _card_corner(card: Card, card_width: int) -> Image.Image:
    """Return rank and suit, one above the other, as they stand in a corner."""
    color = suit_color(card.suit)
    height, line = card_width * 50 // 100, card_width * 28 // 100
    width = card_width * 34 // 100
    image = Image.new("RGB", (width, height), WHITE)
    pen = ImageDraw.Draw(image)
    rank_font = load_font(card_width * (23 if card.face == _TEN_FACE else 30) // 100, bold=True)
    pen.text((width / 2, line / 2), card.face, color, rank_font, anchor="mm")
    sign_font = load_font(card_width * 22 // 100)
    sign_middle = (width / 2, (line + height) / 2)
    pen.text(sign_middle, _SUIT_SIGNS[card.suit], color, sign_font, anchor="mm")
    return image


@lru_cache(maxsize=256)
def draw_cell(card: Card) -> Picture:
    """Return a cell: the rank as large as it fits, a small suit at the lower right.

    Not to be written into: every caller gets the same array.
    """
    color = suit_color(card.suit)
    image = Image.new("RGB", (CELL_SIDE, CELL_SIDE), WHITE)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, CELL_SIDE - 1, CELL_SIDE - 1), outline=EDGE)
    size = 16 if card.face == _TEN_FACE else 22
    pen.text((12, 12), card.face, color, load_font(size, bold=True), anchor="mm")
    pen.text((22, 22), _SUIT_SIGNS[card.suit], color, load_font(11), anchor="mm")
    return np.asarray(image)


def _write_formula(picture: Picture, num_cards: int, formula: Sequence[str]) -> None:
    """Write the formula below the cards, its tokens apart by a space, into a fresh picture."""
    is_pair = num_cards <= 2  # noqa: PLR2004 - two cards are so large that one line remains
    size, top, pitch = (20, 258, 20) if is_pair else (16, 210, 20)
    left = _TEXT_LEFT
    space = _word(" ", size).shape[1]
    for text in ("Formula:", *formula):
        word = _word(text, size)
        height, width = word.shape[:2]
        if left + width > TABLE_SIDE - _TEXT_LEFT:
            left, top = _TEXT_LEFT, top + pitch
        room = picture[top : top + height, left : left + width]
        room[:] = word[: len(room)]
        left += width + space
        if text == "Formula:" and not is_pair:
            left, top = _TEXT_LEFT, top + 30


@lru_cache(maxsize=64)
def _word(text: str, size: int) -> Picture:
    """Return a piece of text, white on green, as high as a line and as wide as it runs."""
    font = load_font(size)
    image = Image.new("RGB", (round(font.getlength(text)), sum(font.getmetrics())), GREEN)
    ImageDraw.Draw(image).text((0, 0), text, WHITE, font)
    return np.asarray(image)


def suit_color(suit: str) -> Color:
    """Return red for hearts and diamonds, else black."""
    return _RED if suit in "HD" else _BLACK
