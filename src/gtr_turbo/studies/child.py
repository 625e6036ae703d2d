"""Runs a command that ends when the process that wanted it ends, however that ends.

`python -m gtr_turbo.studies.child PID train …` is `gtr-turbo train …`, tied to process PID.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

_SET_DEATH_SIGNAL: Final = 1
"""`PR_SET_PDEATHSIG`; what it sets outlives an exec."""


def arguments_of(command: Sequence[str]) -> list[str]:
    """Return the arguments that start a command of gtr-turbo, tied to this process."""
    return [sys.executable, "-m", "gtr_turbo.studies.child", str(os.getpid()), *command]


def tie_to(parent: int) -> bool:
    """Ask the kernel (Linux alone) to kill this process with its parent; False if that is gone."""
    if sys.platform != "linux":
        return True
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    return os.getppid() == parent


def main(arguments: Sequence[str]) -> None:
    """Become the command."""
    if tie_to(int(arguments[0])):
        os.execv(sys.executable, [sys.executable, "-m", "gtr_turbo", *arguments[1:]])


if __name__ == "__main__":
    main(sys.argv[1:])
