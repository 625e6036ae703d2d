"""From a configuration to the pool that it asks for."""

import os
from collections.abc import Sequence

from gtr_turbo.core.config import RolloutConfig, TaskConfig
from gtr_turbo.envs.pool.base import AbstractPool
from gtr_turbo.envs.pool.in_process import InProcessPool
from gtr_turbo.envs.pool.processes import ProcessPool, ProcessSettings, TaskSource
from gtr_turbo.envs.registry import make_task


def make_pool(task: TaskConfig, rollout: RolloutConfig, seeds: Sequence[int]) -> AbstractPool:
    """Return one environment per seed, playing; where they live changes no number.

    Raises UnknownNameError for the name of no task and ConfigError for rules that it refuses.
    """
    if rollout.workers == "in_process":
        return InProcessPool([make_task(task.name, task.rules, seed) for seed in seeds])
    settings = ProcessSettings(
        num_workers=rollout.num_workers or os.cpu_count() or 1,
        step_deadline=rollout.step_deadline,
        max_restarts=rollout.max_restarts,
    )
    return ProcessPool(TaskSource(name=task.name, rules=task.rules), seeds, settings)
