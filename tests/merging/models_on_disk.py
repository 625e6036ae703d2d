"""Real model and adapter directories, small enough to write in a test."""

import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForImageTextToText, Qwen2_5_VLConfig

SHARD = "300KB"
RANK = 4


def tiny_config() -> Qwen2_5_VLConfig:
    text = {
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 96,
        "vocab_size": 64,
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 2, 2]},
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
    }
    vision = {
        "depth": 1,
        "hidden_size": 32,
        "num_heads": 2,
        "intermediate_size": 64,
        "out_hidden_size": 48,
        "patch_size": 14,
        "fullatt_block_indexes": [0],
    }
    return Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=True)


def write_base(directory: Path, *, shard: str = SHARD, dtype: torch.dtype = torch.float32) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = AutoModelForImageTextToText.from_config(tiny_config(), dtype=dtype)
    model.save_pretrained(directory, max_shard_size=shard)


def files_of(directory: Path) -> dict[str, Tensor]:
    """Return every tensor in the safetensors files of a directory."""
    found: dict[str, Tensor] = {}
    for path in sorted(directory.glob("*.safetensors")):
        found |= load_file(path)
    return found


def write_moved(base: Path, directory: Path, seed: int, step: float = 1e-2) -> dict[str, Tensor]:
    """Copy a model directory and move every weight a little; returns the moved weights."""
    shutil.copytree(base, directory)
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, Tensor] = {}
    for path in sorted(directory.glob("*.safetensors")):
        moved = {
            name: (value + step * torch.randn(value.shape, generator=generator)).to(value.dtype)
            for name, value in load_file(path).items()
        }
        save_file(moved, path, metadata={"format": "pt"})
        found |= moved
    return found


def write_adapter(base: Path, directory: Path, seed: int, **config: Any) -> None:
    """Write a PEFT adapter of every linear module with random factors."""
    model = AutoModelForImageTextToText.from_pretrained(base)
    settings = {"r": RANK, "lora_alpha": 2 * RANK, "target_modules": "all-linear"} | config
    with warnings.catch_warnings():
        # PEFT asks transformers by a name that is on its way out.
        warnings.simplefilter("ignore", FutureWarning)
        adapted = get_peft_model(model, LoraConfig(**settings))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_" in name:
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    adapted.save_pretrained(str(directory))


TOKENS = torch.tensor([[5, 9, 11, 3, 40, 7]])


@torch.no_grad()
def logits_of(model: torch.nn.Module) -> Tensor:
    return model.eval()(input_ids=TOKENS).logits


def load(directory: Path) -> torch.nn.Module:
    return AutoModelForImageTextToText.from_pretrained(directory, dtype=torch.float32)


def load_adapted(base: Path, adapter: Path) -> torch.nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return PeftModel.from_pretrained(load(base), adapter)
