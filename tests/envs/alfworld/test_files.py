from pathlib import Path

import pytest

from gtr_turbo.envs.alfworld.files import GAME_FILE, find_games
from gtr_turbo.envs.household.tables import PICK_AND_PLACE, PICK_TWO, TASK_TYPES
from gtr_turbo.errors import ConfigError
from tests.envs.alfworld.helpers import write_chore


def test_games_are_found_by_split_and_sort(tmp_path: Path) -> None:
    one = write_chore(tmp_path / "train")
    two = write_chore(tmp_path / "train", PICK_TWO)
    write_chore(tmp_path / "valid_seen")
    assert set(find_games(tmp_path, "train", TASK_TYPES, text=True).values()) == {one, two}
    only = find_games(tmp_path, "train", (PICK_AND_PLACE,), text=True)
    assert dict(only) == {f"{PICK_AND_PLACE}-Mug-None-Shelf-1/trial_1": one}


def test_unsolvable_sliced_and_movable_games_are_left_out(tmp_path: Path) -> None:
    good = write_chore(tmp_path)
    for trial in ("movable_1", "Sliced_1"):
        write_chore(tmp_path, trial=trial)
    bad = write_chore(tmp_path, trial="trial_2")
    for text in ('{"solvable": false}', "{}", "[]", "no JSON"):
        (bad / GAME_FILE).write_text(text)
        find_games.cache_clear()
        assert list(find_games(tmp_path, "all", TASK_TYPES, text=True).values()) == [good]
    (bad / GAME_FILE).unlink()
    find_games.cache_clear()
    assert list(find_games(tmp_path, "all", TASK_TYPES, text=True).values()) == [good]
    assert list(find_games(tmp_path, "all", TASK_TYPES, text=False).values()) == [good, bad]


@pytest.mark.parametrize("path", ["", "missing"])
def test_no_games_is_an_error_that_says_where_to_get_them(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match=r"(?s)there are no games.*alfworld-download"):
        find_games(tmp_path / path if path else Path(), "train", TASK_TYPES, text=True)
