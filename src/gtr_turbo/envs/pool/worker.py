"""What runs in a worker: it makes tasks, does jobs on them, and says what came of each.

It never imports torch. It dies with its parent (at once on Linux, by a signal that the kernel
sends; elsewhere when it next looks at its closed connection), and it leaves Ctrl-C to the parent.
"""

import ctypes
import faulthandler
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

from gtr_turbo.core.faultline import fault_point
from gtr_turbo.core.turns import StepResult
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.pool.wire import frame, split_frame, write_answer, write_failure
from gtr_turbo.errors import ConfigError, GtrTurboError, TaskError, UnknownNameError

MAX_TRACEBACK = 4_000
"""Characters of a traceback that are told."""
_PR_SET_PDEATHSIG = 1
_CHUNK_BYTES = 2**18

REFUSALS: dict[str, type[GtrTurboError]] = {
    kind.__name__: kind for kind in (ConfigError, UnknownNameError, TaskError)
}
"""Errors of a start that are the caller's own mistake, by name."""

MakeTask = Callable[[int], AbstractTask]


def main(descriptor: int, parent: int) -> None:
    """Serve the connection `descriptor` until it closes, as a child of the process `parent`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with(parent)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # the parent asks where a silent worker is
    with socket.socket(fileno=descriptor) as connection:
        serve(connection)


def die_with(parent: int) -> None:
    """Let the kernel end this process when the thread of `parent` that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)


def serve(connection: socket.socket) -> None:
    """Read what to make, then do jobs in the order in which they come; end at the first failure.

    After a failure nothing here can be trusted, so the process ends and a new one takes over.
    """
    buffer = bytearray()
    first = _next_payload(connection, buffer)
    if first is None:
        return
    make = _maker(json.loads(first))
    tasks: dict[int, AbstractTask] = {}
    while (payload := _next_payload(connection, buffer)) is not None:
        for job in json.loads(payload):
            said, is_well = do_job(tasks, make, job)
            connection.sendall(said)
            if not is_well:
                return


def do_job(
    tasks: dict[int, AbstractTask], make: MakeTask, job: dict[str, Any]
) -> tuple[bytes, bool]:
    """Do a job and return (frame with the answer or the failure, whether it went well)."""
    index: int = job["index"]
    try:
        if "reply" in job:
            fault_point("worker.step")
            task, result = tasks[index], tasks[index].step(job["reply"])
            if not isinstance(result, StepResult):  # pyright: ignore[reportUnnecessaryIsInstance]
                kind = type(result).__name__
                return _failure(
                    index, "garbage", f"`step` returned a {kind}, no StepResult."
                ), False
            if result.terminated or result.truncated:
                task.reset()
        else:
            result, task = None, tasks.get(index) or make(job["seed"])
            tasks[index] = task
            if job["state"] is not None:
                task.restore(job["state"])
            if job["is_reset"]:
                task.reset()
        return frame(write_answer(index, task, result)), True
    except Exception as error:  # noqa: BLE001  a task may raise anything; it is told
        if isinstance(error, tuple(REFUSALS.values())) and "reply" not in job:
            return _failure(index, type(error).__name__, error.message, error.hint), False
        return _failure(index, "exception", traceback.format_exc()[-MAX_TRACEBACK:]), False


def _failure(index: int, kind: str, text: str, hint: str | None = None) -> bytes:
    return frame(write_failure(index, kind, text, hint))


def _maker(what: dict[str, Any]) -> MakeTask:
    """Return what makes a task from a seed; `what` names a factory as `module:NAME`."""
    module, _, name = str(what["factory"]).partition(":")
    factory = getattr(importlib.import_module(module), name)
    return lambda seed: factory(what["name"], what["rules"], seed)


def _next_payload(connection: socket.socket, buffer: bytearray) -> bytes | None:
    """Return the next payload; None when the other end has closed."""
    while (payload := split_frame(buffer)) is None:
        chunk = connection.recv(_CHUNK_BYTES)
        if not chunk:
            return None
        buffer += chunk
    return payload
