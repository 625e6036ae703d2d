from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.kernels import Scratch
from gtr_turbo.merging.arrays.sources import ArrayFiles, check_alike, check_same_names


def model(directory: Path, **tensors: torch.Tensor) -> ArrayFiles:
    directory.mkdir()
    save_file(tensors, directory / "model.safetensors")
    return ArrayFiles(directory, directory.name)


def test_floating_point_arrays_of_a_model(tmp_path: Path) -> None:
    values = torch.tensor([[1.0, 2.0]], dtype=torch.bfloat16)
    own = model(tmp_path / "m", w=values, steps=torch.tensor([3]))
    assert (own.names(), own.label) == (("w",), "m")
    assert (own.shape("w"), own.kind("w")) == ((1, 2), "BF16")
    scratch = Scratch()
    assert own.read("w", scratch).tolist() == [0x3F80, 0x4000]
    assert ArrayFiles(tmp_path / "m").label == str(tmp_path / "m")


def test_names_and_shapes_must_be_those_of_the_base(tmp_path: Path) -> None:
    base = model(tmp_path / "base", a=torch.ones(2), b=torch.ones(3))
    check_alike(base, base)
    with pytest.raises(MergeError, match='other lacks "b" and has in addition "c"; every'):
        check_alike(base, model(tmp_path / "other", a=torch.ones(2), c=torch.ones(3)))
    with pytest.raises(MergeError, match=r'"b" of third has shape \(4,\), the base has \(3,\)'):
        check_alike(base, model(tmp_path / "third", a=torch.ones(2), b=torch.ones(4)))
    with pytest.raises(MergeError, match='lacks "a", "b", "c" and 1 more'):
        check_same_names("abcd", (), "x")
