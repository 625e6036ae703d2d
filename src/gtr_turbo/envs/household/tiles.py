"""Tiles of objects with the marks of their states, and the small texts beside them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from PIL import Image, ImageDraw

from gtr_turbo.envs.drawing import Color, load_font
from gtr_turbo.envs.household import icons
from gtr_turbo.envs.household.view import SeenObject

INK: Color = (24, 24, 28)
PAPER: Color = (255, 255, 255)

_STATES: Final = (
    ("is_hot", icons.HOT, (255, 208, 188), (214, 48, 44)),
    ("is_cool", icons.COOL, (204, 226, 255), (44, 108, 212)),
    ("is_clean", icons.CLEAN, (206, 244, 232), (28, 160, 152)),
    ("is_on", icons.ON, (255, 240, 150), (242, 134, 30)),
)
"""Attribute, mark, ground and edge; the first that holds colours the tile."""
_CORNERS: Final = {
    icons.HOT: (0.0, 0.0),
    icons.COOL: (0.0, 0.0),
    icons.CLEAN: (1.0, 0.0),
    icons.ON: (0.0, 1.0),
}
"""Which corner a mark sits in: right and below as 1. An object is hot or cool, not both, …"""
_BOTH_CORNER = (0.5, 0.5)
"""… but if it were, coolness would sit in the middle."""
_MARK = 0.4
"""Side of a mark as a share of its tile."""
_NUMBER = 0.4
"""Height of a number's letters as a share of its tile."""
_SLICE_GAP = 0.1
_MAX_LETTERS = 40
"""A longer text is cut before it is measured."""


def number_of(name: str) -> str:
    """Return the digits at the end of a name, or nothing."""
    last = name.rpartition(" ")[2]
    return last if last.isascii() and last.isdigit() else ""


def numbers_shown(things: Iterable[tuple[str, str]], among: Sequence[str]) -> list[str]:
    """Return, for each (name, kind), the number to show, or nothing where the kind is enough.

    A number is shown where `among` (the kinds in sight) holds the kind twice, and where it is not
    1, since then there are others elsewhere.
    """
    counts = Counter(among)
    found = [(number_of(name), kind) for name, kind in things]
    return [number if counts[kind] > 1 or number != "1" else "" for number, kind in found]


@lru_cache(maxsize=2048)
def object_tile(seen: SeenObject, number: str, side: int) -> Image.Image:
    """Return an object with its states and a number on a square tile; don't write to it."""
    holding = [state for state in _STATES if getattr(seen, state[0])]
    ground = (*holding[0][2], 255) if holding else (*PAPER, 170)
    tile = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    pen = ImageDraw.Draw(tile)
    edge = holding[0][3] if holding else None
    pen.rounded_rectangle((0, 0, side - 1, side - 1), side // 8, ground, edge, max(side // 20, 1))
    margin = max(side // 18, 1)
    inner = side - 2 * margin
    picture = icons.icon(seen.kind, inner, inner)
    if seen.is_sliced:
        picture = _sliced(picture)
    tile.alpha_composite(picture, (margin, margin))
    for _, mark, _, _ in holding:
        is_second = mark == icons.COOL and seen.is_hot
        _add_mark(tile, mark, _BOTH_CORNER if is_second else _CORNERS[mark])
    write_number(tile, number)
    return tile


@lru_cache(maxsize=1024)
def place_tile(kind: str, is_open: bool | None, number: str, side: int) -> Image.Image:
    """Return a receptacle on a square tile: its icon, a green edge if open, a red one if closed."""
    tile = icons.icon(kind, side, side, is_open=bool(is_open)).copy()
    if is_open is not None:
        edge = icons.COLORS["green" if is_open else "red"]
        ImageDraw.Draw(tile).rectangle((0, 0, side - 1, side - 1), None, edge, max(side // 20, 1))
    write_number(tile, number)
    return tile


def write_number(tile: Image.Image, number: str) -> None:
    """Write a number into the lower right corner of a fresh tile, dark with a light rim."""
    if not number:
        return
    size = max(round(min(tile.size) * _NUMBER), 8)
    rim = max(size // 9, 1)
    corner = (tile.width - rim, tile.height - rim)
    ImageDraw.Draw(tile).text(
        corner, number[:4], INK, load_font(size, bold=True), anchor="rs",
        stroke_width=rim, stroke_fill=PAPER,
    )  # fmt: skip


@lru_cache(maxsize=2048)
def text_tile(text: str, size: int, max_width: int) -> Image.Image:
    """Return text on a light strip, squeezed where it is wider than `max_width` pixels."""
    font = load_font(size, bold=True)
    shown = icons.readable(text[:_MAX_LETTERS]) or "?"
    width = max(round(font.getlength(shown)), 1) + 2
    image = Image.new("RGB", (width, sum(font.getmetrics())), PAPER)
    ImageDraw.Draw(image).text((1, 0), shown, INK, font)
    if width > max_width:
        image = image.resize((max(max_width, 1), image.height), Image.Resampling.BOX)
    return image


@lru_cache(maxsize=256)
def more_tile(count: int, side: int) -> Image.Image:
    """Return a square tile that says "+count": so many are there, but are not shown."""
    tile = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    pen = ImageDraw.Draw(tile)
    pen.rounded_rectangle((0, 0, side - 1, side - 1), side // 8, (*INK, 255))
    text = f"+{min(count, 999)}"
    font = load_font(max(round(side * 1.1 / len(text)), 6), bold=True)
    pen.text((side / 2, side / 2), text, PAPER, font, anchor="mm")
    return tile


def _add_mark(tile: Image.Image, mark: str, corner: tuple[float, float]) -> None:
    side = max(round(tile.width * _MARK), 6)
    far = tile.width - side
    left, top = (int(part * far) for part in corner)
    tile.alpha_composite(icons.icon(mark, side, side), (left, top))


def _sliced(picture: Image.Image) -> Image.Image:
    """Return an icon cut into three upright pieces that have slipped apart."""
    side = picture.width
    gap = max(round(side * _SLICE_GAP), 2)
    piece = (side - 2 * gap) // 3
    cut = Image.new("RGBA", picture.size, (0, 0, 0, 0))
    narrow = picture.resize((3 * piece, side - gap), Image.Resampling.BOX)
    for i in range(3):
        strip = narrow.crop((i * piece, 0, (i + 1) * piece, narrow.height))
        cut.paste(strip, (i * (piece + gap), gap if i % 2 else 0))
    return cut
