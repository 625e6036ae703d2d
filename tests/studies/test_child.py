import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gtr_turbo.studies.child import arguments_of, main

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
print(child.pid, flush=True)
time.sleep(60)
"""
CHILD = """
import os, time
from gtr_turbo.studies.child import tie_to
assert tie_to(os.getppid())
open("tied", "w").close()
time.sleep(60)
"""


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and waits to be noticed does not."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_a_child_ends_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, CHILD]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert wait_for((tmp_path / "tied").exists)
        assert is_alive(child)
        os.kill(parent.pid, signal.SIGKILL)
    assert wait_for(lambda: not is_alive(child))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_a_parent_that_is_gone_already_is_noticed() -> None:
    code = "from gtr_turbo.studies.child import tie_to; import sys; sys.exit(tie_to(1 << 30))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command_is_that_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: seen.append(arguments))
    monkeypatch.setattr("gtr_turbo.studies.child.tie_to", lambda parent: parent == os.getpid())
    words = arguments_of(["train", "--resume"])
    assert words[1:4] == ["-m", "gtr_turbo.studies.child", str(os.getpid())]
    main(words[3:])
    main(["1", "train"])  # tied to somebody else: nothing is run
    assert seen == [[sys.executable, "-m", "gtr_turbo", "train", "--resume"]]
