"""One worker process as its parent sees it: start it, talk to it without waiting, end it."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from typing import IO, final

from gtr_turbo.envs.pool.wire import frame, split_frame

BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from gtr_turbo.envs.pool.worker import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
MAX_LAST_WORDS = 4_000
"""Bytes of a worker's output that are told when it failed."""
MAX_OUTPUT_BYTES = 2**20
"""A worker's output is dropped when it grows beyond this; only its last words are ever read."""
STACK_SECONDS = 0.1
"""Time that a silent worker gets for writing down where it is."""
DEATH_SECONDS = 5.0
"""Longest wait for a killed process to be gone."""
_CHUNK_BYTES = 2**18
_MOST_CHUNKS = 16


@final
class WorkerProcess:
    """A fresh interpreter that runs `worker.main`, never a fork of this one.

    It has a process group of its own, so that what it starts ends with it, and so that Ctrl-C in a
    terminal does not reach it. Standard output and error go to an unnamed temporary file. When
    this object is collected or the interpreter ends, the process is killed.
    """

    def __init__(self, seconds: float) -> None:
        """Start it; `seconds` is the longest wait of any send. It waits to be told what to make."""
        self._seconds = seconds
        self._buffer = bytearray()
        self._socket, other = socket.socketpair()
        self._socket.setblocking(False)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the process
        fcntl.fcntl(self._output, fcntl.F_SETFL, os.O_APPEND | os.O_RDWR)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", BOOTSTRAP, json.dumps(_import_paths()),
                 str(other.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=[other.fileno()],
                start_new_session=True,
                env=_environment(),
            )  # fmt: skip
        self._end = weakref.finalize(self, _end, self._process, self._socket, self._output)

    @property
    def pid(self) -> int:
        """Process id, which is also that of its group."""
        return self._process.pid

    def fileno(self) -> int:
        """File descriptor that becomes readable when the worker has said something, or ended."""
        return self._socket.fileno()

    def send(self, payload: bytes) -> None:
        """Send a payload. Raises OSError when the worker is gone or takes nothing in time."""
        if os.fstat(self._output.fileno()).st_size > MAX_OUTPUT_BYTES:
            os.ftruncate(self._output.fileno(), 0)
        self._socket.settimeout(self._seconds)
        self._socket.sendall(frame(payload))
        self._socket.setblocking(False)

    def receive(self) -> bytes | None:
        """Return the next payload, without waiting; None when there is no whole one yet.

        Raises EOFError when the worker has ended and TaskError for a length that no payload has.
        """
        payload = split_frame(self._buffer)
        if payload is not None:
            return payload
        try:
            for _ in range(_MOST_CHUNKS):
                chunk = self._socket.recv(_CHUNK_BYTES)
                self._buffer += chunk
                payload = split_frame(self._buffer)
                if payload is not None or not chunk:
                    break
            else:
                return None  # it never ends: let the others have their turn
        except BlockingIOError:
            return None
        except ConnectionError:
            payload = None
        if payload is None:
            raise EOFError
        return payload

    def ask_where_it_is(self) -> None:
        """Let a silent worker write its stack into its output, if it still can."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)
        time.sleep(STACK_SECONDS)

    def kill(self) -> tuple[int | None, str]:
        """End the worker and what it started; return (exit status, its last words).

        A negative status is the signal that ended it, None a process that does not go away.
        """
        _kill(self._process)
        size = os.fstat(self._output.fileno()).st_size
        tail = os.pread(
            self._output.fileno(), MAX_LAST_WORDS, max(0, size - MAX_LAST_WORDS)
        ).decode("utf-8", errors="replace")
        self._end()
        return self._process.returncode, printable(tail).strip()


def printable(text: str) -> str:
    """Return the text with everything but line ends and visible characters replaced.

    >>> printable("a" + chr(27) + "[2Jb")
    'a�[2Jb'
    """
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _import_paths() -> list[str]:
    return [os.path.abspath(path) for path in sys.path]


def _environment() -> dict[str, str]:
    """Return the environment of a worker: one thread of arithmetic, unless told otherwise."""
    return {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ}


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.returncode is not None:
        return
    # Nobody has waited for it yet, so the group's number cannot have gone to somebody else.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(DEATH_SECONDS)


def _end(process: "subprocess.Popen[bytes]", connection: socket.socket, output: IO[bytes]) -> None:
    connection.close()
    _kill(process)
    output.close()
