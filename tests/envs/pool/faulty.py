"""A real card game that fails when a reply says so, for drills with real processes.

Spawned workers import it by its path, as `tests.envs.pool.faulty:make`.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from gtr_turbo.core.turns import JsonState, Observation, StepResult
from gtr_turbo.envs.base import AbstractTask, Demonstration
from gtr_turbo.envs.registry import make_task

FACTORY = "tests.envs.pool.faulty:make"
WAIT = 60.0
"""Seconds of a hang: far longer than any deadline of a test."""


def make(name: str, rules: Mapping[str, Any], seed: int) -> AbstractTask:
    """Return the game; the rule `fail` plants failures outside of steps."""
    given = dict(rules)
    plan: dict[str, Any] = given.pop("fail", {})
    time.sleep(plan.get("slow_start", 0.0))
    if seed in plan.get("dies_in_make", ()):
        sys.stderr.write("I never start")
        os._exit(5)
    once = plan.get("dies_once")  # a file that says that it has happened
    if once is not None and seed == plan["seed"] and not Path(once).exists():
        Path(once).touch()
        os._exit(6)
    return FaultyTask(make_task(name, given, seed))


@final
class FaultyTask(AbstractTask):
    """The game, until a reply that starts with `!` names a failure."""

    def __init__(self, task: AbstractTask) -> None:
        self._task = task

    @property
    def task_id(self) -> str:
        return self._task.task_id

    @property
    def observation(self) -> Observation:
        return self._task.observation

    @property
    def episode_seed(self) -> int:
        return self._task.episode_seed

    @property
    def solvable(self) -> bool:
        return self._task.solvable

    @property
    def episode_kind(self) -> str:
        return self._task.episode_kind

    @property
    def admissible_actions(self) -> tuple[str, ...]:
        return self._task.admissible_actions

    def write_action(self, action: str) -> str:
        return self._task.write_action(action)

    def reset(self, seed: int | None = None) -> Observation:
        return self._task.reset(seed)

    def step(self, reply: str) -> StepResult:
        if reply.startswith("!"):
            found = fail(reply[1:])
            if found is not None:
                return found
        return self._task.step(reply)

    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        return self._task.demonstrate(generator, mistake=mistake)

    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        return self._task.judge_thought(reply)

    def state(self) -> JsonState:
        return self._task.state()

    def restore(self, state: JsonState) -> None:
        self._task.restore(state)


def fail(how: str) -> Any:
    """Fail in one of many ways; one of them returns what is no step result."""
    if how == "raise":
        raise ValueError("this hand has no cards")
    return WAYS[how]()


def _exit() -> None:
    sys.stderr.write("\x1b[31mthe engine is on fire")
    os._exit(9)


def _chatter() -> None:
    sys.stdout.write("x" * 3_000_000)
    sys.stdout.flush()


WAYS: dict[str, Callable[[], Any]] = {
    "exit": _exit,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": lambda: time.sleep(WAIT),
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "nonsense": lambda: {"reward": 1.0},
    "babble": lambda: own_socket().sendall((4).to_bytes(8, "big") + b"nope"),
    "endless": lambda: own_socket().sendall((2**60).to_bytes(8, "big")),
    "chatter": _chatter,
    "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
}


def own_socket() -> socket.socket:
    """Return the worker's connection to its parent, which is the one socket that it has."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                return socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
    raise AssertionError("there is no socket")
