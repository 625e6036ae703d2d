"""Safetensors files read and written one array at a time, with the header known in advance.

A file is an 8-byte little-endian length, a JSON header with type, shape and byte range of every
tensor, and the bytes. Reading goes through plain reads, not a mapped file, so that memory in use is
the tensor in hand.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, final

import numpy as np

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.arrays.direct import PAGE, DirectFile, read_into
from gtr_turbo.merging.arrays.kernels import Scratch
from gtr_turbo.merging.arrays.numbers import FLOATS

KINDS: Final[Mapping[str, np.dtype]] = {
    **FLOATS,
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}
"""The types that merges can read, by their name in a header; bfloat16 stands as its bits."""

Announced = tuple[str, Sequence[int]]
"""Kind and shape of an array that is going to be written."""

_LENGTH_BYTES: Final = 8
_ALIGNMENT: Final = 8
_LARGEST_HEADER: Final = 100_000_000
_DIRECT_FROM: Final = 1 << 18


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Where one tensor lies in a file."""

    path: Path
    kind: str
    """Its type, a name in `KINDS`."""
    shape: tuple[int, ...]
    start: int
    """First byte, from the beginning of the file."""
    num_bytes: int

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


def read_header(path: Path) -> dict[str, Entry]:
    """Return the tensors of a safetensors file by name, in the order of their bytes.

    Raises:
        CheckpointError: the file is missing, cut short or not a safetensors file.
        MergeError: a tensor has a type that merges do not read, such as float8.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if not 0 < length <= min(_LARGEST_HEADER, size - _LENGTH_BYTES):
                raise _damaged(path, f"its header claims {length} bytes of {size}")
            header: dict[str, Any] = json.loads(file.read(length).decode("utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"there is no file {path}.", hint="the directory is incomplete; fetch it again."
        ) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, f"its header is not JSON ({error})") from error
    data_start = _LENGTH_BYTES + length
    entries = {
        name: _entry(path, name, record, data_start)
        for name, record in header.items()
        if name != "__metadata__"
    }
    end = max((entry.start + entry.num_bytes for entry in entries.values()), default=data_start)
    if end > size:
        raise _damaged(path, f"its tensors need {end} bytes, it has {size}")
    return dict(sorted(entries.items(), key=lambda item: item[1].start))


def read_entry(entry: Entry, room: np.ndarray | None = None) -> np.ndarray:
    """Return one array, read into memory of its own, or into the head of `room` (bytes)."""
    raw = np.empty(entry.num_bytes, np.uint8) if room is None else room[: entry.num_bytes]
    with entry.path.open("rb") as file:
        file.seek(entry.start)
        num_read = file.readinto(raw.data) if entry.num_bytes else 0
    if num_read != entry.num_bytes:
        raise _damaged(entry.path, f"{entry.num_bytes} bytes were wanted, {num_read} came")
    return raw.view(KINDS[entry.kind]).reshape(entry.shape)


def read_entry_direct(entry: Entry, scratch: Scratch) -> np.ndarray:
    """Return one array in `scratch`, read past the page cache if it is large and the system can."""
    if entry.num_bytes >= _DIRECT_FROM:
        start = entry.start // PAGE * PAGE
        num_pages = -(-(entry.start + entry.num_bytes - start) // PAGE)
        room = scratch.bytes(num_pages * PAGE)
        offset = entry.start - start
        if read_into(entry.path, start, room.data) >= offset + entry.num_bytes:
            raw = room[offset : offset + entry.num_bytes]
            return raw.view(KINDS[entry.kind]).reshape(entry.shape)
    return read_entry(entry, scratch.bytes(entry.num_bytes))


@final
class ArrayWriter:
    """Writes one safetensors file whose arrays arrive in any order."""

    def __init__(self, path: Path, entries: Mapping[str, tuple[str, Sequence[int]]]) -> None:
        """Create `path` with the header for `entries` (kind and shape by name)."""
        self._path = path
        self._missing = set(entries)
        self._entries = _planned(path, entries)
        self._file = DirectFile(path)
        self._file.write(0, memoryview(_header_bytes(self._entries)))

    def write(self, name: str, array: np.ndarray) -> None:
        """Write one array of the kind and shape that were announced."""
        entry = self._entries[name]
        if (array.dtype, array.shape) != (KINDS[entry.kind], entry.shape):
            raise MergeError(
                f'tensor "{name}" was announced as {entry.kind} {entry.shape}, but is {array.dtype}'
                f" {array.shape}.",
                hint="the announced type and shape come from the base.",
            )
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._file.write(entry.start, flat.data)
        self._missing.discard(name)

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def finish(self) -> None:
        """Flush the file to disk; MergeError when an announced tensor never came."""
        if self._missing:
            raise MergeError(
                f"{len(self._missing)} tensors of {self._path.name} were never written, the first"
                f' is "{min(self._missing)}".',
                hint="a merge must yield every tensor of the base.",
            )
        self._file.sync()


def _planned(path: Path, entries: Mapping[str, Announced]) -> dict[str, Entry]:
    """Return where each tensor will lie; starts count from the first data byte until shifted."""
    planned: dict[str, Entry] = {}
    at = 0
    for name, (kind, shape) in entries.items():
        num_bytes = math.prod(shape) * KINDS[kind].itemsize
        planned[name] = Entry(
            path=path, kind=kind, shape=tuple(shape), start=at, num_bytes=num_bytes
        )
        at += num_bytes
    shift = len(_header_bytes(planned))
    return {
        name: Entry(
            path=path,
            kind=entry.kind,
            shape=entry.shape,
            start=entry.start + shift,
            num_bytes=entry.num_bytes,
        )
        for name, entry in planned.items()
    }


def _header_bytes(entries: Mapping[str, Entry]) -> bytes:
    first = min((entry.start for entry in entries.values()), default=0)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    for name, entry in entries.items():
        begin = entry.start - first
        header[name] = {
            "dtype": entry.kind,
            "shape": list(entry.shape),
            "data_offsets": [begin, begin + entry.num_bytes],
        }
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def _entry(path: Path, name: str, record: Mapping[str, Any], data_start: int) -> Entry:
    kind = str(record["dtype"])
    if kind not in KINDS:
        raise MergeError(
            f'tensor "{name}" of {path} has type {kind}; merges read {", ".join(KINDS)}.',
            hint="quantised weights cannot be merged; use the weights before quantisation.",
        )
    begin, end = (int(offset) for offset in record["data_offsets"])
    shape = tuple(int(size) for size in record["shape"])
    if end - begin != math.prod(shape) * KINDS[kind].itemsize:
        raise _damaged(path, f'tensor "{name}" has {end - begin} bytes for shape {shape}')
    return Entry(path=path, kind=kind, shape=shape, start=data_start + begin, num_bytes=end - begin)


def _damaged(path: Path, what: str) -> CheckpointError:
    return CheckpointError(
        f"{path} is not a whole safetensors file: {what}.",
        hint="the download or copy was cut short; fetch the file again.",
    )
