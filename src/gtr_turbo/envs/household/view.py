"""What the agent may see of a household, and nothing else: between the engine and the renderer."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SeenObject:
    """An object in sight."""

    name: str
    """Kind and number, such as ``mug 1``."""
    kind: str
    """Such as ``mug``."""
    is_hot: bool = False
    is_cool: bool = False
    is_clean: bool = False
    is_sliced: bool = False
    is_on: bool = False
    """A lamp that was switched on."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SeenReceptacle:
    """A receptacle that the agent stands at."""

    name: str
    kind: str
    is_open: bool | None
    """None when it cannot be opened or closed."""
    contents: tuple[SeenObject, ...] | None
    """None when it is closed, so that nobody can see into it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is in sight."""

    goal: str
    """The task in words; the picture does not show it."""
    room: tuple[tuple[str, str], ...]
    """(name, kind) of every receptacle of the room, in a fixed order: the overview."""
    here: tuple[SeenReceptacle, ...]
    """What the agent stands at; empty in the middle of the room."""
    hand: SeenObject | None
