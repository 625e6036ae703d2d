from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.safetensors_files import TensorWriter, read_entry, read_header
from gtr_turbo.merging.tensors import DTYPES

TENSORS = {
    "matrix": torch.arange(6.0).reshape(2, 3),
    "short": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "scalar": torch.tensor(7),
    "flags": torch.tensor([True, False]),
    "nothing": torch.zeros(0, 4),
}


def test_what_safetensors_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_file(TENSORS, path, metadata={"format": "pt"})
    entries = read_header(path)
    assert entries.keys() == TENSORS.keys()
    for name, entry in entries.items():
        found = read_entry(entry)
        assert found.dtype == TENSORS[name].dtype
        assert torch.equal(found, TENSORS[name])


def test_what_is_written_is_read_by_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with TensorWriter(path, {k: (v.dtype, v.shape) for k, v in TENSORS.items()}) as writer:
        for name in reversed(TENSORS):
            writer.write(name, TENSORS[name])
        writer.finish()
    found = load_file(path)
    assert found.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        assert torch.equal(found[name], value)


def test_every_type_goes_both_ways(tmp_path: Path) -> None:
    for dtype in DTYPES.values():
        path = tmp_path / "x.safetensors"
        value = torch.tensor([0, 1, 1]).to(dtype)
        with TensorWriter(path, {"x": (dtype, [3])}) as writer:
            writer.write("x", value)
            writer.finish()
        assert torch.equal(load_file(path)["x"], value)
        assert torch.equal(read_entry(read_header(path)["x"]), value)


def test_what_was_announced_must_come(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with TensorWriter(path, {"x": (torch.float32, [3]), "y": (torch.float32, [1])}) as writer:
        with pytest.raises(MergeError, match=r'"x" was announced as torch\.float32 \(3,\), but is'):
            writer.write("x", torch.zeros(2))
        writer.write("x", torch.zeros(3))
        with pytest.raises(
            MergeError, match=r'1 tensors of x\.safetensors were never written.*"y"'
        ):
            writer.finish()
