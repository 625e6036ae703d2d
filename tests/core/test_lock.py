import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gtr_turbo.core.lock import DirectoryLock
from gtr_turbo.errors import CheckpointError, RunLockedError

HOLDER = """
import sys, time
from pathlib import Path
from gtr_turbo.core.lock import DirectoryLock
lock = DirectoryLock.take(Path(sys.argv[1]), "LOCK", create=True)
lock.sign()
print("ready", flush=True)
time.sleep(60)
"""


def start_holder(path: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_second_process_is_refused_at_once_and_a_dead_one_holds_nothing(tmp_path: Path) -> None:
    with start_holder(tmp_path) as holder:
        start = time.monotonic()
        with pytest.raises(RunLockedError, match=f"process {holder.pid} on {socket.gethostname()}"):
            DirectoryLock.take(tmp_path, "LOCK", create=True)
        assert time.monotonic() - start < 1.0
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        DirectoryLock.take(tmp_path, "LOCK", create=True).release()


def test_the_signature_says_who_and_since_when(tmp_path: Path) -> None:
    lock = DirectoryLock.take(tmp_path, "LOCK", create=True)
    lock.sign()
    who = json.loads((tmp_path / "LOCK").read_text())
    assert set(who) == {"host", "pid", "boot_id", "start_time"}
    assert who["pid"] == os.getpid()
    lock.release()


def test_an_unreadable_signature_does_not_open_the_lock(tmp_path: Path) -> None:
    lock = DirectoryLock.take(tmp_path, "LOCK", create=True)
    (tmp_path / "LOCK").write_bytes(b"\xff{")
    with pytest.raises(RunLockedError, match="another process"):
        DirectoryLock.take(tmp_path, "LOCK", create=True)
    lock.release()
    lock.release()
    DirectoryLock.take(tmp_path, "LOCK", create=True).release()


def test_looking_creates_nothing(tmp_path: Path) -> None:
    lock = DirectoryLock.take(tmp_path / "no", "LOCK", create=False)
    lock.sign()
    lock.release()
    assert not (tmp_path / "no").exists()


def test_a_place_that_is_no_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="file cannot be used as a run directory"):
        DirectoryLock.take(tmp_path / "file", "LOCK", create=True)
