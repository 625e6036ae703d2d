"""The small model directories that everything else is tested on."""

from pathlib import Path

import pytest
from safetensors.torch import load_file

from gtr_turbo.errors import UnknownNameError
from gtr_turbo.policies.tiny import CONTROL_TOKENS, VOCABULARY_SIZE, build_tiny_model
from tests.world import FAMILIES, World, make_policy, observations

TEXTS = ['make 12 formula: {"cards":["7","5"],"thoughts":"7+5=12","action":"7"}'] * 3


@pytest.mark.parametrize("family", FAMILIES)
def test_the_seed_alone_decides_the_weights(family: str, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        build_tiny_model(tmp_path / name, family, TEXTS, seed, hidden=48)
    a, b, c = (load_file(tmp_path / name / "model.safetensors") for name in "abc")
    assert all(a[name].equal(b[name]) for name in a)
    assert not all(a[name].equal(c[name]) for name in a)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_full_size_has_about_a_million_weights(family: str, tmp_path: Path) -> None:
    build_tiny_model(tmp_path / "model", family, TEXTS, 0)
    count = sum(t.numel() for t in load_file(tmp_path / "model" / "model.safetensors").values())
    assert 0.8e6 < count < 1.6e6


def test_the_directory_holds_nothing_that_could_run(world: World) -> None:
    for family in FAMILIES:
        suffixes = {path.suffix for path in world.untrained(family).iterdir()}
        assert suffixes <= {".json", ".safetensors", ".jinja", ".txt"}


@pytest.mark.parametrize("family", FAMILIES)
def test_control_tokens_are_single_and_empty_rows_are_never_drawn(
    world: World, family: str
) -> None:
    policy = make_policy(world.untrained(family))
    tokenizer = policy.processor.tokenizer
    assert 256 + len(CONTROL_TOKENS) < len(tokenizer) <= VOCABULARY_SIZE
    beyond = set(range(len(tokenizer), VOCABULARY_SIZE))
    assert beyond <= set(policy.sampling(1.0, 1).suppressed)
    for token in CONTROL_TOKENS:
        assert len(tokenizer(token, add_special_tokens=False)["input_ids"]) == 1
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.pad_token == "<|endoftext|>"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("text", ["make 12", "7+5=12\n é 龙 🂡", "  two  spaces\t"])
def test_any_text_survives_the_tokenizer(world: World, family: str, text: str) -> None:
    policy = make_policy(world.untrained(family))
    reply = policy.written_reply(text)
    assert reply.text == text
    assert reply.finished


@pytest.mark.parametrize("family", FAMILIES)
def test_prompts_are_chat_turns_of_the_family(world: World, family: str) -> None:
    policy = make_policy(world.untrained(family))
    seen = observations(1)[0]
    ids = policy.encode([seen])[0].token_ids
    text = policy.processor.tokenizer.decode(ids).replace("<|image_pad|>", "")
    assert text == (
        "<|im_start|>user\n<|vision_start|><|vision_end|>"
        f"{seen.prompt}<|im_end|>\n<|im_start|>assistant\n"
    )


def test_an_unknown_family_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="qwen2_vl") as refusal:
        build_tiny_model(tmp_path / "model", "qwen2_vl", TEXTS, 0)
    assert "qwen2_5_vl" in str(refusal.value.hint)
