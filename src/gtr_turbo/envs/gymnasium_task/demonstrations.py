"""Expert traces of a Gymnasium environment, right ones and wrong ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from gtr_turbo.core.turns import StepResult
from gtr_turbo.envs.base import AbstractTask, Demonstration
from gtr_turbo.envs.gymnasium_task.experts import AbstractExpert
from gtr_turbo.errors import TaskError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A task in a running episode, and who shows it."""

    task: AbstractTask
    expert: AbstractExpert
    action_names: tuple[str, ...]
    write: Callable[[str, str], str]
    """Returns the reply of (thoughts, action)."""
    copy: Callable[[], AbstractTask]
    """Returns a task that stands where this one stands."""
    is_compact: bool


def demonstrate_right(stage: Stage) -> tuple[list[Demonstration], bool]:
    """Play the expert's actions to the end; return the trace, and whether it won."""
    stage.expert.begin()
    trace: list[Demonstration] = []
    while True:
        result = _take(stage, stage.expert.choose(), trace)
        if result.terminated or result.truncated:
            return trace, result.success


def demonstrate_wrong(stage: Stage, generator: np.random.Generator) -> list[Demonstration]:
    """Play to the end without winning and return the trace.

    It takes the worst actions as if they were the best. Where the expert has no opinion on what is
    worst it repeats one action, which was tried on a copy of the task first.
    Raises TaskError where every action wins when it is repeated.
    """
    stage.expert.begin()
    stage.expert.choose()
    repeated: int | None = None
    trace: list[Demonstration] = []
    while True:
        place = repeated
        if place is None:
            place = stage.expert.choose_wrongly(generator)
        if place is None:
            place = repeated = _losing_action(stage, generator)
        result = _take(stage, place, trace)
        if result.terminated or result.truncated:
            return trace


def _take(stage: Stage, place: int, trace: list[Demonstration]) -> StepResult:
    action = stage.action_names[place]
    reply = stage.write(stage.expert.thoughts(action, compact=stage.is_compact), action)
    trace.append(Demonstration(observation=stage.task.observation, reply=reply))
    return stage.task.step(reply)


def _losing_action(stage: Stage, generator: np.random.Generator) -> int:
    """Return an action that, repeated to the end, does not win."""
    for place in generator.permutation(len(stage.action_names)):
        copy, reply = stage.copy(), stage.write("", stage.action_names[place])
        while True:
            result = copy.step(reply)
            if result.terminated or result.truncated:
                break
        if not result.success:
            return int(place)
    raise TaskError(f"{stage.task.task_id} is won whatever is done, so there is no mistake.")
