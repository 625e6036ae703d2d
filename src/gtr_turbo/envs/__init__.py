"""Environments: pictures and prompts out, text in. numpy and Pillow only, never torch.

Importing this package also makes the games known to Gymnasium.
"""

from gtr_turbo.envs.base import AbstractTask, Demonstration, TaskEntry
from gtr_turbo.envs.check import CheckReport, check_task
from gtr_turbo.envs.gym import register_gym_environments
from gtr_turbo.envs.registry import TASKS, default_rules, list_tasks, make_task

__all__ = [
    "TASKS",
    "AbstractTask",
    "CheckReport",
    "Demonstration",
    "TaskEntry",
    "check_task",
    "default_rules",
    "list_tasks",
    "make_task",
]

register_gym_environments()
