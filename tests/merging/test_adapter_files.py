import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.adapter_files import AdapterFiles, is_adapter, read_settings

CONFIG: dict[str, Any] = {"peft_type": "LORA", "r": 2, "lora_alpha": 4}
A, B = torch.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
KEYS = {"base_model.model.net.q.lora_A.weight": A, "base_model.model.net.q.lora_B.weight": B}


def write(directory: Path, tensors: dict[str, torch.Tensor] | None = None, **config: Any) -> Path:
    save_file(KEYS if tensors is None else tensors, directory / "adapter_model.safetensors")
    (directory / "adapter_config.json").write_text(json.dumps(CONFIG | config))
    return directory


def test_an_adapter_is_a_source_of_changes(tmp_path: Path) -> None:
    assert not is_adapter(tmp_path)
    adapter = AdapterFiles(write(tmp_path), "mine")
    assert is_adapter(tmp_path)
    assert adapter.names() == ("net.q.weight",)
    assert adapter.label == "mine"
    assert adapter.shape("net.q.weight") == (2, 3)
    assert adapter.dtype("net.q.weight") == torch.float32
    assert adapter.storage("net.q.weight") == "net.q.weight"
    assert torch.equal(adapter.read("net.q.weight"), 2.0 * (B @ A))
    assert adapter.factors("net.q.weight").rank == 2


@pytest.mark.parametrize(
    ("config", "scaling"),
    [
        ({}, 2.0),
        ({"use_rslora": True, "lora_alpha": 2}, 2.0**0.5),
        ({"alpha_pattern": {"q": 16}}, 8.0),
        ({"alpha_pattern": {"net.q": 16}}, 8.0),
        ({"alpha_pattern": {"q.x": 16, "et.q": 16}}, 2.0),
        ({"r": 8, "rank_pattern": {"net\\..": 2}}, 2.0),
        ({"alpha_pattern": None, "rank_pattern": None}, 2.0),
    ],
)
def test_every_module_has_its_own_scaling(
    config: dict[str, Any], scaling: float, tmp_path: Path
) -> None:
    factors = AdapterFiles(write(tmp_path, **config)).factors("net.q.weight")
    assert factors.scaling == pytest.approx(scaling)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"peft_type": "IA3"}, "type IA3; only LORA"),
        ({"use_dora": True}, "`use_dora` to True"),
        ({"lora_bias": True}, "`lora_bias`"),
        ({"kasa_config": {"x": 1}}, "`kasa_config`"),
        ({"fan_in_fan_out": True}, "`fan_in_fan_out`"),
        ({"bias": "all"}, "trains biases"),
        ({"init_lora_weights": "pissa"}, 'initialised with "pissa"'),
        ({"r": 3}, "the configuration says rank 3"),
    ],
)
def test_what_is_no_plain_lora_is_refused(
    config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(MergeError, match=message):
        AdapterFiles(write(tmp_path, **config))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"base_model.model.q.lora_A.weight": A}, 'only one factor of "q"'),
        (KEYS | {"base_model.model.e.lora_embedding_A": A.clone()}, "neither a linear LoRA factor"),
        (KEYS | {"base_model.model.q.ids": torch.arange(2)}, "neither a linear LoRA factor"),
        (
            {"q.lora_A.weight": torch.zeros(2, 3, 1), "q.lora_B.weight": B},
            "only those of linear modules",
        ),
        (KEYS | {"base_model.model.head.weight": A.clone()}, "a module trained in full"),
    ],
)
def test_tensors_that_are_no_factors_are_refused(
    tensors: dict[str, torch.Tensor], message: str, tmp_path: Path
) -> None:
    with pytest.raises(MergeError, match=message):
        AdapterFiles(write(tmp_path, tensors))


def test_a_module_trained_in_full_counts_with_its_difference(tmp_path: Path) -> None:
    write(tmp_path, KEYS | {"base_model.model.head.weight": A + 1.0})
    adapter = AdapterFiles(tmp_path, base_tensor=lambda name: A)
    assert adapter.names() == ("head.weight", "net.q.weight")
    assert adapter.shape("head.weight") == (2, 3)
    assert torch.equal(adapter.read("head.weight"), torch.ones(2, 3))
    with pytest.raises(MergeError, match="trained in full and has no factors"):
        adapter.factors("head.weight")


def test_a_configuration_without_a_rank_is_damaged() -> None:
    with pytest.raises(CheckpointError, match="lacks 'r'"):
        read_settings({"peft_type": "LORA"}, "mine")
