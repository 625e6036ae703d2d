"""Environments: pictures and prompts out, text in. numpy and Pillow only, never torch."""

from gtr_turbo.envs.base import AbstractTask, Demonstration, TaskEntry
from gtr_turbo.envs.registry import TASKS, default_rules, list_tasks, make_task

__all__ = [
    "TASKS",
    "AbstractTask",
    "Demonstration",
    "TaskEntry",
    "default_rules",
    "list_tasks",
    "make_task",
]
