"""Players that need no model, and what they reach: a task's ceiling and its floor.

found = measure(lambda seed: make_task("points24", {}, seed), ExpertPlayer(0), 200, seed=0)
found.success_rate, found.by_kind
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from gtr_turbo.core.turns import StepResult
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.episodes import make_generator
from gtr_turbo.errors import ConfigError, TaskError

MAX_TURNS = 10_000
"""An episode that is still running then is taken for endless."""


class AbstractPlayer(ABC):
    """Somebody who writes replies."""

    @abstractmethod
    def begin(self, task: AbstractTask) -> None:
        """Look at an episode that starts; the task is left as it was."""

    @abstractmethod
    def reply(self, task: AbstractTask) -> str:
        """Return the reply to what the task shows now."""


@final
class RandomPlayer(AbstractPlayer):
    """Chooses each admissible action with the same probability."""

    def __init__(self, seed: int) -> None:
        """Raise ConfigError for a negative seed."""
        self._generator = make_generator(seed)

    def begin(self, task: AbstractTask) -> None:
        """Do nothing: every turn is a choice of its own."""

    def reply(self, task: AbstractTask) -> str:
        """Return a reply that chooses at random; an empty one where nothing is admissible."""
        actions = task.admissible_actions
        return task.write_action(actions[self._generator.integers(len(actions))]) if actions else ""


@final
class ExpertPlayer(AbstractPlayer):
    """Plays what the task's expert demonstrates."""

    def __init__(self, seed: int) -> None:
        """Raise ConfigError for a negative seed."""
        self._script = _Script(seed, mistake=False)

    def begin(self, task: AbstractTask) -> None:
        """Write the script of the episode. Raises TaskError for a task without an expert."""
        self._script.write(task)

    def reply(self, task: AbstractTask) -> str:
        """Return the next reply of the script."""
        return self._script.next_reply(task)


@final
class MistakenPlayer(AbstractPlayer):
    """Plays the wrong but consistent plans that the task's expert makes up."""

    def __init__(self, seed: int) -> None:
        """Raise ConfigError for a negative seed."""
        self._script = _Script(seed, mistake=True)

    def begin(self, task: AbstractTask) -> None:
        """Write the script of the episode. Raises TaskError for a task without an expert."""
        self._script.write(task)

    def reply(self, task: AbstractTask) -> str:
        """Return the next reply of the script."""
        return self._script.next_reply(task)


@final
class _Script:
    """The replies of one demonstration, handed out one by one."""

    def __init__(self, seed: int, *, mistake: bool) -> None:
        self._generator = make_generator(seed)
        self._mistake = mistake
        self._replies: list[str] = []

    def write(self, task: AbstractTask) -> None:
        """Demonstrate, and put the task back to where it was."""
        saved = task.state()
        trace = task.demonstrate(self._generator, mistake=self._mistake)
        task.restore(saved)
        self._replies = [turn.reply for turn in reversed(trace)]

    def next_reply(self, task: AbstractTask) -> str:
        if not self._replies:
            raise TaskError(
                f"the demonstration of {task.task_id} is over, but its episode is not.",
                hint="call `begin` at the start of each episode; chance must follow the snapshot.",
            )
        return self._replies.pop()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedEpisode:
    """How an episode went."""

    seed: int
    kind: str
    solvable: bool
    success: bool
    task_return: float
    """Undiscounted sum of the task's own rewards."""
    num_turns: int
    num_illegal: int
    """Turns whose action could not be carried out."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KindCount:
    """How the episodes of one sort went."""

    num_episodes: int
    num_solvable: int
    num_successes: int

    @property
    def success_rate(self) -> float:
        """Share of the episodes that were solved."""
        return self.num_successes / self.num_episodes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a player has reached."""

    episodes: tuple[PlayedEpisode, ...]
    by_kind: dict[str, KindCount]
    """Sort of episode → how its episodes went, by name."""

    @property
    def total(self) -> KindCount:
        """All episodes together."""
        return _count(self.episodes)

    @property
    def success_rate(self) -> float:
        """Share of the episodes that were solved."""
        return self.total.success_rate

    @property
    def mean_return(self) -> float:
        """Mean undiscounted return."""
        return sum(episode.task_return for episode in self.episodes) / len(self.episodes)

    @property
    def mean_turns(self) -> float:
        """Mean number of turns of an episode."""
        return sum(episode.num_turns for episode in self.episodes) / len(self.episodes)


def play_episode(task: AbstractTask, player: AbstractPlayer, seed: int) -> PlayedEpisode:
    """Play the episode of `seed` to its end and return how it went.

    Raises TaskError when it doesn't end within `MAX_TURNS` turns.
    """
    task.reset(seed)
    kind, solvable = task.episode_kind, task.solvable
    player.begin(task)
    results: list[StepResult] = []
    while not (results and (results[-1].terminated or results[-1].truncated)):
        if len(results) >= MAX_TURNS:
            raise TaskError(f"an episode of {task.task_id} has not ended after {MAX_TURNS} turns.")
        results.append(task.step(player.reply(task)))
    return PlayedEpisode(
        seed=seed,
        kind=kind,
        solvable=solvable,
        success=any(result.success for result in results),
        task_return=sum(result.rewards["task"] for result in results),
        num_turns=len(results),
        num_illegal=sum(not result.legal for result in results),
    )


def measure(
    make_task: Callable[[int], AbstractTask], player: AbstractPlayer, num_episodes: int, seed: int
) -> Measurement:
    """Return what a player reaches on the episodes of the seeds from `seed` on.

    Raises ConfigError for less than one episode.
    """
    if num_episodes < 1:
        raise ConfigError(f"`num_episodes` must be at least 1, got {num_episodes}.")
    task = make_task(seed)
    episodes = tuple(play_episode(task, player, seed + i) for i in range(num_episodes))
    kinds = sorted({episode.kind for episode in episodes})
    by_kind = {kind: _count([e for e in episodes if e.kind == kind]) for kind in kinds}
    return Measurement(episodes=episodes, by_kind=by_kind)


def _count(episodes: Sequence[PlayedEpisode]) -> KindCount:
    return KindCount(
        num_episodes=len(episodes),
        num_solvable=sum(episode.solvable for episode in episodes),
        num_successes=sum(episode.success for episode in episodes),
    )
