import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gtr_turbo.core.faultline import (
    FAULT_VARIABLE,
    TRACE_VARIABLE,
    InjectedFaultError,
    fault_point,
    forget_passings,
    parse_faults,
)
from gtr_turbo.errors import ConfigError


@pytest.fixture(autouse=True)
def no_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FAULT_VARIABLE, raising=False)
    monkeypatch.delenv(TRACE_VARIABLE, raising=False)
    forget_passings()


def test_nothing_happens_unless_asked_for() -> None:
    for _ in range(3):
        fault_point("a")
    assert FAULT_VARIABLE not in os.environ


def test_a_point_off_costs_microseconds() -> None:
    start = time.perf_counter()
    for _ in range(10_000):
        fault_point("a")
    assert time.perf_counter() - start < 1.0  # 100 µs each; measured: about 1 µs


def test_the_kth_passing_of_a_name_fails_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULT_VARIABLE, "a:3:raise")
    fault_point("a")
    fault_point("b")
    fault_point("a")
    with pytest.raises(InjectedFaultError, match="`a`"):
        fault_point("a")
    fault_point("a")


def test_a_star_counts_points_of_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULT_VARIABLE, "*:2:raise")
    fault_point("a")
    with pytest.raises(InjectedFaultError, match="`b`"):
        fault_point("b")


def test_several_faults_strike_each_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULT_VARIABLE, "a:1:raise,b:2:enospc")
    with pytest.raises(InjectedFaultError):
        fault_point("a")
    fault_point("b")
    with pytest.raises(OSError, match="No space left") as caught:
        fault_point("b")
    assert caught.value.errno == errno.ENOSPC


def test_a_delay_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULT_VARIABLE, "a:1:delay=0.05")
    start = time.monotonic()
    fault_point("a")
    assert time.monotonic() - start >= 0.05


def test_kill_is_sigkill() -> None:
    code = "from gtr_turbo.core.faultline import fault_point as p; p('a'); p('a'); print('alive')"
    environment = {**os.environ, FAULT_VARIABLE: "a:2:kill"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == b""


def test_kill_goes_to_this_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    parse_faults("a:1:kill")[0].strike("a")
    assert sent == [(os.getpid(), signal.SIGKILL)]


def test_the_trace_lists_points_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trace = tmp_path / "points.txt"
    monkeypatch.setenv(TRACE_VARIABLE, str(trace))
    for name in ("b", "a", "b"):
        fault_point(name)
    assert trace.read_text().splitlines() == ["b", "a", "b"]


@pytest.mark.parametrize(
    "text",
    ["a", "a:1", "a:0:kill", "a:x:kill", ":1:kill", "a:1:explode", "a:1:delay", "a:1:kill=3"],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="hint: write GTR_TURBO_FAULT="):
        parse_faults(text)
