"""Text with colour marks, as environments print it for a terminal, drawn as a picture."""

import re
from functools import lru_cache
from typing import Final

import numpy as np
from PIL import Image, ImageDraw

from gtr_turbo.envs.drawing import Color, Picture, load_font

CELL: Final = (14, 22)
"""Width and height of a character, pixels."""
MAX_LINES: Final = 100
"""What stands further down, or further right, is left out: it bounds the work."""

_MARKS: Final = re.compile(r"\x1b\[([0-9;]*)m")
_REMARK: Final = re.compile(r"^\s*(\(.*\))?\s*$")
"""An empty line, or one with the last action's name: no part of the state."""
_PALETTE: Final[tuple[Color, ...]] = (
    (40, 40, 40),
    (205, 50, 50),
    (20, 140, 60),
    (190, 150, 0),
    (40, 80, 200),
    (170, 60, 170),
    (20, 150, 160),
    (120, 120, 120),
)
_PAPER: Final[Color] = (255, 255, 255)
_INK: Final[Color] = (20, 20, 20)
_BLANK: Final = (" ", _INK, _PAPER)
_FOREGROUND: Final = 30
_BACKGROUND: Final = 40


def draw_text(text: str) -> Picture:
    """Return a picture of the lines, a cell of one size for each character."""
    lines = [_characters(line) for line in text.splitlines() if not _is_remark(line)][:MAX_LINES]
    width = min(max((len(line) for line in lines), default=1) or 1, MAX_LINES)
    rows = [
        np.concatenate([_cell(*mark) for mark in (*line, *[_BLANK] * width)][:width], axis=1)
        for line in lines or [[]]
    ]
    return np.concatenate(rows)


@lru_cache(maxsize=1_024)
def _cell(character: str, ink: Color, paper: Color) -> Picture:
    image = Image.new("RGB", CELL, paper)
    font = load_font(CELL[1] - 6)
    middle = (CELL[0] / 2, CELL[1] / 2)
    ImageDraw.Draw(image).text(middle, character, fill=ink, font=font, anchor="mm")
    return np.asarray(image, dtype=np.uint8)


def _is_remark(line: str) -> bool:
    return _REMARK.match(_MARKS.sub("", line)) is not None


def _characters(line: str) -> list[tuple[str, Color, Color]]:
    """Return (character, ink, paper) for each character of a line, its marks carried out."""
    found: list[tuple[str, Color, Color]] = []
    ink, paper = _INK, _PAPER
    for position, part in enumerate(_MARKS.split(line)):
        if position % 2 == 0:
            found += [(character, ink, paper) for character in part]
            continue
        ink, paper = _INK, _PAPER
        for code in (int(code) for code in part.split(";") if code):
            if _FOREGROUND <= code < _FOREGROUND + len(_PALETTE):
                ink = _PALETTE[code - _FOREGROUND]
            elif _BACKGROUND <= code < _BACKGROUND + len(_PALETTE):
                ink, paper = _PAPER, _PALETTE[code - _BACKGROUND]
    return found
