"""Model directories that load, and those that are refused by name."""

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from gtr_turbo.core.config import LoraConfig, ModelConfig
from gtr_turbo.errors import ConfigError, ModelError
from gtr_turbo.policies.loading import add_adapters, load_model, resolve_device
from tests.world import World, make_policy

CPU = torch.device("cpu")


def config(path: Path | str, **fields: object) -> ModelConfig:
    return ModelConfig.model_validate(
        {"path": str(path), "dtype": "float32", "device": "cpu", **fields}
    )


def no_config(model: Path) -> None:
    (model / "config.json").unlink()


def torn_config(model: Path) -> None:
    (model / "config.json").write_text("{")


def text_model(model: Path) -> None:
    (model / "config.json").write_text(json.dumps({"model_type": "gpt2"}))


def pickled(model: Path) -> None:
    torch.save({"w": torch.zeros(1)}, model / "pytorch_model.bin")
    (model / "model.safetensors").unlink()


def torn_weights(model: Path) -> None:
    data = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(data[: len(data) // 2])


def outside_index(model: Path) -> None:
    index = {"metadata": {}, "weight_map": {"lm_head.weight": "../model.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))


def absolute_index(model: Path) -> None:
    index = {"metadata": {}, "weight_map": {"lm_head.weight": "/etc/hostname"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))


def torn_index(model: Path) -> None:
    (model / "model.safetensors.index.json").write_text('{"weight_map": ["x"]}')


def no_processor(model: Path) -> None:
    for file in model.iterdir():
        if file.name not in ("config.json", "model.safetensors", "generation_config.json"):
            file.unlink()


@pytest.mark.parametrize(
    ("hurt", "complaint"),
    [
        (no_config, "config.json"),
        (torn_config, "cannot be loaded"),
        (text_model, "cannot be loaded"),
        (pickled, "model.safetensors"),
        (torn_weights, "cannot be loaded"),
        (outside_index, r"\.\./model\.safetensors"),
        (absolute_index, "/etc/hostname"),
        (torn_index, "no index"),
        (no_processor, "cannot be loaded|no image processor"),
    ],
)
def test_a_bad_directory_is_refused(
    world: World, hurt: Callable[[Path], None], complaint: str, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(world.untrained("qwen2_5_vl"), model)
    hurt(model)
    with pytest.raises(ModelError, match=complaint) as refusal:
        load_model(config(model), CPU)
    assert refusal.value.hint


@pytest.mark.parametrize("path", ["no/such/directory", "nowhere"])
def test_a_missing_directory_is_refused(path: str) -> None:
    with pytest.raises(ModelError, match="no model directory") as refusal:
        load_model(config(path), CPU)
    assert "OWNER/NAME" in str(refusal.value.hint)


def test_a_missing_absolute_directory_is_never_looked_for_on_a_hub(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model directory"):
        load_model(config(tmp_path / "absent"), CPU)


@pytest.mark.parametrize("finetuning", ["lora", "full"])
def test_what_is_loaded_is_in_evaluation_mode_and_trains_what_was_asked(
    world: World, finetuning: str
) -> None:
    network, processor = load_model(config(world.untrained("qwen3_vl"), finetuning=finetuning), CPU)
    assert not network.training
    assert {p.requires_grad for p in network.parameters()} == {finetuning == "full"}
    assert processor.image_processor is not None


def test_devices_by_name() -> None:
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert resolve_device("auto").type == expected
    assert resolve_device("cpu") == CPU
    with pytest.raises(ConfigError, match="no torch device"):
        resolve_device("toaster")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="sees no GPU"):
        resolve_device("cuda:1")


@pytest.mark.skipif(torch.xpu.is_available(), reason="there is such a device")
def test_a_device_that_torch_knows_but_cannot_use_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'`model\.device` "xpu" cannot be used here'):
        resolve_device("xpu")


@pytest.mark.skipif(find_spec("flash_attn") is not None, reason="flash_attn is installed")
def test_an_attention_without_its_package_is_told(world: World) -> None:
    config = ModelConfig(path=str(world.trained), attention="flash_attention_2")
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        load_model(config, CPU)
    assert "`model.attention`" in str(caught.value.hint)


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl"])
@pytest.mark.parametrize(
    ("parts", "prefixes"),
    [
        (("language_model",), ("model.language_model.",)),
        (("vision_tower",), ("model.visual.blocks.",)),
        (("merger",), ("model.visual.merger.", "model.visual.deepstack_merger_list.")),
    ],
)
def test_adapters_sit_on_every_linear_layer_of_the_chosen_parts_alone(
    world: World, family: str, parts: tuple[str, ...], prefixes: tuple[str, ...]
) -> None:
    network, _ = load_model(config(world.untrained(family)), CPU)
    linear = {
        name
        for name, module in network.named_modules()
        if isinstance(module, torch.nn.Linear) and name.startswith(prefixes)
    }
    lora = LoraConfig.model_validate({"rank": 2, "alpha": 2, "targets": parts})
    add_adapters(network, lora, critic=False)
    adapted = {n.split(".lora_A")[0] for n, _ in network.named_parameters() if ".lora_A." in n}
    assert adapted == linear
    assert adapted


def test_all_parts_together_leave_only_the_embeddings_out(world: World) -> None:
    policy = make_policy(world.untrained("qwen3_vl"), "lora")
    adapted = {n.split(".lora_A")[0] for n, _ in policy.policy_parameters() if ".lora_A." in n}
    linear = {
        n.removesuffix(".base_layer")
        for n, m in policy._network.named_modules()
        if type(m) is torch.nn.Linear and "lora_" not in n
    }
    assert linear - adapted == {"lm_head"}


def test_a_part_without_linear_layers_is_refused(world: World) -> None:
    network, _ = load_model(config(world.untrained("qwen2_5_vl")), CPU)
    network.model.visual.merger = torch.nn.Identity()  # pyright: ignore[reportAttributeAccessIssue]
    lora = LoraConfig.model_validate({"rank": 2, "alpha": 2, "targets": ["merger"]})
    with pytest.raises(ModelError, match="no linear layers in its merger"):
        add_adapters(network, lora, critic=False)
