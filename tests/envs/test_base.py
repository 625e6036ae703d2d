from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from gtr_turbo.core.turns import Observation
from gtr_turbo.envs.base import AbstractTask, Demonstration


def test_an_interface_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="abstract"):
        AbstractTask()  # pyright: ignore[reportAbstractUsage]


def test_what_an_environment_must_have() -> None:
    assert AbstractTask.__abstractmethods__ == {
        "task_id", "observation", "episode_seed", "solvable", "reset", "step", "demonstrate",
        "state", "restore", "episode_kind", "admissible_actions", "write_action", "judge_thought",
    }  # fmt: skip


def test_a_demonstration_is_frozen() -> None:
    shown = Observation(picture=np.zeros((2, 2, 3), np.uint8), prompt="x", state_key="y")
    turn = Demonstration(observation=shown, reply="z")
    with pytest.raises(FrozenInstanceError):
        turn.reply = "other"  # pyright: ignore[reportAttributeAccessIssue]
