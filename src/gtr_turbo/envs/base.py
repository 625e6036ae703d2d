"""What every environment offers: one task, many episodes one after the other.

    task = make_task("ezpoints", {}, seed=0)
    observation = task.reset()
    result = task.step('{"cards": …, "action": "7"}')      # until terminated or truncated

Text goes in, pictures and prompts come out. An environment never raises because of what a reply
says; it raises TaskError when it is *used* wrongly (a step after the end, a step before the first
reset). All its randomness comes from generators of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gtr_turbo.core.turns import JsonState, Observation, StepResult


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """One turn of an expert's trace: what was shown and what the expert wrote."""

    observation: Observation
    reply: str


class AbstractTask(ABC):
    """An environment that is played by writing text."""

    @property
    @abstractmethod
    def task_id(self) -> str:
        """Name and version of the rules, for example ``ezpoints-v0``."""

    @property
    @abstractmethod
    def observation(self) -> Observation:
        """What is shown now. Raises TaskError before the first reset."""

    @property
    @abstractmethod
    def episode_seed(self) -> int:
        """Seed from which the current episode was made. Raises TaskError before the first reset."""

    @property
    @abstractmethod
    def solvable(self) -> bool:
        """True when the current episode could be won from its start under the rules in force."""

    @property
    @abstractmethod
    def episode_kind(self) -> str:
        """What sort of episode this is, so that success can be told apart by sort.

        A task whose episodes are all of one sort returns its `task_id`.
        Raises TaskError before the first reset.
        """

    @property
    @abstractmethod
    def admissible_actions(self) -> tuple[str, ...]:
        """The actions that could be carried out now, in the task's own words, in a fixed order.

        A step with one of them is legal. Raises TaskError before the first reset.
        """

    @abstractmethod
    def write_action(self, action: str) -> str:
        """Return a reply of valid format that chooses `action` and says nothing else."""

    @abstractmethod
    def reset(self, seed: int | None = None) -> Observation:
        """Start an episode and return its first observation.

        With a seed the whole episode depends on that seed alone (and on the replies). Without one
        the seed is drawn from the environment's own generator, which a given seed leaves untouched.
        """

    @abstractmethod
    def step(self, reply: str) -> StepResult:
        """Apply a reply and return what follows.

        Bad replies are classified, never raised. Raises TaskError when the episode is over or
        none was started.
        """

    @abstractmethod
    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        """Play the current episode to its end with the expert and return the trace.

        With `mistake` the trace is wrong but consistent with itself: its plan looks like a right
        one, is followed to the letter, and fails. Only `generator` is drawn from.
        """

    @abstractmethod
    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        """Return what rules, not models, find of a reply's thoughts in the present state, by name.

        True is good. A name is left out where there is nothing to be right about; a task without
        such rules returns an empty mapping. A reply that cannot be read is judged like any other,
        and nothing is changed.
        """

    @abstractmethod
    def state(self) -> JsonState:
        """Return a snapshot that `restore` continues from bit-equally, mid-episode included."""

    @abstractmethod
    def restore(self, state: JsonState) -> None:
        """Continue from a snapshot of a task with the same rules.

        Raises TaskError when the snapshot belongs to another task.
        """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """How to make a task: what the registry holds under a task's name."""

    summary: str
    """What the task is, in one line."""
    default_rules: Callable[[], dict[str, Any]]
    """Returns every rule with its default, as JSON values."""
    make: Callable[[Mapping[str, Any], int], AbstractTask]
    """Returns a task from rules (those that differ from the defaults suffice) and a seed.

    Raises ConfigError for an unknown rule, a bad value, or rules that don't go together.
    """
