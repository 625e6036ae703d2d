"""Large files written and read past the page cache, where the system can.

What a merge writes is synced at once and read again an update later at the earliest, so there is no
use for a copy in the cache, and making one costs more than the merge's arithmetic.
"""

import fcntl
import mmap
import os
from pathlib import Path
from typing import Final, final

PAGE: Final = 4096
"""Bytes that direct reads and writes are aligned to, in the file and in memory."""

_ROOM_BYTES: Final = 8 << 20
_DIRECT: Final[int] = getattr(os, "O_DIRECT", 0)


@final
class DirectFile:
    """A new file that is written from its beginning to its end, or else anyhow."""

    def __init__(self, path: Path) -> None:
        """Create `path`, or empty it."""
        self._handle = _opened(path)
        # Mapped memory begins at a page, as direct writes demand.
        self._room = mmap.mmap(-1, _ROOM_BYTES)
        self._start = self._used = 0
        self._is_settled = False

    def write(self, offset: int, data: memoryview) -> None:
        """Write `data` (bytes) at `offset`; cheapest where the last write ended."""
        if offset != self._start + self._used:
            self._settle()
        if self._is_settled:
            _write_all(self._handle, data, offset)
            return
        while data:
            size = min(len(data), _ROOM_BYTES - self._used)
            self._room[self._used : self._used + size] = data[:size]
            self._used += size
            data = data[size:]
            if self._used == _ROOM_BYTES:
                self._flush()

    def sync(self) -> None:
        """Bring everything that was written to disk."""
        self._settle()
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file; what was not synced may be lost."""
        os.close(self._handle)

    def _flush(self) -> None:
        with memoryview(self._room)[: self._used] as part:
            try:
                _write_all(self._handle, part, self._start)
            except OSError:
                if not _through_cache(self._handle):
                    raise
                _write_all(self._handle, part, self._start)
        self._start += self._used
        self._used = 0

    def _settle(self) -> None:
        """Write what waits; from here on, everything goes where it is told, through the cache."""
        if not self._is_settled:
            _through_cache(self._handle)
            self._flush()
            self._is_settled = True


def read_into(path: Path, offset: int, room: memoryview) -> int:
    """Read into `room`, which starts at a page and is a number of whole pages, as `offset` is.

    Returns the number of bytes that came: fewer at the end of the file, and 0 where the system
    refuses direct reads.
    """
    num_read = 0
    try:
        handle = os.open(path, os.O_RDONLY | _DIRECT)
    except OSError:
        return 0
    try:
        while num_read < len(room):
            done = os.preadv(handle, [room[num_read:]], offset + num_read)
            num_read += done
            if done % PAGE or not done:
                break
    except OSError:
        return 0
    finally:
        os.close(handle)
    return num_read


def _opened(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        return os.open(path, flags | _DIRECT, 0o666)
    except OSError:
        # Not every file system has direct writes; one that can't create files fails here again.
        return os.open(path, flags, 0o666)


def _through_cache(handle: int) -> bool:
    """Switch direct writes off; return whether they were on."""
    flags = fcntl.fcntl(handle, fcntl.F_GETFL)
    fcntl.fcntl(handle, fcntl.F_SETFL, flags & ~_DIRECT)
    return bool(flags & _DIRECT)


def _write_all(handle: int, data: memoryview, offset: int) -> None:
    while data:
        done = os.pwrite(handle, data, offset)
        data, offset = data[done:], offset + done
