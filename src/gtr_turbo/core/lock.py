"""One process per directory: an advisory lock that the kernel frees when its holder dies."""

import fcntl
import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

from gtr_turbo.errors import CheckpointError, RunLockedError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@final
class DirectoryLock:
    """An exclusive `flock` on a file of a directory, signed by its holder."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        """Take a locked descriptor; None stands for a lock that needed no file."""
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, directory: Path, name: str, *, create: bool) -> "DirectoryLock":
        """Return the lock, taken without waiting.

        With `create` the directory and the lock file are made when they are missing; otherwise
        nothing on the disk changes. Raises RunLockedError naming the holder, CheckpointError when
        the directory cannot be written.
        """
        path = directory / name
        if not create and not path.exists():
            return cls(path, None)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise CheckpointError(
                f"{directory} cannot be used as a run directory: {error.strerror}.",
                hint="choose a --run-dir that this user can write.",
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _describe(os.pread(descriptor, 4096, 0))
            os.close(descriptor)
            raise RunLockedError(
                f"{directory} is in use by {holder}.",
                hint="wait for that process or stop it, or choose another --run-dir.",
            ) from None
        return cls(path, descriptor)

    def sign(self) -> None:
        """Write into the file who holds it: host, process, boot and time."""
        if self._descriptor is None:
            return
        who = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "boot_id": BOOT_ID.read_text().strip() if BOOT_ID.is_file() else None,
            "start_time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        # In place, because a rename would put another file under the name than the one locked.
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(who).encode() + b"\n", 0)
        os.fsync(self._descriptor)

    def release(self) -> None:
        """Free the lock; the file stays, because another process may be waiting on it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _describe(raw: bytes) -> str:
    """Return the holder in words; the lock stands even when its signature cannot be read."""
    try:
        who: dict[str, Any] = json.loads(raw)
        return f"process {who['pid']} on {who['host']} since {who['start_time']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
