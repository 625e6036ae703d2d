import io

import numpy as np
import pytest
from rich.console import Console
from rich.style import Style
from rich.text import Text

from gtr_turbo.envs import make_task
from gtr_turbo.errors import ConfigError
from gtr_turbo.report.terminal import blocks

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def colors(text: Text) -> list[list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """Return, for each line and character, the colours of its upper and its lower half."""
    lines: list[list[tuple[tuple[int, ...], tuple[int, ...]]]] = []
    for line in text.split("\n"):
        styles: list[Style] = [
            line.get_style_at_offset(Console(), i) for i in range(len(line.plain))
        ]
        lines.append([(rgb(style.color), rgb(style.bgcolor)) for style in styles])
    return lines


def rgb(color: object) -> tuple[int, ...]:
    return tuple(color.triplet)  # pyright: ignore[reportAttributeAccessIssue]


def test_a_character_shows_two_pixels() -> None:
    picture = np.array([[RED, GREEN], [BLUE, WHITE]], np.uint8)
    text = blocks(picture, 80)
    assert text.plain == "▀▀"
    assert colors(text) == [[(RED, BLUE), (GREEN, WHITE)]]


def test_an_odd_last_row_is_shown_twice() -> None:
    picture = np.array([[RED], [GREEN], [BLUE]], np.uint8)
    assert colors(blocks(picture, 80)) == [[(RED, GREEN)], [(BLUE, BLUE)]]


def test_a_wide_picture_is_averaged_over_areas() -> None:
    """Of 4 × 4 pixels, each 2 × 2 become one: (255 + 0 + 0 + 255) / 4 ≈ 128."""
    quarter = np.array([[RED, (0, 0, 0)], [(0, 0, 0), RED]], np.uint8)
    picture = np.concatenate([quarter, np.full((2, 2, 3), WHITE, np.uint8)], axis=1)
    picture = np.concatenate([picture, picture[:, ::-1]])
    text = blocks(picture, 2)
    assert text.plain == "▀▀"
    assert colors(text) == [[((128, 0, 0), WHITE), (WHITE, (128, 0, 0))]]


@pytest.mark.parametrize(("columns", "lines"), [(60, 30), (10, 5), (1, 1), (300, 150), (999, 150)])
def test_proportions_are_kept(columns: int, lines: int) -> None:
    text = blocks(make_task("points24", {}, 0).reset().picture, columns)
    rows = text.plain.split("\n")
    assert len(rows) == lines
    assert {len(row) for row in rows} == {min(columns, 300)}


def test_a_flat_picture_becomes_few_pieces() -> None:
    text = blocks(np.zeros((8, 40, 3), np.uint8), 40)
    assert len(text.spans) == 4
    assert text.plain == "\n".join(["▀" * 40] * 4)


def test_a_very_wide_picture_has_a_line() -> None:
    assert blocks(np.zeros((1, 400, 3), np.uint8), 20).plain == "▀" * 20


def test_true_colour_reaches_the_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=80)
    console.print(blocks(np.array([[(1, 2, 3)], [(4, 5, 6)]], np.uint8), 80))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "\x1b[38;2;1;2;3;48;2;4;5;6m▀\x1b[0m\n"


@pytest.mark.parametrize("columns", [0, -1])
def test_no_columns_are_refused(columns: int) -> None:
    with pytest.raises(ConfigError, match="at least 1 column"):
        blocks(np.zeros((2, 2, 3), np.uint8), columns)
