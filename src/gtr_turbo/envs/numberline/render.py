"""Pictures of the number line: the lineage's two lines of text, and two cells for tiny models.

The same state always has the same bytes (under one version of Pillow).
"""

from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from gtr_turbo.envs.drawing import CELL_SIDE, Color, Picture, load_font

PICTURE_SIDE = 300
"""Height and width of the lineage's picture in pixels."""

_WHITE: Color = (255, 255, 255)
_BLACK: Color = (0, 0, 0)
_BLUE: Color = (20, 60, 150)
_TEXT_LEFT, _TARGET_TOP, _CURRENT_TOP = 30, 60, 180
_TEXT_SIZE = 36
_ONE_DIGIT_SIZE, _TWO_DIGIT_SIZE = 24, 18
"""The largest at which one digit, and two, leave a margin in a cell."""


def draw_lineage(current: int, target: int) -> Picture:
    """Return 300 × 300 pixels, black on white: the target above, the current number below."""
    return _lineage(current, target).copy()


def draw_compact(current: int, target: int) -> Picture:
    """Return 28 × 56 pixels: the target white on blue, then the current number black on white."""
    return np.concatenate([_cell(target, _WHITE, _BLUE), _cell(current, _BLACK, _WHITE)], axis=1)


@lru_cache(maxsize=256)
def _lineage(current: int, target: int) -> Picture:
    image = Image.new("RGB", (PICTURE_SIDE, PICTURE_SIDE), _WHITE)
    pen, font = ImageDraw.Draw(image), load_font(_TEXT_SIZE, bold=True)
    pen.text((_TEXT_LEFT, _TARGET_TOP), f"Target: {target}", _BLACK, font)
    pen.text((_TEXT_LEFT, _CURRENT_TOP), f"Current: {current}", _BLACK, font)
    return np.asarray(image)


@lru_cache(maxsize=256)
def _cell(number: int, color: Color, ground: Color) -> Picture:
    """Return a cell: the number in its middle, as large as it fits."""
    image = Image.new("RGB", (CELL_SIDE, CELL_SIDE), ground)
    text = str(number)
    size = _ONE_DIGIT_SIZE if len(text) == 1 else _TWO_DIGIT_SIZE
    middle = (CELL_SIDE / 2, CELL_SIDE / 2)
    font = load_font(size, bold=True)
    ImageDraw.Draw(image).text(middle, text, color, font, anchor="mm")
    return np.asarray(image)
