"""What entries_of refuses is tested through `ModelFiles`."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from gtr_turbo.errors import CheckpointError
from gtr_turbo.merging.arrays.directories import entries_of, is_model, read_json, refuse_quantised


def test_shards_are_one_model(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "m-1.safetensors")
    save_file({"b": torch.ones(3, dtype=torch.bfloat16)}, tmp_path / "m-2.safetensors")
    index = {"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert is_model(tmp_path)
    found = {name: (own.kind, own.shape) for name, own in entries_of(tmp_path).items()}
    assert found == {"a": ("F32", (2,)), "b": ("BF16", (3,))}
    refuse_quantised(tmp_path)
    assert entries_of(tmp_path / "m-1.safetensors").keys() == {"a"}


def test_json_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(CheckpointError, match="there is no file"):
        read_json(path)
    path.write_text("[1]")
    with pytest.raises(CheckpointError, match="holds list, not a JSON object"):
        read_json(path)
    path.write_text("{")
    with pytest.raises(CheckpointError, match="is not JSON"):
        read_json(path)
