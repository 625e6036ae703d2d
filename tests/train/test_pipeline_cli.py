"""A run as people run it: a process of its own, killed and resumed."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.train.runs import numbers, run
from tests.world import World, tiny_config

FIELDS: dict[str, Any] = {
    "rollout__turns_per_update": 8,
    "rollout__max_new_tokens": 16,
    "evaluation__num_episodes": 2,
    "critic__warmup_updates": 0,
    "run__num_updates": 2,
}


def command(config: Path, run_dir: Path, *extra: str, fault: str | None = None) -> int:
    """Return the exit status of `python -m gtr_turbo train`, negative for a signal."""
    environment = {k: v for k, v in os.environ.items() if k != "GTR_TURBO_FAULT"}
    if fault is not None:
        environment["GTR_TURBO_FAULT"] = fault
    arguments = ["train", "--config", str(config), "--run-dir", str(run_dir), *extra]
    done = subprocess.run(
        [sys.executable, "-m", "gtr_turbo", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode > 0:
        pytest.fail(done.stderr[-3000:])
    return done.returncode


@pytest.fixture(scope="module")
def finished(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a run made inside this process."""
    path = tmp_path_factory.mktemp("finished") / "run"
    run(tiny_config(world.trained, **FIELDS), path)
    return path


def test_a_killed_process_resumed_equals_a_run_of_another_process(
    world: World, finished: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    plain = tiny_config(world.trained, **FIELDS).model_dump(mode="json")
    config.write_text(yaml.safe_dump(plain))
    killed = command(config, tmp_path / "run", fault="phase.improve:2:kill")
    assert killed == -signal.SIGKILL
    assert not (tmp_path / "run" / "summary.json").exists()
    assert command(config, tmp_path / "run", "--resume") == 0
    assert numbers(tmp_path / "run") == numbers(finished)
