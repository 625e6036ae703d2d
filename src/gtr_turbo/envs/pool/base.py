"""What plays N environments side by side, wherever they live.

    pool.shown            what each environment shows now
    pool.step(replies)    one reply to each; an episode that ends is followed by the next at once

Everything is ordered by the environments' index, never by who answered first, and each environment
depends on its own seed and replies alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from gtr_turbo.core.turns import JsonState, Observation, StepResult

FaultKind = Literal["crash", "hang", "garbage", "exception"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Where an environment stands."""

    observation: Observation
    seed: int
    """Seed of the episode that it is in."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An environment failed in a step: its episode is lost, and the next one has begun."""

    kind: FaultKind
    """Its process ended; it was silent too long; it answered nonsense; it raised an exception."""
    detail: str
    """What is known about it, the worker's last words included, a few kilobytes at most."""


Outcome = StepResult | Fault


class AbstractPool(ABC):
    """Environments that go on for ever, episode after episode."""

    @property
    @abstractmethod
    def task_ids(self) -> Sequence[str]:
        """Name and version of each environment's rules."""

    @property
    @abstractmethod
    def shown(self) -> Sequence[Shown]:
        """What each environment shows now."""

    @property
    @abstractmethod
    def num_faults(self) -> int:
        """Faults so far. Those at a (re)start cost no episode, but count too."""

    @abstractmethod
    def step(self, replies: Sequence[str]) -> list[Outcome]:
        """Give one reply to each environment and return what came of it.

        Where an episode ended, or was lost by a fault, `shown` is the start of the next one.
        Raises TaskError when environments fail too often, or the pool is closed.
        """

    @abstractmethod
    def state(self) -> list[JsonState]:
        """Return a snapshot of each environment, mid-episode included."""

    @abstractmethod
    def restore(self, states: Sequence[JsonState]) -> None:
        """Put each environment back to a snapshot of it, made by a pool of either kind.

        Raises TaskError for the snapshot of another task.
        """

    @abstractmethod
    def close(self) -> None:
        """End what was started. A second call does nothing."""
