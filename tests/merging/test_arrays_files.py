import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.arrays import files
from gtr_turbo.merging.arrays.files import (
    KINDS,
    ArrayWriter,
    read_entry,
    read_entry_direct,
    read_header,
)
from gtr_turbo.merging.arrays.kernels import Scratch


def test_arrays_go_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    arrays = {kind: np.array([[0, 1, 1]]).astype(dtype) for kind, dtype in KINDS.items()}
    with ArrayWriter(path, {kind: (kind, (1, 3)) for kind in KINDS}) as writer:
        for kind in reversed(list(KINDS)):
            writer.write(kind, arrays[kind])
        writer.finish()
    entries = read_header(path)
    for kind, expected in arrays.items():
        found = read_entry(entries[kind])
        assert (found.dtype, entries[kind].num_entries) == (KINDS[kind], 3)
        assert np.array_equal(found, expected)


def test_an_array_is_read_into_room_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_file({"w": torch.tensor([1.0, 2.0], dtype=torch.bfloat16)}, path)
    room = np.zeros(9, np.uint8)
    found = read_entry(read_header(path)["w"], room)
    assert np.shares_memory(found, room)
    assert found.tolist() == [0x3F80, 0x4000]


@pytest.mark.parametrize("num", [100, 65_536, 300_001])
def test_large_arrays_are_read_directly(
    num: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.safetensors"
    tensors = {name: torch.arange(num) + at for at, name in enumerate("abc")}
    save_file(tensors, path)
    entries, scratch = read_header(path), Scratch()
    for name, value in tensors.items():
        assert np.array_equal(read_entry_direct(entries[name], scratch), value.numpy())
    monkeypatch.setattr(files, "read_into", lambda path, offset, room: 0)
    for name, value in tensors.items():
        assert np.array_equal(read_entry_direct(entries[name], scratch), value.numpy())
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(CheckpointError, match="bytes were wanted"):
        read_entry_direct(entries["c"], scratch)


def test_what_was_announced_must_come(tmp_path: Path) -> None:
    with ArrayWriter(tmp_path / "x", {"x": ("F32", [3])}) as writer:
        with pytest.raises(MergeError, match=r'"x" was announced as F32 \(3,\), but is float64'):
            writer.write("x", np.zeros(3))
        with pytest.raises(MergeError, match=r"1 tensors of x were never written"):
            writer.finish()


def with_header(path: Path, header: object, data: bytes = b"") -> Path:
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


@pytest.mark.parametrize(
    ("header", "data", "message"),
    [
        (b"{", b"", "not JSON"),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234", "need"),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234", "has 4 bytes"),
    ],
)
def test_damaged_files_are_refused(
    header: object, data: bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match=message):
        read_header(with_header(tmp_path / "x", header, data))


def test_a_length_beyond_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes((1 << 60).to_bytes(8, "little") + b"{}")
    with pytest.raises(CheckpointError, match="its header claims"):
        read_header(path)
    with pytest.raises(CheckpointError, match="there is no file"):
        read_header(tmp_path / "y")


def test_a_file_cut_while_in_use_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save_file({"x": torch.zeros(100)}, path)
    entry = read_header(path)["x"]
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(CheckpointError, match="400 bytes were wanted, 392 came"):
        read_entry(entry)


def test_types_that_cannot_be_merged_are_named(tmp_path: Path) -> None:
    header = {"w": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}
    with pytest.raises(MergeError, match=r'"w" of .* has type F8_E4M3'):
        read_header(with_header(tmp_path / "x", header, b"1"))
