"""From a model directory to a network with adapters and its processor."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model
from safetensors import SafetensorError
from transformers import AutoModelForImageTextToText, AutoProcessor
from transformers.utils import logging as transformers_logging

from gtr_turbo.core.config import LoraConfig, ModelConfig
from gtr_turbo.errors import ConfigError, ModelError

POLICY_ADAPTER = "default"
CRITIC_ADAPTER = "critic"

_PARTS = {
    "language_model": r"model\.language_model\.",
    "vision_tower": r"model\.visual\.(?!merger|deepstack_merger_list|patch_embed)",
    "merger": r"model\.visual\.(?:merger|deepstack_merger_list)\.",
}
"""Prefix of each part's modules, the same in Qwen2.5-VL and Qwen3-VL."""


def resolve_device(name: str) -> torch.device:
    """Return the device of a `model.device` value; ConfigError when it is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(
            f'`model.device` "{name}" is no torch device.', hint="use auto, cpu, cuda or cuda:N."
        ) from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            f'`model.device` is "{name}", but torch sees no GPU.', hint="use auto or cpu."
        )
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            f'`model.device` "{name}" cannot be used here: {str(error).splitlines()[0]}',
            hint="use auto, cpu, cuda or the number of a GPU that is there.",
        ) from error
    return device


def load_model(config: ModelConfig, device: torch.device) -> tuple[torch.nn.Module, Any]:
    """Return the network in evaluation mode on `device`, and its processor.

    Raises ModelError for a missing directory, pickled or damaged weights, an index that points
    outside of the directory, or an architecture that is not an image-text-to-text model.
    """
    directory = Path(config.path)
    local = directory.exists()
    if local:
        _check_directory(directory)
    elif directory.is_absolute() or config.path.count("/") != 1:
        raise ModelError(
            f"there is no model directory {config.path}.",
            hint="`model.path` is a local directory or a hub id OWNER/NAME.",
        )
    transformers_logging.disable_progress_bar()
    try:
        network = AutoModelForImageTextToText.from_pretrained(
            config.path,
            dtype=getattr(torch, config.dtype),
            attn_implementation=config.attention,
            local_files_only=local,
            trust_remote_code=False,
            use_safetensors=True,
        )
        processor = AutoProcessor.from_pretrained(
            config.path, local_files_only=local, trust_remote_code=False
        )
    except ImportError as error:
        raise ModelError(
            f"{config.path} cannot be loaded: {error}",
            hint=f"install what is missing, or choose another `model.attention` than"
            f' "{config.attention}".',
        ) from error
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ModelError(
            f"{config.path} cannot be loaded as a vision-language model: {error}",
            hint="it needs config.json, safetensors weights and a processor.",
        ) from error
    if getattr(network.config, "vision_config", None) is None or not _has_pictures(processor):
        raise ModelError(
            f"{config.path} has no vision tower or no image processor.",
            hint="use a Qwen2.5-VL or Qwen3-VL model.",
        )
    if config.gradient_checkpointing:
        with warnings.catch_warnings():
            # Renamed in newer transformers; the old name works in every version that we allow.
            warnings.filterwarnings("ignore", "`gradient_checkpointing_enable`", FutureWarning)
            network.gradient_checkpointing_enable({"use_reentrant": False})
    network.requires_grad_(config.finetuning == "full")
    return network.to(device).eval(), processor  # pyright: ignore[reportArgumentType]  mixin stub


def _has_pictures(processor: Any) -> bool:
    """Return whether what AutoProcessor found is more than a tokenizer."""
    return getattr(processor, "image_processor", None) is not None


def _check_directory(directory: Path) -> None:
    """Refuse pickled weights and weight files outside of the directory."""
    if not (directory / "config.json").is_file():
        raise ModelError(
            f"{directory} holds no config.json, so it is no model directory.",
            hint="`model.path` is what `save_pretrained` wrote: config, weights and processor.",
        )
    index = directory / "model.safetensors.index.json"
    if index.is_file():
        outside = sorted(name for name in _indexed_files(index) if Path(name).name != name)
        if outside:
            raise ModelError(
                f"{index} points outside of its directory: {outside[0]}.",
                hint="an index names files that lie beside it.",
            )
    elif not (directory / "model.safetensors").is_file():
        raise ModelError(
            f"{directory} holds no model.safetensors.",
            hint="pickled weights are never loaded; convert them to safetensors.",
        )


def _indexed_files(index: Path) -> set[str]:
    """Return the weight files that an index names. Raises ModelError when it is no index."""
    try:
        names = json.loads(index.read_bytes())["weight_map"].values()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{index} is no index of safetensors files: {error!r}.",
            hint="it is JSON with a `weight_map` from weights to files.",
        ) from error
    return {str(name) for name in names}


def add_adapters(network: torch.nn.Module, config: LoraConfig, *, critic: bool) -> PeftModel:
    """Return the network with LoRA on the linear layers of the chosen parts.

    The adapters start at zero change, so that the first policy is the model that was loaded.
    """
    peft_config = PeftLoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,  # pyright: ignore[reportArgumentType]  peft accepts floats
        lora_dropout=config.dropout,
        bias="none",
        target_modules=_target_pattern(network, config),
    )
    with warnings.catch_warnings():
        # peft reads a property that transformers has renamed; both names mean the same.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        model = get_peft_model(network, peft_config, adapter_name=POLICY_ADAPTER)  # pyright: ignore[reportArgumentType]
        if critic:
            model.add_adapter(CRITIC_ADAPTER, peft_config)
            model.set_adapter(POLICY_ADAPTER)
    return model  # pyright: ignore[reportReturnType]


def _target_pattern(network: torch.nn.Module, config: LoraConfig) -> str:
    """Return a pattern that matches every linear layer of the chosen parts, and nothing else."""
    linear = [
        name for name, module in network.named_modules() if isinstance(module, torch.nn.Linear)
    ]
    patterns: list[str] = []
    for part in config.targets:
        prefix = _PARTS[part]
        leaves = sorted({name.rsplit(".", 1)[1] for name in linear if re.match(prefix, name)})
        if not leaves:
            raise ModelError(
                f"the model has no linear layers in its {part}.",
                hint="take it out of `lora.targets`.",
            )
        patterns.append(f"{prefix}(?:.*\\.)?(?:{'|'.join(leaves)})")
    return "|".join(patterns)
