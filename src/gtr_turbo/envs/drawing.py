"""What every renderer shares: the type of a picture and the bundled fonts."""

from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from jaxtyping import UInt8
from PIL import ImageFont

Picture: TypeAlias = UInt8[np.ndarray, "height width 3"]
Color: TypeAlias = tuple[int, int, int]

CELL_SIDE: Final = 28
"""Height and width of a compact cell: one merged patch of Qwen2.5-VL (2 × 2 patches of 14)."""

_FONTS: Final = Path(__file__).parent / "fonts"


@lru_cache(maxsize=64)
def load_font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """Return DejaVu Sans in a size in pixels; laid out the same way on every machine."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(_FONTS / name, size, layout_engine=ImageFont.Layout.BASIC)
