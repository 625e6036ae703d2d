import hashlib

import numpy as np
import PIL
import pytest
from PIL import Image, ImageDraw, ImageFont

from gtr_turbo.envs.drawing import load_font

SIGNS = "0123456789AJQK+-*/()=:.,♥♠♦♣abcdefghijklmnopqrstuvwxyz"
GOLDEN = {False: "fd16f7aeb5129845", True: "42c0858e84b694ff"}


def drawn(font: ImageFont.FreeTypeFont, text: str) -> np.ndarray:
    image = Image.new("L", (2000, 80), 0)
    ImageDraw.Draw(image).text((5, 5), text, 255, font)
    return np.asarray(image)


def test_fonts_are_the_bundled_ones() -> None:
    assert load_font(20).getname() == ("DejaVu Sans", "Book")
    assert load_font(20, bold=True).getname() == ("DejaVu Sans", "Bold")


def test_a_size_is_given_in_pixels() -> None:
    assert load_font(20).size == 20
    small, large = (drawn(load_font(size), "8").any(axis=1).sum() for size in (20, 40))
    assert 1.9 < large / small < 2.1


def test_a_font_is_loaded_once() -> None:
    assert load_font(17) is load_font(17)
    assert load_font(17) is not load_font(17, bold=True)


def test_bold_is_heavier() -> None:
    plain, bold = (drawn(load_font(24, bold=bold), SIGNS).sum() for bold in (False, True))
    assert bold > 1.2 * plain


@pytest.mark.parametrize("bold", [False, True])
def test_every_sign_of_the_tasks_has_a_glyph_of_its_own(bold: bool) -> None:
    font = load_font(24, bold=bold)
    missing = drawn(font, "\U0010fffd").tobytes()
    glyphs = {drawn(font, sign).tobytes() for sign in SIGNS}
    assert len(glyphs) == len(SIGNS)
    assert missing not in glyphs


def test_the_layout_does_not_depend_on_what_is_installed() -> None:
    """The basic layout adds up the widths of the signs; raqm, where present, might kern."""
    font = load_font(20)
    assert font.layout_engine == ImageFont.Layout.BASIC


@pytest.mark.skipif(PIL.__version__ != "13.0.0", reason="glyphs differ between Pillow versions")
@pytest.mark.parametrize(
    ("bold", "expected"), [(False, "fd16f7aeb5129845"), (True, "42c0858e84b694ff")]
)
def test_golden_text(bold: bool, expected: str) -> None:
    pixels = drawn(load_font(24, bold=bold), SIGNS)
    assert hashlib.sha256(pixels.tobytes()).hexdigest()[:16] == expected
