import errno
import os
from pathlib import Path

import numpy as np
import pytest

from gtr_turbo.merging.arrays import direct
from gtr_turbo.merging.arrays.direct import PAGE, DirectFile, read_into
from gtr_turbo.merging.arrays.kernels import Scratch

SIZE = (8 << 20) * 2 + 12_345


def content() -> bytes:
    return np.random.default_rng(0).bytes(SIZE)


def written(path: Path, pieces: list[tuple[int, int]]) -> bytes:
    data = memoryview(content())
    file = DirectFile(path)
    for start, stop in pieces:
        file.write(start, data[start:stop])
    file.sync()
    file.close()
    return path.read_bytes()


PIECES = [(0, 7), (7, 5_000_000), (5_000_000, 5_000_000), (5_000_000, SIZE - 1), (SIZE - 1, SIZE)]


def test_pieces_in_order(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old" * 9_000_000)
    assert written(tmp_path / "x", PIECES) == content()


@pytest.mark.parametrize("order", [[4, 3, 1, 0], [0, 3, 1, 4], [0, 1, 4, 3]])
def test_pieces_in_any_order(order: list[int], tmp_path: Path) -> None:
    assert written(tmp_path / "x", [PIECES[at] for at in order]) == content()


def test_a_file_system_without_direct_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_direct(path: Path, flags: int, mode: int) -> int:
        if flags & direct._DIRECT:
            raise OSError(errno.EINVAL, "no direct writes here")
        return opened(path, flags, mode)

    opened = os.open
    monkeypatch.setattr(direct.os, "open", no_direct)
    assert written(tmp_path / "x", PIECES) == content()


def test_direct_writes_that_are_refused_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[int] = []

    def pwrite(handle: int, data: memoryview, offset: int) -> int:
        if not refused:
            refused.append(offset)
            raise OSError(errno.EINVAL, "not aligned")
        return write(handle, data, offset)

    write = os.pwrite
    monkeypatch.setattr(direct.os, "pwrite", pwrite)
    assert written(tmp_path / "x", PIECES) == content()


def test_errors_that_stay_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, data: memoryview, offset: int) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(direct.os, "pwrite", full)
    file = DirectFile(tmp_path / "x")
    with pytest.raises(OSError, match="no space left"):
        file.write(0, memoryview(content()))
    file.close()


def test_pages_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(content())
    room = Scratch().bytes(3 * PAGE)
    assert read_into(path, PAGE, room.data) == 3 * PAGE
    assert room.tobytes() == content()[PAGE : 4 * PAGE]
    last = SIZE // PAGE * PAGE
    assert read_into(path, last, room.data) == SIZE - last
    assert room.tobytes()[: SIZE - last] == content()[last:]
    assert read_into(tmp_path / "y", 0, room.data) == 0

    def refused(handle: int, rooms: list[memoryview], offset: int) -> int:
        raise OSError(errno.EINVAL, "not aligned")

    monkeypatch.setattr(direct.os, "preadv", refused)
    assert read_into(path, 0, room.data) == 0
