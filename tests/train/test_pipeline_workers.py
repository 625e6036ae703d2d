"""Whole runs with environments in processes: the same run, and one that survives its workers."""

from pathlib import Path
from typing import Any

import pytest

from gtr_turbo.core.faultline import FAULT_VARIABLE
from tests.train.runs import numbers, run
from tests.world import World, tiny_config

QUICK: dict[str, Any] = {
    "rollout__turns_per_update": 8,
    "rollout__max_new_tokens": 24,
    "ppo__minibatch_size": 4,
    "evaluation__num_episodes": 1,
    "critic__warmup_updates": 0,
    "run__num_updates": 2,
}
WORKERS: dict[str, Any] = {"rollout__workers": "process", "rollout__num_workers": 2}


def test_where_environments_live_may_change_at_a_resume_and_changes_no_number(
    world: World, tmp_path: Path
) -> None:
    run(tiny_config(world.trained, **QUICK), tmp_path / "whole")
    run(tiny_config(world.trained, **{**QUICK, **WORKERS, "run__num_updates": 1}), tmp_path / "run")
    run(tiny_config(world.trained, **QUICK), tmp_path / "run", resume=True)
    found, expected = (numbers(tmp_path / name) for name in ("run", "whole"))
    assert found["metrics"] == expected["metrics"]
    assert found["summary"] == expected["summary"]


def test_a_run_goes_on_when_its_workers_die(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker plays 4 turns in update 1 and dies at its fifth, the first one of update 2."""
    monkeypatch.setenv(FAULT_VARIABLE, "worker.step:5:kill")
    run(tiny_config(world.trained, **QUICK, **WORKERS), tmp_path / "run")
    first, second = numbers(tmp_path / "run")["metrics"]
    assert (first["environment_faults"], first["excluded_turns"]) == (0, 0)
    assert (second["environment_faults"], second["excluded_turns"]) == (2, 2)
    assert (first["env_steps"], second["env_steps"]) == (8, 16)
    assert first["optimizer_steps"] == second["optimizer_steps"] == 2
