"""Icons of everything in a household, in any size, read from `icons.txt`.

An icon is drawn once for each size and then copied. A kind that the file lacks gets a plain tile in
a colour and with letters that follow from its name, so there is an icon for any name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, final
from zlib import crc32

from PIL import Image, ImageDraw

from gtr_turbo.envs.drawing import Color, load_font

GRID = 28
"""Units across an icon in `icons.txt`, in both directions."""

HOT, COOL, CLEAN, ON, CLOSED = "mark hot", "mark cool", "mark clean", "mark on", "mark closed"
HAND, AGENT = "the hand", "the agent"
"""Names of icons that are no kind of thing."""

COLORS: Final[dict[str, Color]] = {
    "white": (248, 248, 246), "silver": (201, 206, 212), "grey": (150, 156, 163),
    "dark": (82, 88, 96), "black": (32, 32, 36), "red": (214, 48, 44), "crimson": (140, 24, 44),
    "orange": (242, 134, 30), "yellow": (247, 206, 46), "lime": (156, 206, 56),
    "green": (60, 156, 72), "forest": (30, 96, 56), "teal": (28, 160, 152), "sky": (132, 202, 244),
    "blue": (44, 108, 212), "navy": (28, 50, 110), "purple": (130, 80, 186),
    "pink": (244, 156, 188), "magenta": (216, 60, 152), "brown": (132, 84, 46),
    "wood": (190, 138, 78), "tan": (226, 192, 142), "cream": (247, 233, 200),
    "skin": (240, 190, 148),
}  # fmt: skip
"""The colours that `icons.txt` names."""

_FILE = Path(__file__).parent / "icons.txt"
_PLACES = frozenset({"in", "on"})
_STROKES = frozenset({"line", "arc"})
_FINE = 4
"""Icons are drawn this much larger and then reduced, which smooths their edges."""
_MAX_DRAWN = 1_000
"""Pixels; a larger icon is drawn less fine."""
_OUTLINE = 0.036
"""Width of an outline as a share of the icon's shorter side, …"""
_MAX_OUTLINE = 2.6
"""… and at most this many pixels."""
_OUTLINE_SHADE = 0.5
_SLICED = "sliced"
_NUM_LETTERS = 3
_NUM_HUES = 24


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A piece of an icon; what the numbers mean depends on the form, see `icons.txt`."""

    form: str
    color: Color
    is_flat: bool
    numbers: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """An icon as the file describes it."""

    shapes: tuple[Shape, ...]
    inside: tuple[float, float, float, float] | None = None
    """Where a close-up shows the contents: left, top, right, bottom on the icon's grid."""
    surface: float | None = None
    """At which height of the grid a close-up lets the contents stand, when they stand upon it."""


@cache
def drawings() -> dict[str, Drawing]:
    """Return all that `icons.txt` describes, by name."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    rows = [line.partition(":") for line in lines if line and not line.startswith("#")]
    return {name: read_drawing(text) for name, _, text in rows}


def read_drawing(text: str) -> Drawing:
    """Return what a line of `icons.txt` describes. Raises ValueError or LookupError if it can't."""
    shapes: list[Shape] = []
    inside, surface = None, None
    for part in text.split(";"):
        words = part.split()
        if words[0] in _PLACES:
            numbers = tuple(float(word) for word in words[1:])
            if words[0] == "on":
                (surface,) = numbers
            else:
                left, top, right, bottom = numbers
                inside = (left, top, right, bottom)
            continue
        is_flat = words[0] == "flat"
        form, color, *rest = words[is_flat:]
        numbers = tuple(float(word) for word in rest)
        shapes.append(Shape(form=form, color=COLORS[color], is_flat=is_flat, numbers=numbers))
    return Drawing(shapes=tuple(shapes), inside=inside, surface=surface)


def drawing_of(kind: str, *, is_open: bool = False) -> Drawing:
    """Return the drawing of a kind, open where one is made for it; a plain tile if unknown."""
    known = drawings()
    if is_open and f"{kind} open" in known:
        return known[f"{kind} open"]
    if kind in known:
        return known[kind]
    return known.get(kind.removesuffix(_SLICED)) or _plain_tile(kind)


def is_known(kind: str) -> bool:
    """Return whether `icons.txt` has an icon of this name."""
    return kind in drawings()


@lru_cache(maxsize=1024)
def icon(kind: str, width: int, height: int, *, is_open: bool = False) -> Image.Image:
    """Return an icon with a transparent ground, stretched to a size in pixels; don't write to it.

    Never raises because of the kind: one that is unknown gets its first letters.
    """
    fine = _FINE if max(width, height) * _FINE <= _MAX_DRAWN else _FINE // 2
    image = Image.new("RGBA", (width * fine, height * fine), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    drawing = drawing_of(kind, is_open=is_open)
    outline = min(_OUTLINE * min(width, height), _MAX_OUTLINE) * fine
    for shape in drawing.shapes:
        _paint(pen, shape, (width * fine / GRID, height * fine / GRID), max(round(outline), fine))
    small = image.reduce(fine)
    if not is_known(kind) and not is_known(kind.removesuffix(_SLICED)):
        _write_letters(small, kind)
    return small


def readable(text: str) -> str:
    """Return text with everything outside ASCII replaced, as the bundled fonts can draw it."""
    return "".join(sign if " " <= sign <= "~" else "?" for sign in text)


def _paint(
    pen: ImageDraw.ImageDraw, shape: Shape, scale: tuple[float, float], outline: int
) -> None:
    """Paint one shape; `scale` is pixels per unit across and down."""
    edge = None if shape.is_flat else _darker(shape.color)
    width = 0 if shape.is_flat else outline
    if shape.form in _STROKES:
        _paint_stroke(pen, shape, scale)
    elif shape.form == "poly":
        points = _scaled(shape.numbers, scale)
        pen.polygon(points, fill=shape.color)
        if edge is not None:
            pen.line([*points, *points[:4]], edge, width, joint="curve")
    elif shape.form == "oval":
        pen.ellipse(_scaled(shape.numbers, scale), shape.color, edge, width)
    else:
        radius = shape.numbers[4] * min(scale) if len(shape.numbers) > 4 else 0  # noqa: PLR2004
        corners = _scaled(shape.numbers[:4], scale)
        pen.rounded_rectangle(corners, radius, shape.color, edge, width)


def _paint_stroke(pen: ImageDraw.ImageDraw, shape: Shape, scale: tuple[float, float]) -> None:
    """Paint a line with round ends, or an arc."""
    width = max(round(shape.numbers[0] * min(scale)), 1)
    if shape.form == "arc":
        start, end = shape.numbers[1:3]
        pen.arc(_scaled(shape.numbers[3:], scale), start, end, shape.color, width)
        return
    points = _scaled(shape.numbers[1:], scale)
    pen.line(points, shape.color, width, joint="curve")
    for x, y in (points[:2], points[-2:]):
        half = max(width / 2 - 1, 0)
        pen.ellipse((x - half, y - half, x + half, y + half), shape.color)


def _scaled(numbers: Sequence[float], scale: tuple[float, float]) -> list[float]:
    """Return alternating x and y in pixels."""
    return [number * scale[i % 2] for i, number in enumerate(numbers)]


def _darker(color: Color) -> Color:
    red, green, blue = (int(value * _OUTLINE_SHADE) for value in color)
    return red, green, blue


def _plain_tile(kind: str) -> Drawing:
    """Return a tile whose two colours follow from the name."""
    digest = crc32(kind.encode("utf-8", "replace"))
    names = list(COLORS)
    ground = COLORS[names[digest % len(names)]]
    band = COLORS[names[digest // _NUM_HUES % len(names)]]
    tile = Shape(form="box", color=ground, is_flat=False, numbers=(2.0, 2.0, 26.0, 26.0, 5.0))
    stripe = Shape(form="box", color=band, is_flat=True, numbers=(4.0, 20.0, 24.0, 24.0))
    return Drawing(shapes=(tile, stripe))


def _write_letters(image: Image.Image, kind: str) -> None:
    """Write the first letters of a kind into its plain tile."""
    letters = readable(kind.strip()[:_NUM_LETTERS]).upper() or "?"
    size = max(round(min(image.size) * 0.34), 5)
    middle = (image.width / 2, image.height * 0.42)
    ImageDraw.Draw(image).text(
        middle, letters, (0, 0, 0), load_font(size, bold=True), anchor="mm",
        stroke_width=max(size // 8, 1), stroke_fill=(255, 255, 255),
    )  # fmt: skip
