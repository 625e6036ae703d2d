"""Schematic pictures of a household: the room from above, or what the agent stands at.

These are icons, not the photographs of a simulator, so results on them do not compare with results
on photographs. Equal views have equal pictures, byte for byte (under one version of Pillow).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from PIL import Image, ImageDraw

from gtr_turbo.envs.drawing import Color, Picture
from gtr_turbo.envs.household import icons
from gtr_turbo.envs.household.tiles import (
    more_tile,
    number_of,
    numbers_shown,
    object_tile,
    place_tile,
    text_tile,
)
from gtr_turbo.envs.household.view import SeenObject, SeenReceptacle, View

ROOM_SIDE = 300
"""Height and width of the picture in pixels."""

_SCENE_HEIGHT = 244
"""The scene is above; the strip below it shows the place and, in its corner, the hand."""
_STRIP = ROOM_SIDE - _SCENE_HEIGHT
_WALL_WIDTH = 6
_FLOOR_TOP = 186
_FLOOR: Color = (238, 220, 190)
_PLANK: Color = (226, 204, 170)
_WALL_FROM_ABOVE: Color = (120, 96, 76)
_WALL: Color = (222, 230, 234)
_SKIRTING: Color = (190, 170, 146)
_STRIP_GROUND: Color = (250, 248, 242)
_HAND_GROUND: Color = (250, 222, 202)
_LINE: Color = (110, 100, 92)

_PLANS = ((4, 4), (5, 5), (6, 6), (7, 6), (8, 7))
"""Columns and rows of a room plan; the first that has a cell for each receptacle is taken."""
_SIDES = (64, 56, 48, 42, 36, 30, 24)
"""Sides of an object in a close-up; the largest at which all fit is taken."""
_GAP = 4
_LABEL_GAP = 14
"""Pixels between objects where labels stand."""
_LABEL_SIZE = 9
_TITLE_SIZE = 12
_ON_TOP = 0.36
"""Share of the height above a piece of furniture that things stand upon."""
_DEFAULT_SURFACE = 8.0
_TALLEST = 1.25
"""Height of a receptacle, at most, as a share of its width."""
_MAX_PLACES = 4
"""Receptacles at one location that a close-up shows; further ones become a "+n"."""


@final
@dataclass(frozen=True, slots=True)
class _Area:
    """A part of the picture, in pixels."""

    left: int
    top: int
    width: int
    height: int


def draw_room(view: View, *, labels: bool) -> Picture:
    """Return the 300 × 300 picture of what is in sight.

    With `labels` every thing has its name beside it; without, only numbers stand in the picture,
    and only where they tell two things of a kind apart. What does not fit becomes a "+n".
    """
    things = [thing for place in view.here for thing in _contents(place)]
    if view.hand is not None:
        things.append(view.hand)
    numbers = numbers_shown([(x.name, x.kind) for x in things], [x.kind for x in things])
    if view.here:
        image = _wall().copy()
        _draw_places(image, view.here, numbers, labels=labels)
    else:
        image = _floor_plan(view.room, labels).copy()
    _draw_strip(image, view, labels=labels)
    _draw_hand(image, view.hand, numbers[-1] if numbers else "", labels=labels)
    return np.array(image)


def _contents(place: SeenReceptacle) -> tuple[SeenObject, ...]:
    """Return what can be seen in or on a receptacle: nothing when it is closed."""
    return () if place.is_open is False or place.contents is None else place.contents


# ---------------------------------------------------------------------------- the room from above


@lru_cache(maxsize=32)
def _floor_plan(room: tuple[tuple[str, str], ...], labels: bool) -> Image.Image:
    """Return the room from above, its receptacles along the walls and the agent in the middle."""
    image = Image.new("RGB", (ROOM_SIDE, ROOM_SIDE), _STRIP_GROUND)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, ROOM_SIDE - 1, _SCENE_HEIGHT - 1), _FLOOR, _WALL_FROM_ABOVE, _WALL_WIDTH)
    for y in range(_WALL_WIDTH + 20, _SCENE_HEIGHT - _WALL_WIDTH, 20):
        pen.line((_WALL_WIDTH, y, ROOM_SIDE - _WALL_WIDTH - 1, y), _PLANK)
    cells, num_shown = _plan_cells(len(room))
    kinds = [kind for _, kind in room]
    numbers = [number_of(name) for name, _ in room] if labels else numbers_shown(room, kinds)
    for cell, (_, kind), number in zip(cells, room[:num_shown], numbers, strict=False):
        side = min(cell.width, cell.height - (_LABEL_SIZE + 2 if labels else 0)) - 2
        left = cell.left + (cell.width - side) // 2
        _paste(image, place_tile(kind, None, number, side), (left, cell.top + 1))
        if labels:
            label = text_tile(kind, _LABEL_SIZE - 1, cell.width - 2)
            middle = cell.left + cell.width // 2
            image.paste(label, (middle - label.width // 2, cell.top + side + 1))
    if num_shown < len(room):
        side = min(cells[-1].width, cells[-1].height) - 4
        more = more_tile(len(room) - num_shown, side)
        _paste(image, more, (cells[-1].left + 2, cells[-1].top + 2))
    side = 44
    corner = ((ROOM_SIDE - side) // 2, (_SCENE_HEIGHT - side) // 2)
    _paste(image, icons.icon(icons.AGENT, side, side), corner)
    return image


def _plan_cells(count: int) -> tuple[list[_Area], int]:
    """Return cells for `count` receptacles, and how many of them show one.

    When they do not fit, one cell more is returned than shows one: the last, for the "+n".
    """
    sufficient = (plan for plan in _PLANS if sum(map(len, _rings(*plan))) >= count)
    columns, rows = next(sufficient, _PLANS[-1])
    width = (ROOM_SIDE - 2 * _WALL_WIDTH) / columns
    height = (_SCENE_HEIGHT - 2 * _WALL_WIDTH) / rows
    places: list[tuple[int, int]] = []
    for ring in _rings(columns, rows):
        num_here = min(len(ring), count - len(places))
        places += [ring[i * len(ring) // num_here] for i in range(num_here)]
    cells = [
        _Area(
            _WALL_WIDTH + int(column * width), _WALL_WIDTH + int(row * height),
            int(width), int(height),
        )
        for column, row in places
    ]  # fmt: skip
    return cells, count if len(cells) == count else len(cells) - 1


@lru_cache(maxsize=len(_PLANS))
def _rings(columns: int, rows: int) -> list[list[tuple[int, int]]]:
    """Return rings of cells (column, row), clockwise, from the walls inwards; not the middle."""
    middle = {
        (c, r) for c in ((columns - 1) // 2, columns // 2) for r in ((rows - 1) // 2, rows // 2)
    }
    rings: list[list[tuple[int, int]]] = []
    for depth in range((min(columns, rows) + 1) // 2):
        first, last_column, last_row = depth, columns - 1 - depth, rows - 1 - depth
        ring = [(c, first) for c in range(first, last_column)]
        ring += [(last_column, r) for r in range(first, last_row)]
        ring += [(c, last_row) for c in range(last_column, first, -1)]
        ring += [(first, r) for r in range(last_row, first, -1)]
        rings.append([cell for cell in ring if cell not in middle])
    return rings


# ------------------------------------------------------------------------------------- a close-up


@lru_cache(maxsize=1)
def _wall() -> Image.Image:
    image = Image.new("RGB", (ROOM_SIDE, ROOM_SIDE), _STRIP_GROUND)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, ROOM_SIDE - 1, _FLOOR_TOP), _WALL)
    pen.rectangle((0, _FLOOR_TOP, ROOM_SIDE - 1, _SCENE_HEIGHT - 1), _FLOOR)
    pen.rectangle((0, _FLOOR_TOP, ROOM_SIDE - 1, _FLOOR_TOP + 4), _SKIRTING)
    return image


def _draw_places(
    image: Image.Image, here: Sequence[SeenReceptacle], numbers: Sequence[str], *, labels: bool
) -> None:
    """Draw receptacles side by side, three or four of them in two rows."""
    shown = here[:_MAX_PLACES]
    columns = min(len(shown), 2)
    rows = (len(shown) + 1) // 2
    width, height = ROOM_SIDE // columns, _SCENE_HEIGHT // rows
    rest = list(numbers)
    for i, place in enumerate(shown):
        area = _Area(i % columns * width, i // columns * height, width, height)
        contents = _contents(place)
        _draw_place(image, place, rest[: len(contents)], area, labels=labels)
        rest = rest[len(contents) :]
    if len(here) > _MAX_PLACES:
        more = more_tile(len(here) - _MAX_PLACES, 30)
        _paste(image, more, ((ROOM_SIDE - 30) // 2, (_SCENE_HEIGHT - 30) // 2))


def _draw_place(
    image: Image.Image, place: SeenReceptacle, numbers: Sequence[str], area: _Area, *, labels: bool
) -> None:
    """Draw one receptacle as large as its area allows, and what is in or on it."""
    margin = 4
    drawing = icons.drawing_of(place.kind, is_open=bool(place.is_open))
    width = area.width - 2 * margin
    height = min(area.height - 2 * margin, int(width * _TALLEST))
    left, top = area.left + margin, area.top + area.height - margin - height
    if drawing.inside is None and place.is_open is not False:
        above = int(height * _ON_TOP)
        furniture = icons.icon(place.kind, width, height - above, is_open=bool(place.is_open))
        _paste(image, furniture, (left, top + above))
        surface = _DEFAULT_SURFACE if drawing.surface is None else drawing.surface
        depth = above + int(surface * (height - above) / icons.GRID)
        inside = _Area(left, top, width, depth)
    else:
        _paste(
            image, icons.icon(place.kind, width, height, is_open=bool(place.is_open)), (left, top)
        )
        across, down = width / icons.GRID, height / icons.GRID
        x0, y0, x1, y1 = drawing.inside or (0.0, 0.0, 28.0, 28.0)
        inside = _Area(
            left + int(x0 * across), top + int(y0 * down),
            int((x1 - x0) * across), int((y1 - y0) * down),
        )  # fmt: skip
    _draw_contents(image, _contents(place), numbers, inside, labels=labels)


def _draw_contents(
    image: Image.Image,
    contents: Sequence[SeenObject],
    numbers: Sequence[str],
    area: _Area,
    *,
    labels: bool,
) -> None:
    """Draw objects in rows that fill an area from below, as large as they fit."""
    if not contents:
        return
    below = _LABEL_SIZE + 3 if labels else _GAP
    side, columns, rows = _grid(len(contents), area, _LABEL_GAP if labels else _GAP, below)
    num_cells = columns * rows
    num_shown = len(contents) if len(contents) <= num_cells else num_cells - 1
    count = min(len(contents), num_cells)
    num_rows = -(-count // columns)
    pitch = area.width // columns
    for i in range(count):
        row = i // columns
        num_in_row = min(columns, count - row * columns)
        start = area.left + (area.width - num_in_row * pitch) // 2
        left = start + i % columns * pitch + (pitch - side) // 2
        top = area.top + area.height - (num_rows - row) * (side + below)
        if i >= num_shown:
            _paste(image, more_tile(len(contents) - num_shown, side), (left, top))
            continue
        _paste(image, object_tile(contents[i], "" if labels else numbers[i], side), (left, top))
        if labels:
            label = text_tile(contents[i].name, _LABEL_SIZE, pitch - 2)
            image.paste(label, (left + (side - label.width) // 2, top + side + 1))


def _grid(count: int, area: _Area, beside: int, below: int) -> tuple[int, int, int]:
    """Return the side of an object, and columns and rows, so that `count` fit if they can."""
    side, columns, rows = _SIDES[-1], 1, 1
    for side in _SIDES:
        columns = max(area.width // (side + beside), 1)
        rows = max(area.height // (side + below), 1)
        if columns * rows >= count and area.height >= side + below:
            break
    return side, min(columns, count), rows


# -------------------------------------------------------------------------------- the strip below


def _draw_strip(image: Image.Image, view: View, *, labels: bool) -> None:
    """Show below the scene which receptacles the agent stands at, and whether they are open."""
    ImageDraw.Draw(image).line((0, _SCENE_HEIGHT, ROOM_SIDE, _SCENE_HEIGHT), _LINE, 2)
    side = _STRIP - 12
    if not view.here:
        _paste(image, icons.icon(icons.AGENT, side, side), (8, _SCENE_HEIGHT + 7))
        if labels:
            title = text_tile("middle of the room", _TITLE_SIZE, 170)
            image.paste(title, (16 + side, _SCENE_HEIGHT + 20))
        return
    kinds = [kind for _, kind in view.room] or [place.kind for place in view.here]
    numbers = numbers_shown([(place.name, place.kind) for place in view.here], kinds)
    shown = view.here[:_MAX_PLACES]
    pitch = 176 if len(shown) == 1 else 232 // len(shown)
    for i, place in enumerate(shown):
        size = side if len(shown) == 1 or not labels else side - 14
        left = 8 + i * pitch
        tile = place_tile(place.kind, place.is_open, "" if labels else numbers[i], size)
        _paste(image, tile, (left, _SCENE_HEIGHT + 7))
        if not labels:
            continue
        if len(shown) == 1:
            title = text_tile(f"{place.name}{_openness(place)}", _TITLE_SIZE, 176)
            image.paste(title, (left + side + 6, _SCENE_HEIGHT + 20))
        else:
            title = text_tile(place.name, _LABEL_SIZE, pitch - 4)
            image.paste(title, (left - 4, _SCENE_HEIGHT + 9 + size))


def _openness(place: SeenReceptacle) -> str:
    return {None: "", True: ", open", False: ", closed"}[place.is_open]


def _draw_hand(image: Image.Image, held: SeenObject | None, number: str, *, labels: bool) -> None:
    """Show in the lower right corner what the agent holds, or an empty hand."""
    left, top = ROOM_SIDE - _STRIP, _SCENE_HEIGHT
    ImageDraw.Draw(image).rectangle(
        (left, top, ROOM_SIDE - 1, ROOM_SIDE - 1), _HAND_GROUND, _LINE, 2
    )
    if held is None:
        _paste(image, icons.icon(icons.HAND, _STRIP - 14, _STRIP - 14), (left + 7, top + 7))
        return
    side = _STRIP - (17 if labels else 8)
    _paste(image, object_tile(held, "" if labels else number, side),
           (left + (_STRIP - side) // 2, top + 4))  # fmt: skip
    if labels:
        label = text_tile(held.name, _LABEL_SIZE, _STRIP - 6)
        image.paste(label, (left + (_STRIP - label.width) // 2, ROOM_SIDE - 2 - label.height))


def _paste(image: Image.Image, tile: Image.Image, corner: tuple[int, int]) -> None:
    image.paste(tile, corner, tile)
