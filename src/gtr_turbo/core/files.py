"""Files that are whole or absent: written beside their place, flushed to the disk, then renamed.

Durable on local POSIX file systems. The order is always write → fsync the file → rename → fsync
the folder, so that neither a killed process nor a power cut leaves half a file under a final name.
"""

import errno
import hashlib
import json
import math
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gtr_turbo.core.faultline import fault_point
from gtr_turbo.errors import CheckpointError, NonFiniteError

JSON = dict[str, Any] | list[Any] | str | int | float | bool | None
"""A value that JSON can hold; numbers are finite."""

TEMPORARY_PREFIX = ".tmp-"
"""Names that start like this are never read, and are swept when a run is opened."""

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL_TEXTS = (
    "No space left",
    "os error 28",
    "File too large",
    "os error 27",
    "quota exceeded",
)
"""How libraries that are not Python's own word the same failure."""


def temporary_path(target: Path) -> Path:
    """Return a path beside `target` that only this process uses."""
    return target.parent / f"{TEMPORARY_PREFIX}{target.name}-{os.getpid()}"


def dump_json(value: JSON | Mapping[str, JSON], *, indent: int | None = None) -> str:
    """Return `value` as JSON, keys in their own order.

    Raises NonFiniteError naming the place of a NaN or an infinity, which JSON cannot hold.
    """
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except ValueError as error:
        place = _non_finite_place(value) or "a key"
        raise NonFiniteError(
            f"`{place}` is not a finite number, and JSON holds finite numbers only.",
            hint="null says that there is no value.",
        ) from error


def _non_finite_place(value: object, place: str = "") -> str | None:
    """Return the dotted path of the first NaN or infinity, None when there is none."""
    if isinstance(value, float):
        return None if math.isfinite(value) else place or "value"
    children: list[tuple[object, object]] = []
    if isinstance(value, Mapping):
        children = [(key, value[key]) for key in value]
    elif isinstance(value, list | tuple):
        children = list(enumerate(value))
    for key, child in children:
        found = _non_finite_place(child, f"{place}.{key}" if place else str(key))
        if found is not None:
            return found
    return None


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by a file that holds `data`; on any failure the old file stands untouched.

    Raises CheckpointError when the disk is full.
    """
    temporary = temporary_path(path)
    try:
        with ExitStack() as undo:
            undo.callback(temporary.unlink, missing_ok=True)
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                fault_point("file.written")
                os.fsync(file.fileno())
            fault_point("file.synced")
            os.replace(temporary, path)
            undo.pop_all()
        fault_point("file.renamed")
        sync_directory(path.parent)
    except OSError as error:
        if is_disk_full(error):
            raise disk_full_error(path, len(data)) from error
        raise


def write_text_atomically(path: Path, text: str) -> None:
    """Replace `path` by a file that holds `text`, as `write_bytes_atomically` does."""
    write_bytes_atomically(path, text.encode("utf-8"))


def sync_file(path: Path) -> None:
    """Force a file's content to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Force a folder's entries (new names, renames) to the disk."""
    sync_file(path)


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error means that a file could not grow: disk, quota or size limit."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in DISK_FULL
    return any(text in str(error) for text in DISK_FULL_TEXTS)


def disk_full_error(path: Path, needed_bytes: int) -> CheckpointError:
    """Return the error that says where, how much was needed and how much is free."""
    free_bytes = shutil.disk_usage(path.parent).free
    return CheckpointError(
        f"could not write {path}: it needs {needed_bytes:,} bytes, and {free_bytes:,} bytes are"
        " free (a quota or a limit on file sizes may allow less). What was there is untouched.",
        hint="free some space, or lower run.keep_checkpoints; then go on with --resume.",
    )
