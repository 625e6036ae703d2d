"""Environments in this process: nothing between them and the caller, and no protection either."""

from collections.abc import Sequence
from typing import final

from gtr_turbo.core.turns import JsonState
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.pool.base import AbstractPool, Outcome, Shown


@final
class InProcessPool(AbstractPool):
    """Tasks that are stepped one after the other. What one of them raises comes through."""

    def __init__(self, tasks: Sequence[AbstractTask]) -> None:
        """Start an episode in each task."""
        self._tasks = list(tasks)
        for task in self._tasks:
            task.reset()

    @property
    def task_ids(self) -> list[str]:
        """Name and version of each environment's rules."""
        return [task.task_id for task in self._tasks]

    @property
    def shown(self) -> list[Shown]:
        """What each environment shows now."""
        return [Shown(observation=task.observation, seed=task.episode_seed) for task in self._tasks]

    @property
    def num_faults(self) -> int:
        """Always 0: a fault ends the run."""
        return 0

    def step(self, replies: Sequence[str]) -> list[Outcome]:
        """Give one reply to each environment and return what came of it."""
        outcomes: list[Outcome] = []
        for task, reply in zip(self._tasks, replies, strict=True):
            result = task.step(reply)
            if result.terminated or result.truncated:
                task.reset()
            outcomes.append(result)
        return outcomes

    def state(self) -> list[JsonState]:
        """Return a snapshot of each environment, mid-episode included."""
        return [task.state() for task in self._tasks]

    def restore(self, states: Sequence[JsonState]) -> None:
        """Put each environment back to a snapshot of it."""
        for task, state in zip(self._tasks, states, strict=True):
            task.restore(state)

    def close(self) -> None:
        """Do nothing: there is nothing to end."""
