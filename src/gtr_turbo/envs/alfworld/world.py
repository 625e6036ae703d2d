"""What a game of ALFWorld is played in: TextWorld, or THOR. One interface, commands as text."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import final

from gtr_turbo.envs.drawing import Picture
from gtr_turbo.envs.household.view import View


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a world shows after a command."""

    text: str
    """What the engine says, without the task."""
    commands: tuple[str, ...]
    """The admissible commands in the names of ALFWorld 0.4, sorted."""
    won: bool
    goal_rate: float
    """Share of the goal's conditions that hold, from 0 to 1."""
    view: View | None = None
    """What is in sight, where the world tells it."""
    frame: Picture | None = None
    """What the agent's camera sees, where there is one."""


class AbstractWorld(ABC):
    """An engine that holds one game at a time."""

    @abstractmethod
    def start(self, game: Path) -> Scene:
        """Start the game in a directory, from its beginning, and return what it shows.

        Raises TaskError when the engine can't play it.
        """

    @abstractmethod
    def do(self, command: str) -> Scene:
        """Carry out a command; one that is not admissible changes nothing."""

    @abstractmethod
    def plan(self) -> tuple[str, ...] | None:
        """Return commands that win from here, or None where there is no such plan.

        Raises TaskError when the world has no planner.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of what the engine holds; a closed world may be closed again."""
