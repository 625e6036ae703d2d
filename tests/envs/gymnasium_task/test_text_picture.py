import numpy as np

from gtr_turbo.envs.gymnasium_task.text_picture import CELL, MAX_LINES, draw_text

WIDTH, HEIGHT = CELL


def test_a_cell_for_each_character() -> None:
    assert draw_text("ab\ncde\n").shape == (2 * HEIGHT, 3 * WIDTH, 3)
    assert draw_text("").shape == (HEIGHT, WIDTH, 3)


def test_equal_characters_look_the_same_and_others_do_not() -> None:
    picture = draw_text("aab")
    first, second, third = (picture[:, i * WIDTH : (i + 1) * WIDTH] for i in range(3))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)


def test_marks_colour_and_are_not_drawn() -> None:
    picture = draw_text("\x1b[41mx\x1b[0my\x1b[34mz\x1b[0m")
    assert picture.shape == (HEIGHT, 3 * WIDTH, 3)
    assert tuple(picture[0, 0]) == (205, 50, 50)
    assert tuple(picture[0, WIDTH]) == (255, 255, 255)
    blue = picture[:, 2 * WIDTH :].reshape(-1, 3).astype(int)
    darkest = blue[blue.sum(axis=1).argmin()]
    assert darkest[2] > darkest[0] + 50


def test_remarks_are_no_part_of_the_state() -> None:
    assert np.array_equal(draw_text("  (Right)\nSF\n"), draw_text("\nSF\n"))


def test_long_texts_are_cut() -> None:
    huge = "\n".join(["x" * 1_000] * 300)
    assert draw_text(huge).shape == (MAX_LINES * HEIGHT, MAX_LINES * WIDTH, 3)
