"""What every task keeps between two calls: its generators, and the episode that it is in."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, final, runtime_checkable

import numpy as np

from gtr_turbo.core.turns import JsonState
from gtr_turbo.errors import ConfigError, TaskError

_SEED_BOUND = 2**53
"""Drawn seeds stay below it, so that any JSON reader keeps them exact."""


@runtime_checkable
class EpisodeRecord(Protocol):
    """Where an episode stands: a frozen dataclass with at least these fields."""

    @property
    def seed(self) -> int:
        """Seed from which the episode was made."""
        ...

    @property
    def ended(self) -> bool:
        """True when the episode takes no further step."""
        ...


Record = TypeVar("Record", bound=EpisodeRecord)


@final
class EpisodeKeeper(Generic[Record]):
    """The episode of one task, and two generators.

    One hands out episode seeds; the other, `chance`, is made anew from each episode's seed and
    makes all that happens by chance in it. So an episode depends on its seed alone.
    """

    def __init__(
        self,
        task_id: str,
        seed: int,
        write: Callable[[Record], JsonState],
        read: Callable[[JsonState], Record],
    ) -> None:
        """Start without an episode; `write` and `read` turn one into JSON values and back.

        Raises ConfigError for a negative seed.
        """
        self._task_id = task_id
        self._seeds = make_generator(seed)
        self._write, self._read = write, read
        self._episode: Record | None = None
        self.chance = make_generator(seed)

    @property
    def current(self) -> Record:
        """The episode, running or over. Raises TaskError before the first reset."""
        if self._episode is None:
            raise TaskError(f"{self._task_id} has no episode yet.", hint="call `reset()` first.")
        return self._episode

    @property
    def running(self) -> Record:
        """The episode, which must not be over. Raises TaskError when it is."""
        if self.current.ended:
            raise TaskError(
                f"the episode of {self._task_id} is over, so it takes no step.",
                hint="call `reset()` after `terminated` or `truncated`.",
            )
        return self.current

    def draw_seed(self, seed: int | None) -> int:
        """Return the seed of the next episode: the given one, or else the next of the task's own.

        Raises ConfigError for a negative seed.
        """
        if seed is not None and seed < 0:
            raise ConfigError(f"a seed must not be negative, got {seed}.")
        return int(self._seeds.integers(_SEED_BOUND)) if seed is None else seed

    def begin(self, episode: Record, chance: np.random.Generator) -> None:
        """Make `episode` the current one; `chance` is what its seed's generator has left."""
        self._episode, self.chance = episode, chance

    def move_to(self, episode: Record) -> None:
        """Put a later record of the same episode in the place of the current one."""
        self._episode = episode

    def choose(
        self, action: str | None, actions: Sequence[str], unreadable_reply: str
    ) -> tuple[str | None, bool]:
        """Return the action to carry out (None: none), and whether chance chose it.

        Where a reply held none and the rule `unreadable_reply` is not `illegal`, chance chooses
        among `actions`, if there are any.
        """
        if action is not None or unreadable_reply == "illegal" or not actions:
            return action, False
        return actions[int(self.chance.integers(len(actions)))], True

    def state(self) -> JsonState:
        """Return a snapshot: the episode and both generators."""
        return {
            "task_id": self._task_id,
            "seeds": self._seeds.bit_generator.state,
            "chance": self.chance.bit_generator.state,
            "episode": None if self._episode is None else self._write(self._episode),
        }

    def restore(self, state: JsonState) -> None:
        """Continue from a snapshot. Raises TaskError when it is another task's, or damaged."""
        if state.get("task_id") != self._task_id:
            raise TaskError(
                f"a snapshot of {state.get('task_id')!r} can't be restored into {self._task_id!r}.",
                hint="restore it into a task of the same name and rules.",
            )
        try:
            seeds, chance = make_generator(0), make_generator(0)
            seeds.bit_generator.state = state["seeds"]
            chance.bit_generator.state = state["chance"]
            stored: dict[str, Any] | None = state["episode"]
            episode = None if stored is None else self._read(stored)
        except (KeyError, TypeError, ValueError) as error:
            raise TaskError(f"a snapshot of {self._task_id!r} is damaged: {error!r}.") from error
        self._seeds, self.chance, self._episode = seeds, chance, episode


def make_generator(seed: int) -> np.random.Generator:
    """Return the generator of a seed. Raises ConfigError for a negative one."""
    if seed < 0:
        raise ConfigError(f"a seed must not be negative, got {seed}.")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
