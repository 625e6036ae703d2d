"""From a Gymnasium id to the registry's entry of its task."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from gtr_turbo.envs.base import TaskEntry
from gtr_turbo.envs.gymnasium_task.making import find_spec
from gtr_turbo.envs.gymnasium_task.rules import default_rules_of
from gtr_turbo.envs.gymnasium_task.task import GymnasiumTask
from gtr_turbo.envs.rules import read_rules


def gymnasium_entry(gym_id: str) -> TaskEntry:
    """Return the entry of the task made from an id, such as ``FrozenLake-v1`` or ``module:Id-v0``.

    Raises UnknownNameError for an id that Gymnasium doesn't know, ConfigError for a module that
    can't be imported.
    """
    find_spec(gym_id)
    return TaskEntry(
        summary=f"the Gymnasium environment {gym_id}",
        default_rules=partial(default_rules_of(gym_id).model_dump, mode="json"),
        make=partial(make_gymnasium_task, gym_id),
    )


def make_gymnasium_task(gym_id: str, rules: Mapping[str, Any], seed: int) -> GymnasiumTask:
    """Return a task under an id's default rules, some of them overridden by `rules`.

    Raises ConfigError for an unknown rule (naming the nearest), a bad value, an environment without
    such a picture or with other actions, a package that is missing, and a negative seed.
    """
    return GymnasiumTask(gym_id, read_rules(default_rules_of(gym_id), rules), seed)
