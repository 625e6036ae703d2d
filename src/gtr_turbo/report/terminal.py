"""A picture as coloured half-blocks, for terminals: two pixels in each character."""

from itertools import pairwise

import numpy as np
from jaxtyping import UInt8
from PIL import Image
from rich.color import Color
from rich.style import Style
from rich.text import Text

from gtr_turbo.errors import ConfigError

_UPPER_HALF = "\N{UPPER HALF BLOCK}"


def blocks(picture: UInt8[np.ndarray, "height width 3"], columns: int) -> Text:
    """Return a picture that is at most `columns` characters wide, in true colour.

    A character shows two pixels, one above the other: the upper half-block in the colour of the
    first, on a ground of the colour of the second. As characters are about twice as high as wide,
    shapes keep their proportions. A wider picture is reduced by averaging over areas, a narrower
    one keeps its size. An odd last row is shown twice. Raises ConfigError for less than 1 column.
    """
    if columns < 1:
        raise ConfigError(f"a picture needs at least 1 column of characters, got {columns}.")
    pixels = _reduced(picture, columns)
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, pixels[-1:]])
    rows = [_row(upper, lower) for upper, lower in zip(pixels[::2], pixels[1::2], strict=True)]
    return Text("\n", no_wrap=True, end="\n").join(rows)


def _reduced(
    picture: UInt8[np.ndarray, "height width 3"], columns: int
) -> UInt8[np.ndarray, "row column 3"]:
    """Return the picture, reduced to at most `columns` pixels across."""
    height, width = picture.shape[:2]
    if width <= columns:
        return picture
    size = (columns, max(round(height * columns / width), 1))
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BOX))


def _row(upper: UInt8[np.ndarray, "column 3"], lower: UInt8[np.ndarray, "column 3"]) -> Text:
    """Return one line of characters; equal neighbours share one style."""
    row = Text(no_wrap=True, end="")
    pairs = np.concatenate([upper, lower], axis=1)
    starts = np.flatnonzero((pairs[1:] != pairs[:-1]).any(axis=1)) + 1
    bounds = [0, *starts.tolist(), len(pairs)]
    for start, end in pairwise(bounds):
        red, green, blue, red_below, green_below, blue_below = pairs[start].tolist()
        style = Style(
            color=Color.from_rgb(red, green, blue),
            bgcolor=Color.from_rgb(red_below, green_below, blue_below),
        )
        row.append(_UPPER_HALF * (end - start), style)
    return row
