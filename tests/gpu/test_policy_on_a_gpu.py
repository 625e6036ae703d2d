"""The policy's laws on a CUDA device, in bfloat16 and float32, under each attention kernel."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.train.checks import LOGPROB_TOLERANCE
from tests.train.runs import numbers, run
from tests.world import KINDS, World, make_policy, nudge, play, tiny_config

pytestmark = pytest.mark.gpu

KERNELS = [
    "sdpa",
    "eager",
    pytest.param(
        "flash_attention_2",
        marks=pytest.mark.skipif(find_spec("flash_attn") is None, reason="flash-attn is missing"),
    ),
]


def on_gpu(
    world: World, family: str, finetuning: str, dtype: str = "bfloat16", kernel: str = "sdpa"
) -> VlmPolicy:
    policy = make_policy(
        world.untrained(family),
        finetuning,
        model__device="cuda",
        model__dtype=dtype,
        model__attention=kernel,
    )
    return nudge(policy, 0.01)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_behaviour_is_recomputed_in_bfloat16(
    world: World, kind: tuple[str, str], kernel: str
) -> None:
    policy = on_gpu(world, *kind, kernel=kernel)
    for temperature in (0.3, 1.0):
        _, replies, rows = play(policy, 16, temperature=temperature, length=24)
        with torch.no_grad():
            scores = policy.score(rows, temperature, 1.0, values=True)
        behaviour = np.concatenate([reply.token_logprobs for reply in replies])
        found = scores.token_logprob.cpu()[rows.is_response].numpy()
        assert np.abs(found - behaviour).mean() < LOGPROB_TOLERANCE["bfloat16"]
        assert scores.token_logprob.dtype == torch.float32
        assert scores.value is not None
        assert torch.isfinite(scores.value).all()


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_float32_agrees_with_the_cpu(world: World, kind: tuple[str, str]) -> None:
    there = on_gpu(world, *kind, dtype="float32")
    here = nudge(make_policy(world.untrained(kind[0]), kind[1]), 0.01)
    _, _, rows = play(here, 6)
    with torch.no_grad():
        expected = here.score(rows, 1.0, 1.0, values=True)
        found = there.score(rows, 1.0, 1.0, values=True)
    assert (found.token_logprob.cpu() - expected.token_logprob).abs().max() < 1e-2
    assert found.value is not None
    assert expected.value is not None
    assert (found.value.cpu() - expected.value).abs().max() < 1e-2


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_wearing_its_own_change_gives_the_agent(world: World, kind: tuple[str, str]) -> None:
    policy = on_gpu(world, *kind)
    before = policy.fingerprint()
    _, _, rows = play(policy, 8)
    with torch.no_grad():
        own = policy.score(rows, 1.0, 1.0, values=False).token_logprob
        with policy.wearing(policy.change()):
            worn = policy.score(rows, 1.0, 1.0, values=False).token_logprob
    gap = (own - worn).cpu()[rows.is_response].abs().mean()
    assert float(gap) < LOGPROB_TOLERANCE["bfloat16"]
    assert policy.fingerprint() == before


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_saved_weights_are_loaded_exactly(
    world: World, kind: tuple[str, str], tmp_path: Path
) -> None:
    policy = on_gpu(world, *kind)
    policy.save(tmp_path)
    other = make_policy(
        world.untrained(kind[0]), kind[1], model__device="cuda", model__dtype="bfloat16", seed=9
    )
    other.load(tmp_path)
    assert other.fingerprint() == policy.fingerprint()


@pytest.mark.parametrize("finetuning", ["lora", "full"])
def test_a_run_checks_itself_to_its_end(world: World, finetuning: str, tmp_path: Path) -> None:
    config = tiny_config(
        world.trained,
        model__device="cuda",
        model__dtype="bfloat16",
        model__finetuning=finetuning,
        model__gradient_checkpointing=True,
        lora__rank=4,
        critic__warmup_updates=0,
    )
    run(config, tmp_path / "run")
    lines = numbers(tmp_path / "run")["metrics"]
    assert [line["teacher_updates"] for line in lines] == [0, 1, 2]
    assert all(line["logprob_gap"] < LOGPROB_TOLERANCE["bfloat16"] for line in lines)
