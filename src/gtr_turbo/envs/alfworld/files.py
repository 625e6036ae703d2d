"""Where ALFWorld's games are on the disk."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gtr_turbo.errors import ConfigError

GAME_FILE: Final = "game.tw-pddl"
"""Name of a text game's file; ``traj_data.json`` lies beside it."""
CHORE_FILE: Final = "traj_data.json"

_REFUSED: Final = ("movable", "Sliced")
"""Games with these words in their path are none of the six sorts; ALFWorld skips them too."""


@lru_cache(maxsize=16)
def find_games(
    data_path: Path, split: str, task_types: tuple[str, ...], *, text: bool
) -> Mapping[str, Path]:
    """Return the games of a split: name → directory; a name is the path below the split.

    As in ALFWorld, a text game has to be marked as solvable, and its sort is the start of its
    directory's name. Raises ConfigError when there are none.
    """
    folder = data_path.expanduser() / ("" if split == "all" else split)
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob(CHORE_FILE)) if data_path.name else ():
        name = path.parent.relative_to(folder).as_posix()
        sort = path.parent.parent.name.partition("-")[0]
        if sort not in task_types or any(word in name for word in _REFUSED):
            continue
        if not text or _is_solvable(path.parent / GAME_FILE):
            found[name] = path.parent
    if not found:
        raise ConfigError(
            f'rule `data_path`: there are no games of these sorts in "{folder}".',
            hint="`alfworld-download` fetches ALFWorld's into ~/.cache/alfworld (set `data_path` "
            "to its json_2.1.1), and `gtr_turbo.envs.alfworld.games` writes new ones.",
        )
    return MappingProxyType(found)


def _is_solvable(path: Path) -> bool:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and data.get("solvable") is True
