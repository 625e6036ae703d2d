import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.arrays.directories import is_model
from gtr_turbo.merging.model_files import ModelFiles, find_stored_name

FIRST, SECOND = {"a": torch.zeros(2)}, {"b": torch.ones(3, dtype=torch.bfloat16)}


def sharded(directory: Path, weight_map: dict[str, str] | None = None) -> Path:
    save_file(FIRST, directory / "m-1.safetensors")
    save_file(SECOND, directory / "m-2.safetensors")
    index = {"weight_map": weight_map or {"a": "m-1.safetensors", "b": "m-2.safetensors"}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    return directory


def test_shards_are_one_model(tmp_path: Path) -> None:
    model = ModelFiles(sharded(tmp_path))
    assert model.names() == ("a", "b")
    assert (model.shape("b"), model.dtype("b")) == ((3,), torch.bfloat16)
    assert (model.file_of("b"), model.storage("b")) == ("m-2.safetensors", "b")
    assert torch.equal(model.read("b"), SECOND["b"])
    assert (model.label, model.path) == (str(tmp_path), tmp_path)
    assert is_model(tmp_path)


def test_one_file_is_a_model(tmp_path: Path) -> None:
    save_file(FIRST, tmp_path / "model.safetensors")
    for path in (tmp_path, tmp_path / "model.safetensors"):
        assert is_model(path)
        assert ModelFiles(path).names() == ("a",)
    assert not is_model(tmp_path / "config.json")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no model in"):
        ModelFiles(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(MergeError, match="a pickle"):
        ModelFiles(tmp_path)


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({"a": "m-1.safetensors"}, None),
        ({"a": "m-1.safetensors", "c": "m-2.safetensors"}, '"b" stands either'),
        ({"a": "../m-1.safetensors"}, "outside of the directory"),
        ({"a": "m-3.safetensors"}, "there is no file"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(
    weight_map: dict[str, str], message: str | None, tmp_path: Path
) -> None:
    sharded(tmp_path, weight_map)
    if message is None:
        assert ModelFiles(tmp_path).names() == ("a",)
        return
    with pytest.raises(CheckpointError, match=message):
        ModelFiles(tmp_path)


def test_an_index_without_a_map_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    with pytest.raises(CheckpointError, match="no weight map"):
        ModelFiles(tmp_path)


def test_quantised_models_are_refused(tmp_path: Path) -> None:
    save_file(FIRST, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"quantization_config": {"bits": 4}}')
    with pytest.raises(MergeError, match="is quantised"):
        ModelFiles(tmp_path)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("model.language_model.layers.0.w", "model.layers.0.w"),
        ("model.visual.blocks.0.w", "visual.blocks.0.w"),
        ("model.language_model.norm.w", "language_model.model.norm.w"),
        ("model.head.w", "head.w"),
        ("lm_head.weight", "lm_head.weight"),
    ],
)
def test_names_of_modules_are_found_in_files(name: str, stored: str) -> None:
    assert find_stored_name(name, {stored, "other"}) == stored
    assert find_stored_name(name, {"other"}) is None


def test_stored_names_replace_those_of_modules(tmp_path: Path) -> None:
    save_file({"model.visual.w": torch.ones(1)}, tmp_path / "model.safetensors")
    assert ModelFiles(tmp_path, named_like=["visual.w"]).names() == ("visual.w",)
    assert ModelFiles(tmp_path, named_like=["else"]).names() == ("model.visual.w",)
