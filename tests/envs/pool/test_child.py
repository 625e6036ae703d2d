"""One worker process: what it is started with, and that nothing outlives its parent."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gtr_turbo.envs.pool.child import WorkerProcess, printable
from tests.structure.source import ROOT

PARENT = """
import sys, time
from tests.envs.pool.pools import open_pool
count = 2 if sys.argv[1] == "busy" else 1
with open_pool("process", seeds=range(count), workers=count) as pool:
    print(*pool.worker_pids, flush=True)
    if sys.argv[1] == "busy":
        pool.step(["!hang", "!hang"])
    time.sleep(60)
"""


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a dead one that nobody has waited for does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def wait_for_end(pids: list[int], seconds: float = 20.0) -> list[int]:
    """Return those that still run after a while."""
    end = time.monotonic() + seconds
    while (alive := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < end:
        time.sleep(0.02)
    return alive


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a busy worker at once")
@pytest.mark.parametrize("doing", ["busy", "idle"])
def test_a_killed_parent_leaves_no_orphan(doing: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, doing], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == (2 if doing == "busy" else 1)
        assert all(is_alive(pid) for pid in pids)
        time.sleep(0.3 if doing == "busy" else 0.0)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert wait_for_end(pids) == []


def test_a_forgotten_worker_is_killed() -> None:
    worker = WorkerProcess(10.0)
    pid = worker.pid
    assert is_alive(pid)
    assert os.getpgid(pid) == pid, "it leads a group of its own, so Ctrl-C passes it by"
    del worker
    gc.collect()
    assert wait_for_end([pid]) == []


def test_a_killed_worker_tells_how_it_ended_and_a_gone_one_takes_no_more() -> None:
    worker = WorkerProcess(10.0)
    os.kill(worker.pid, signal.SIGKILL)
    assert wait_for_end([worker.pid]) == []
    with pytest.raises(EOFError):
        worker.receive()
    with pytest.raises(OSError, match="pipe"):
        worker.send(b"{}")
    assert worker.kill() == (-9, "")


def test_a_worker_that_says_nothing_is_not_waited_for() -> None:
    worker = WorkerProcess(10.0)
    assert worker.receive() is None
    assert worker.kill()[0] == -9


def test_last_words_are_visible_characters() -> None:
    assert printable("\x1b[31mred\nline\x00é") == "�[31mred\nline�é"
