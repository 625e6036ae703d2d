import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import fingerprint
from gtr_turbo.merging.directories import no_progress
from gtr_turbo.merging.model_files import ModelFiles
from gtr_turbo.merging.model_output import (
    apply_changes,
    copy_companions,
    verify,
    write_model,
)

TENSORS = {"a": torch.tensor([1.0, 2.0]), "ids": torch.arange(3)}


@pytest.fixture
def like(tmp_path: Path) -> ModelFiles:
    (tmp_path / "base").mkdir()
    save_file(TENSORS, tmp_path / "base" / "model.safetensors")
    return ModelFiles(tmp_path / "base")


def as_stream(tensors: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    yield from tensors.items()


def test_a_model_is_written_and_read_back(like: ModelFiles, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    changed = apply_changes(like, as_stream({"a": torch.tensor([0.5, 0.0])}), None)
    num_changed = write_model(like, changed, tmp_path / "out", None, no_progress)
    written = verify(like, tmp_path / "out", None, num_changed, no_progress)
    expected = TENSORS | {"a": torch.tensor([1.5, 2.0])}
    assert written.fingerprint == fingerprint(expected)
    assert (written.num_tensors, written.num_parameters) == (2, 5)
    assert written.num_changed_tensors == 1


def test_a_result_that_is_not_finite_is_not_let_out(like: ModelFiles, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    stream = as_stream(TENSORS | {"a": torch.tensor([1e30, 0.0])})
    write_model(like, stream, tmp_path / "out", torch.float16, no_progress)
    with pytest.raises(MergeError, match=r'"a" is not finite in torch\.float16'):
        verify(like, tmp_path / "out", torch.float16, 1, no_progress)


def test_other_tensors_than_those_of_the_base_are_noticed(like: ModelFiles, tmp_path: Path) -> None:
    save_file(TENSORS | {"b": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(MergeError, match='"b" stands in the base or in the merged model'):
        verify(like, tmp_path, None, 0, no_progress)
    save_file(TENSORS | {"a": torch.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(MergeError, match='"a" was written as'):
        verify(like, tmp_path, None, 0, no_progress)


def test_companions_come_along(like: ModelFiles, tmp_path: Path) -> None:
    base, out = tmp_path / "base", tmp_path / "out"
    out.mkdir()
    (base / "config.json").write_text(json.dumps({"dtype": "float32", "text": {"dtype": None}}))
    (base / "tokenizer.json").write_text("{}")
    (base / "chat_template.jinja").write_text("x")
    (base / "adapter_config.json").write_text("{}")
    (base / "modeling.py").write_text("x")
    copy_companions(base, out, torch.bfloat16)
    assert {path.name for path in out.iterdir()} == {
        "config.json",
        "tokenizer.json",
        "chat_template.jinja",
    }
    config = json.loads((out / "config.json").read_text())
    assert config == {"dtype": "bfloat16", "text": {"dtype": None}}
    copy_companions(base / "model.safetensors", out, None)
    assert len(list(out.iterdir())) == 3
