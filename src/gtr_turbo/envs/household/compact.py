"""The household for tiny models: eight cells of 28 × 28 pixels, each one merged patch.

    place  content content content
    hand   content content content

More than six contents are shown in half the size, four in a cell. So are, in the middle of the
room, the kinds of its receptacles, and the place is the agent then. Before a closed receptacle the
six cells show a lock.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from gtr_turbo.envs.drawing import CELL_SIDE, Color, Picture
from gtr_turbo.envs.household import icons
from gtr_turbo.envs.household.tiles import more_tile, numbers_shown, object_tile, place_tile
from gtr_turbo.envs.household.view import SeenObject, View

COMPACT_COLUMNS, COMPACT_ROWS = 4, 2
COMPACT_SIZE = (COMPACT_ROWS * CELL_SIDE, COMPACT_COLUMNS * CELL_SIDE)
"""Height and width of every compact picture."""
MAX_COMPACT_CONTENTS = 24
"""Objects that fit; of more, those after the first 23 become a "+n"."""

_PLACE_GROUND: Color = (214, 224, 236)
_HAND_GROUND: Color = (250, 222, 202)
_CONTENT_GROUND: Color = (246, 244, 238)
_HALF = CELL_SIDE // 2
_CONTENT_CELLS = tuple(
    (column * CELL_SIDE, row * CELL_SIDE)
    for row in range(COMPACT_ROWS)
    for column in range(1, COMPACT_COLUMNS)
)


def draw_compact(view: View) -> Picture:
    """Return the 56 × 112 picture of what is in sight, of the same size for every view."""
    image = _empty().copy()
    contents = [
        thing for place in view.here if place.is_open is not False for thing in place.contents or ()
    ]
    _draw_place(image, view)
    if not view.here:
        _draw_kinds(image, list(dict.fromkeys(kind for _, kind in view.room)))
    elif all(place.is_open is False for place in view.here):
        for corner in _CONTENT_CELLS:
            _paste(image, icons.icon(icons.CLOSED, CELL_SIDE, CELL_SIDE), corner)
    held = [] if view.hand is None else [view.hand]
    things = [*contents, *held]
    numbers = numbers_shown([(x.name, x.kind) for x in things], [x.kind for x in things])
    _draw_contents(image, contents, numbers[: len(contents)])
    hand_corner = (0, CELL_SIDE)
    if view.hand is None:
        _paste(image, icons.icon(icons.HAND, CELL_SIDE, CELL_SIDE), hand_corner)
    else:
        _paste(image, object_tile(view.hand, numbers[-1], CELL_SIDE), hand_corner)
    return np.array(image)


@lru_cache(maxsize=1)
def _empty() -> Image.Image:
    image = Image.new("RGB", (COMPACT_SIZE[1], COMPACT_SIZE[0]), _CONTENT_GROUND)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, CELL_SIDE - 1, CELL_SIDE - 1), _PLACE_GROUND)
    pen.rectangle((0, CELL_SIDE, CELL_SIDE - 1, 2 * CELL_SIDE - 1), _HAND_GROUND)
    return image


def _draw_place(image: Image.Image, view: View) -> None:
    """Draw where the agent stands: one receptacle, up to four small ones, or the agent alone."""
    kinds = [kind for _, kind in view.room] or [place.kind for place in view.here]
    numbers = numbers_shown([(place.name, place.kind) for place in view.here], kinds)
    if not view.here:
        _paste(image, icons.icon(icons.AGENT, CELL_SIDE, CELL_SIDE), (0, 0))
    elif len(view.here) == 1:
        (here,) = view.here
        _paste(image, place_tile(here.kind, here.is_open, numbers[0], CELL_SIDE), (0, 0))
    else:
        tiles = [
            place_tile(place.kind, place.is_open, number, _HALF)
            for place, number in zip(view.here, numbers, strict=True)
        ]
        _paste_quarters(image, tiles, [(0, 0)])


def _draw_kinds(image: Image.Image, kinds: Sequence[str]) -> None:
    """Draw what kinds of receptacles there are, four in a cell."""
    tiles = [icons.icon(kind, _HALF, _HALF) for kind in kinds]
    _paste_quarters(image, tiles, _CONTENT_CELLS)


def _draw_contents(
    image: Image.Image, contents: Sequence[SeenObject], numbers: Sequence[str]
) -> None:
    """Draw what is in or on the place, in order, into the cells on the right."""
    is_crowded = len(contents) > len(_CONTENT_CELLS)
    side = _HALF if is_crowded else CELL_SIDE
    tiles = [
        object_tile(thing, number, side) for thing, number in zip(contents, numbers, strict=True)
    ]
    if is_crowded:
        _paste_quarters(image, tiles, _CONTENT_CELLS)
        return
    for tile, corner in zip(tiles, _CONTENT_CELLS, strict=False):
        _paste(image, tile, corner)


def _paste_quarters(
    image: Image.Image, tiles: Sequence[Image.Image], cells: Sequence[tuple[int, int]]
) -> None:
    """Paste half-sized tiles, four to a cell; a "+n" stands for those that do not fit."""
    corners = [
        (x + right, y + below) for x, y in cells for below in (0, _HALF) for right in (0, _HALF)
    ]
    fits = len(tiles) <= len(corners)
    shown = list(tiles) if fits else list(tiles[: len(corners) - 1])
    if not fits:
        shown.append(more_tile(len(tiles) - len(shown), _HALF))
    for tile, corner in zip(shown, corners, strict=False):
        _paste(image, tile, corner)


def _paste(image: Image.Image, tile: Image.Image, corner: tuple[int, int]) -> None:
    image.paste(tile, corner, tile)
