"""Drills: real workers that die, hang and babble; who pays for it, and who does not."""

import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gtr_turbo.envs.pool.base import AbstractPool, Fault
from gtr_turbo.envs.pool.processes import ProcessPool
from gtr_turbo.errors import ConfigError, TaskError
from tests.envs.pool.pools import RULES, known, open_pool, play, reply, standing

ROUNDS = 6
END = reply(3)
"""Hands in whatever stands there, which ends the episode."""


@pytest.fixture(scope="module")
def undisturbed() -> list[list[Any]]:
    """Return what the three environments do when none of them fails."""
    with open_pool("in_process") as pool:
        return play(pool, ROUNDS)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


FAULTS = {
    "exit": ("crash", "on fire"),
    "killed": ("crash", "exit status -9"),
    "hang": ("hang", "faulty.py"),
    "stopped": ("hang", "no answer"),
    "raise": ("exception", "this hand has no cards"),
    "nonsense": ("garbage", "returned a dict"),
    "babble": ("garbage", "no answer"),
    "endless": ("garbage", "claims 1,152,921,504,606,846,976 bytes"),
}


@pytest.fixture(scope="module")
def drilled() -> Iterator[AbstractPool]:
    """Return a pool that survives one fault after the other; 0 and 2 share a worker."""
    with open_pool("process", step_deadline=1.0) as pool:
        yield pool


@pytest.mark.parametrize("how", FAULTS)
def test_a_fault_costs_its_own_episode_and_nothing_else(
    how: str, drilled: AbstractPool, caplog: pytest.LogCaptureFixture
) -> None:
    kind, told = FAULTS[how]
    with open_pool("in_process") as calm, caplog.at_level(logging.WARNING):
        calm.restore(drilled.state())
        faults = drilled.num_faults
        _, *expected = calm.step([END, reply(1), reply(4)])
        fault, *others = drilled.step([f"!{how}", reply(1), reply(4)])
        assert [known(other) for other in others] == [known(other) for other in expected]
        # The next episode is the one that would have come, had this one just ended.
        assert standing(drilled) == standing(calm)
    assert isinstance(fault, Fault)
    assert fault.kind == kind
    assert told in fault.detail
    assert "\x1b" not in fault.detail
    assert fault.detail in caplog.text
    assert drilled.num_faults == faults + 1
    drilled.step([END] * 3)  # which clears the accounts


def test_neighbours_play_on_as_if_nothing_had_happened(undisturbed: list[list[Any]]) -> None:
    said = {(1, 0): "!exit", (3, 2): "!raise"}
    with open_pool("process", workers=1) as pool:
        found = play(pool, ROUNDS, said)
        assert pool.num_faults == 2
        assert found[1] == undisturbed[1]
    faults = {(n, i) for i, h in enumerate(found) for n, (what, _) in enumerate(h)
              if what == "fault"}  # fmt: skip
    assert faults == said.keys()


def test_a_hang_is_seen_in_time_two_at_once_cost_no_more_and_closing_ends_all() -> None:
    with open_pool("process", step_deadline=0.5, seeds=(1, 2)) as pool:
        assert isinstance(pool, ProcessPool)
        start = time.monotonic()
        outcomes = pool.step(["!hang", "!hang"])
        assert [isinstance(outcome, Fault) for outcome in outcomes] == [True, True]
        assert 0.5 <= time.monotonic() - start < 40, "each hang would last 60 s"
        pids = pool.worker_pids
        assert len(pids) == 2
        assert all(is_alive(pid) for pid in pids)
    assert not any(is_alive(pid) for pid in pids)


def test_a_worker_that_dies_between_two_steps_costs_nobody_anything(
    drilled: AbstractPool,
) -> None:
    assert isinstance(drilled, ProcessPool)
    with open_pool("in_process") as calm:
        calm.restore(drilled.state())
        faults = drilled.num_faults
        for pid in drilled.worker_pids:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
        assert play(drilled, 3) == play(calm, 3)
    assert drilled.num_faults == faults + 2


def test_too_many_faults_end_the_run_with_the_last_words() -> None:
    with open_pool("process", max_restarts=1, workers=1) as pool:
        assert isinstance(pool, ProcessPool)
        pool.step([reply(0), "!exit", reply(0)])
        pids = pool.worker_pids
        with pytest.raises(TaskError, match=r"environment 1 .* 2 times .*(?s:.)*on fire"):
            pool.step([reply(0), "!exit", reply(0)])
        assert pool.worker_pids == []
        assert not any(is_alive(pid) for pid in pids)
        with pytest.raises(TaskError, match="is closed"):
            pool.step([reply(0)] * 3)


def test_an_ended_episode_clears_the_account_of_its_environment_but_not_that_of_all() -> None:
    with open_pool("process", max_restarts=1, seeds=(1, 2), workers=1) as pool:
        for _ in range(2):
            pool.step(["!raise", reply(0)])
            pool.step([END, reply(0)])
        with pytest.raises(TaskError, match="3 faults of all environments"):
            pool.step(["!raise", reply(0)])


def test_without_restarts_the_first_fault_ends_the_run() -> None:
    with (
        open_pool("process", max_restarts=0, seeds=(1,)) as pool,
        pytest.raises(TaskError, match="this hand has no cards"),
    ):
        pool.step(["!raise"])


def test_a_start_that_fails_once_is_tried_again(
    tmp_path: Path, undisturbed: list[list[Any]]
) -> None:
    plan = {"dies_once": str(tmp_path / "died"), "seed": 12, "slow_start": 0.1}
    with open_pool("process", rules={**RULES, "fail": plan}, workers=1) as pool:
        assert pool.num_faults == 1
        assert play(pool, 2) == [history[:2] for history in undisturbed]


def test_a_start_that_always_fails_is_told() -> None:
    rules = {**RULES, "fail": {"dies_in_make": [12]}}
    with (
        pytest.raises(TaskError, match=r"environment 1(?s:.)*I never start"),
        open_pool("process", rules=rules, max_restarts=0, workers=1),
    ):
        pass


def test_a_start_that_takes_too_long_is_a_hang() -> None:
    rules = {**RULES, "fail": {"slow_start": 30.0}}
    with (
        pytest.raises(TaskError, match="This was a hang"),
        open_pool("process", rules=rules, max_restarts=0, start_deadline=0.2, seeds=(1,)),
    ):
        pass


def test_what_the_caller_did_wrong_is_said_at_once() -> None:
    with (
        pytest.raises(ConfigError, match="no_such_rule"),
        open_pool("process", rules={"no_such_rule": 1}, seeds=(1,)),
    ):
        pass


def test_output_is_no_answer_and_ctrl_c_is_the_parents(drilled: AbstractPool) -> None:
    with open_pool("in_process") as calm:
        calm.restore(drilled.state())
        faults = drilled.num_faults
        calm.step([reply(1), reply(1), reply(1)])
        drilled.step(["!chatter", "!interrupt", reply(1)])
        assert standing(drilled)[2] == standing(calm)[2]
        assert not any(isinstance(outcome, Fault) for outcome in drilled.step([END] * 3))
    assert drilled.num_faults == faults


def test_the_wrong_number_of_replies_is_refused(drilled: AbstractPool) -> None:
    with pytest.raises(TaskError, match="3 environments got 2 replies"):
        drilled.step(["a", "b"])
