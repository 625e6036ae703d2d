import socket
import subprocess
import sys
from typing import Any

import pytest

from gtr_turbo.core.faultline import FAULT_VARIABLE, forget_passings
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.pool.wire import Answer, Failure, frame, read_message, split_frame, to_json
from gtr_turbo.envs.pool.worker import do_job, serve
from gtr_turbo.envs.registry import make_task
from tests.envs.pool.faulty import FACTORY
from tests.envs.pool.pools import GAME, RULES, reply
from tests.structure.test_imports import loaded_after

OPEN = {"index": 1, "seed": 5, "state": None, "is_reset": True}


def make(seed: int) -> AbstractTask:
    return make_task(GAME, RULES, seed)


def done(tasks: dict[int, AbstractTask], job: dict[str, Any]) -> tuple[Answer | Failure, bool]:
    said, is_well = do_job(tasks, make, job)
    payload = split_frame(bytearray(said))
    assert payload is not None
    return read_message(payload), is_well


def test_a_worker_never_imports_torch() -> None:
    assert loaded_after("import gtr_turbo.envs.pool.worker") == set()


def test_jobs_open_put_back_and_step() -> None:
    tasks: dict[int, AbstractTask] = {}
    opened, is_well = done(tasks, OPEN)
    assert is_well
    assert isinstance(opened, Answer)
    stepped, _ = done(tasks, {"index": 1, "reply": "no idea"})
    assert isinstance(stepped, Answer)
    assert stepped.result is not None
    assert stepped.result.random_action
    back, _ = done(tasks, {**OPEN, "state": opened.state, "is_reset": False})
    assert isinstance(back, Answer)
    assert (back.state, back.result) == (opened.state, None)
    lost, _ = done({}, {**OPEN, "state": opened.state})
    assert isinstance(lost, Answer)
    assert lost.shown.seed != opened.shown.seed


def test_what_goes_wrong_is_told() -> None:
    said, is_well = done({}, {"index": 1, "reply": "x"})
    assert not is_well
    assert isinstance(said, Failure)
    assert said.kind == "exception"
    assert "KeyError" in said.text
    said, _ = done({}, {**OPEN, "state": {"task_id": "chess"}})
    assert isinstance(said, Failure)
    assert said.kind == "TaskError"
    said, _ = done({}, {**OPEN, "seed": -1})
    assert isinstance(said, Failure)
    assert (said.kind, said.hint) == ("ConfigError", None)


def test_a_fault_can_be_injected_into_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: dict[int, AbstractTask] = {}
    done(tasks, OPEN)
    forget_passings()
    monkeypatch.setenv(FAULT_VARIABLE, "worker.step:2:raise")
    assert done(tasks, {"index": 1, "reply": reply(0)})[1]
    said, is_well = done(tasks, {"index": 1, "reply": reply(0)})
    assert not is_well
    assert isinstance(said, Failure)
    assert "worker.step" in said.text


@pytest.mark.parametrize(
    ("jobs", "count"), [([OPEN], 1), ([OPEN, {"index": 9, "reply": ""}, OPEN], 2), (None, 0)]
)
def test_serving_ends_with_the_connection_and_at_the_first_failure(
    jobs: list[dict[str, Any]] | None, count: int
) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        ours.settimeout(10)
        if jobs is not None:
            what = {"factory": FACTORY, "name": GAME, "rules": RULES}
            ours.sendall(frame(to_json(what)) + frame(to_json(jobs)))
        ours.shutdown(socket.SHUT_WR)
        with theirs:
            serve(theirs)
        buffer = bytearray()
        while chunk := ours.recv(2**16):
            buffer += chunk
    answers = 0
    while split_frame(buffer) is not None:
        answers += 1
    assert answers == count


def test_a_worker_whose_parent_is_another_ends_at_once() -> None:
    code = "from gtr_turbo.envs.pool.worker import die_with; die_with(1); print('alive')"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
