"""A small but complete Qwen-VL model directory, made on the spot: weights, tokenizer, processor.

The directory is what `from_pretrained` expects, with the same classes as the 7B model, so that
everything above this module treats both alike. Nothing is downloaded.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig,
    AutoModelForImageTextToText,
    PreTrainedTokenizerFast,
    Qwen2_5_VLProcessor,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)
from transformers.utils import logging as transformers_logging

from gtr_turbo.core.seeding import seed_everything
from gtr_turbo.errors import UnknownNameError, nearest_hint

CONTROL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
VOCABULARY_SIZE = 512
"""256 bytes, the merges that the task's texts teach, and the control tokens."""
PATCH = {"qwen2_5_vl": 14, "qwen3_vl": 16}
"""Patch side in pixels; the merger joins 2 × 2 patches into one picture token."""

# The qwen-vl turn format: role headers between control tokens, a picture as three of them.
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}{% if part.type == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WORD_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen's split into words, single digits and punctuation."""


def build_tiny_model(
    directory: Path, family: str, texts: Sequence[str], seed: int, *, hidden: int = 128
) -> None:
    """Write a model directory of about 1 M parameters for `texts`' vocabulary.

    `family` is `qwen2_5_vl` or `qwen3_vl`; the weights depend on `seed` alone.
    Raises UnknownNameError for another family.
    """
    if family not in PATCH:
        raise UnknownNameError(
            f'there is no tiny model family "{family}".',
            hint=nearest_hint(family, PATCH, "families"),
        )
    transformers_logging.disable_progress_bar()
    tokenizer = _train_tokenizer(texts)
    config = AutoConfig.for_model(family, **_architecture(family, tokenizer, hidden))
    seed_everything(seed, "tiny-model")
    model = AutoModelForImageTextToText.from_config(config, dtype=torch.float32)
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids("<|im_end|>")
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(directory)
    _processor(family, tokenizer).save_pretrained(directory)


def _train_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer trained on `texts`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE - len(CONTROL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t in CONTROL_TOKENS]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
        model_max_length=4096,
    )


def _architecture(family: str, tokenizer: PreTrainedTokenizerFast, hidden: int) -> dict[str, Any]:
    """Return the configuration of a small model of `family`: 3 text layers, 2 vision layers."""
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in CONTROL_TOKENS}
    head = hidden // 4
    rope = {"rope_type": "default", "rope_theta": 10_000.0,
            "mrope_section": [head // 2 - 2 * (head // 6), head // 6, head // 6]}  # fmt: skip
    text: dict[str, Any] = {
        "vocab_size": VOCABULARY_SIZE,
        "hidden_size": hidden,
        "intermediate_size": 3 * hidden,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
        "rope_parameters": rope,
        "bos_token_id": None,
        "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
    }
    vision: dict[str, Any] = {
        "depth": 2,
        "hidden_size": 96,
        "intermediate_size": 192,
        "num_heads": 4,
        "patch_size": PATCH[family],
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": hidden,
        "in_channels": 3,
    }
    if family == "qwen2_5_vl":
        vision |= {"window_size": 8 * PATCH[family], "fullatt_block_indexes": [1]}
    else:
        text |= {"head_dim": head}
        vision |= {"num_position_embeddings": 256, "deepstack_visual_indexes": [0]}
    return {
        "text_config": text,
        "vision_config": vision,
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "tie_word_embeddings": True,
    }


def _processor(
    family: str, tokenizer: PreTrainedTokenizerFast
) -> Qwen2_5_VLProcessor | Qwen3VLProcessor:
    """Return the family's real processor around the small tokenizer."""
    cell = 2 * PATCH[family]
    size = {"shortest_edge": cell * cell, "longest_edge": 512 * cell * cell}
    options: dict[str, Any] = {
        "patch_size": PATCH[family],
        "merge_size": 2,
        "temporal_patch_size": 2,
    }
    image = Qwen2VLImageProcessor(size=size, **options)
    if family == "qwen2_5_vl":
        video = Qwen2VLVideoProcessor(size=size, **options)
        return Qwen2_5_VLProcessor(image, tokenizer, video, chat_template=CHAT_TEMPLATE)
    video = Qwen3VLVideoProcessor(size=size, **options)
    return Qwen3VLProcessor(image, tokenizer, video, chat_template=CHAT_TEMPLATE)
