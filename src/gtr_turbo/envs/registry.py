"""Every task by name: the built-in ones in a visible dict, installed plug-ins beside them.

A name that starts with ``gym:`` is an environment of Gymnasium's: ``gym:FrozenLake-v1``, or
``gym:module:Id-v0`` for one that is known after a module is imported.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from gtr_turbo.envs import blackjack, ezpoints, household, numberline, points24
from gtr_turbo.envs.alfworld import task as alfworld
from gtr_turbo.envs.base import AbstractTask, TaskEntry
from gtr_turbo.envs.gymnasium_task.entry import gymnasium_entry
from gtr_turbo.envs.gymnasium_task.task import PREFIX
from gtr_turbo.errors import TaskError, UnknownNameError, nearest_hint

PLUGIN_GROUP = "gtr_turbo.environments"
"""Entry-point group under which other packages offer a `TaskEntry` by name."""


TASKS: dict[str, TaskEntry] = {
    "blackjack": blackjack.ENTRY,
    "ezpoints": ezpoints.ENTRY,
    "household": household.ENTRY,
    "numberline": numberline.ENTRY,
    "points24": points24.ENTRY,
}
"""name → how to make it. A new task is a file, an entry here and a conformance run."""

EXTRA_TASKS: dict[str, TaskEntry] = {"alfworld": alfworld.ENTRY}
"""Tasks that need an extra and data of the user's own before they can be made."""


def list_tasks() -> list[str]:
    """Return the names of all tasks, plug-ins included, sorted."""
    return sorted({*TASKS, *EXTRA_TASKS, *_plugins()})


def task_entry(name: str) -> TaskEntry:
    """Return the entry of a task; a built-in one wins over a plug-in of the same name.

    Raises UnknownNameError for the name of no task, TaskError for a plug-in that is no `TaskEntry`,
    ConfigError for a Gymnasium environment whose module is missing.
    """
    built_in = TASKS | EXTRA_TASKS
    if name in built_in:
        return built_in[name]
    if name.startswith(PREFIX):
        return gymnasium_entry(name.removeprefix(PREFIX))
    plugins = _plugins()
    if name not in plugins:
        raise UnknownNameError(
            f'there is no task named "{name}".', hint=nearest_hint(name, list_tasks(), "tasks")
        )
    entry = plugins[name].load()
    if not isinstance(entry, TaskEntry):
        raise TaskError(
            f'the plug-in task "{name}" ({plugins[name].value}) is a {type(entry).__name__}.',
            hint=f"an entry point of the group `{PLUGIN_GROUP}` must name a `TaskEntry`.",
        )
    return entry


def default_rules(name: str) -> dict[str, Any]:
    """Return a task's rules with their defaults. Raises UnknownNameError."""
    return task_entry(name).default_rules()


def make_task(name: str, rules: Mapping[str, Any], seed: int) -> AbstractTask:
    """Return a task whose episodes all follow from `seed`.

    `rules` overrides some of `default_rules(name)`. Raises UnknownNameError for the name of no task
    and ConfigError for an unknown rule, a bad value, or rules that don't go together.
    """
    return task_entry(name).make(rules, seed)


def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=PLUGIN_GROUP)}
