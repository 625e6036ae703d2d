"""A dense change beside adapters: exact, apart from the critic, and never lost by a reader."""

import json
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModelForImageTextToText

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.adapter_files import (
    ADAPTER_FILE,
    BESIDE_OFFSET_FILE,
    OFFSET_FILE,
    AdapterFiles,
)
from gtr_turbo.merging.directories import no_progress, run_merge
from gtr_turbo.merging.lora import AdapterChange, LoraFactors
from gtr_turbo.merging.requests import MergeRequest
from gtr_turbo.policies.offset import Offset, ShiftedChange
from gtr_turbo.policies.vlm import VlmPolicy
from tests.world import World, make_policy, nudge, play

FAMILY = "qwen2_5_vl"


def shifted(world: World, trunk: str = "frozen") -> VlmPolicy:
    """Return a policy with an offset and with adapters that have moved on since."""
    policy = nudge(make_policy(world.untrained(FAMILY), "lora", trunk))
    policy.become(some_change(policy))
    return nudge(policy, seed=3)


def some_change(policy: VlmPolicy, seed: int = 1) -> dict[str, Tensor]:
    chance = torch.Generator().manual_seed(seed)
    return {n: 0.02 * torch.randn(t.shape, generator=chance) for n, t in policy.change().items()}


# -- the parts ----------------------------------------------------------------------------------


def layer(weight: list[list[float]], dtype: torch.dtype = torch.float32) -> nn.Linear:
    made = nn.Linear(2, 2, bias=False, dtype=dtype)
    made.weight.requires_grad_(False).copy_(torch.tensor(weight))
    return made


def test_an_offset_acts_beside_the_weight_and_ends() -> None:
    one, seen = layer([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 2.0]])
    offset = Offset({"one.weight": one})
    assert offset.change is None
    assert offset.fingerprint is None
    offset.put({"one.weight": torch.tensor([[0.0, 1.0], [0.5, 0.0]])})
    assert one(seen).tolist() == [[3.0, 2.5]]
    with offset.suspended():
        assert one(seen).tolist() == [[1.0, 2.0]]
    assert one(seen).tolist() == [[3.0, 2.5]]
    offset.put({"one.weight": torch.tensor([[1.0, 0.0], [0.0, 0.0]])})
    assert one(seen).tolist() == [[2.0, 2.0]]
    offset.clear()
    assert one(seen).tolist() == [[1.0, 2.0]]
    assert one.weight.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_an_offset_is_kept_whole_beside_a_weight_that_would_round_it_away() -> None:
    tiny = 2.0**-12
    assert torch.tensor(1.0, dtype=torch.bfloat16) + tiny == 1.0
    one = layer([[1.0, 0.0], [0.0, 0.0]], torch.bfloat16)
    offset = Offset({"one.weight": one})
    offset.put({"one.weight": torch.tensor([[tiny, 0.0], [tiny, 0.0]])})
    assert offset.change is not None
    assert offset.change["one.weight"].tolist() == [[tiny, 0.0], [tiny, 0.0]]
    assert one(torch.tensor([[1.0, 0.0]], dtype=torch.bfloat16)).tolist() == [[1.0, tiny]]


def test_folding_adds_it_once() -> None:
    one, seen = layer([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 2.0]])
    offset = Offset({"one.weight": one})
    offset.put({"one.weight": torch.tensor([[0.0, 1.0], [0.5, 0.0]])})
    offset.fold()
    assert one(seen).tolist() == [[3.0, 2.5]]
    assert one.weight.tolist() == [[1.0, 1.0], [0.5, 1.0]]
    assert offset.change is None
    offset.fold()
    assert one.weight.tolist() == [[1.0, 1.0], [0.5, 1.0]]


def test_a_shifted_change_is_offset_plus_scaling_times_b_a() -> None:
    """2 · [1; 2] [3 4] = [6 8; 12 16]."""
    factors = LoraFactors(a=torch.tensor([[3.0, 4.0]]), b=torch.tensor([[1.0], [2.0]]), scaling=2)
    offset = {"m": torch.tensor([[1.0, 0.0], [0.0, -1.0]])}
    change = ShiftedChange(offset, AdapterChange({"m": factors}))
    assert list(change) == ["m"]
    assert len(change) == 1
    for _ in range(2):
        assert change["m"].tolist() == [[7.0, 8.0], [12.0, 15.0]]
    assert offset["m"].tolist() == [[1.0, 0.0], [0.0, -1.0]]


# -- the policy ---------------------------------------------------------------------------------


def test_adapters_begin_again_as_they_were_at_the_start(world: World) -> None:
    fresh = make_policy(world.untrained(FAMILY), "lora")
    policy = nudge(make_policy(world.untrained(FAMILY), "lora"))
    policy.become(some_change(policy))
    pairs = zip(fresh.policy_parameters(), policy.policy_parameters(), strict=True)
    assert all(torch.equal(a, b) for (_, a), (_, b) in pairs)


@torch.no_grad()
def test_a_critic_with_adapters_of_its_own_does_not_notice(world: World) -> None:
    policy = nudge(make_policy(world.untrained(FAMILY), "lora", "own_adapter"))
    prompts, _, rows = play(policy, 3)
    before = policy.value(prompts)
    policy.become(some_change(policy))
    assert torch.equal(policy.value(prompts), before)
    scored = policy.score(rows, 1.0, 1.0, values=True).value
    assert scored is not None
    assert (scored - before).abs().max() < 1e-5


# -- on disk ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
def test_an_adapter_without_its_offset_is_not_to_be_found(world: World, tmp_path: Path) -> None:
    policy = shifted(world)
    policy.save(tmp_path)
    assert {OFFSET_FILE, BESIDE_OFFSET_FILE} <= {path.name for path in tmp_path.iterdir()}
    assert not (tmp_path / ADAPTER_FILE).exists()
    assert all(t.dtype == torch.float32 for t in load_file(tmp_path / OFFSET_FILE).values())
    base = AutoModelForImageTextToText.from_pretrained(world.untrained(FAMILY))
    with pytest.raises((OSError, ValueError)):
        PeftModel.from_pretrained(base, str(tmp_path))


def test_the_merging_library_reads_both(world: World, tmp_path: Path) -> None:
    policy = shifted(world)
    policy.save(tmp_path)
    files, change = AdapterFiles(tmp_path), policy.change()
    assert set(files.names()) == set(change)
    assert all(torch.equal(files.read(name), change[name]) for name in change)
    with pytest.raises(MergeError, match="has an offset"):
        files.factors(files.names()[0])


@torch.no_grad()
def test_merging_one_checkpoint_into_its_base_gives_a_model_that_anybody_loads(
    world: World, tmp_path: Path
) -> None:
    policy = shifted(world)
    checkpoint = tmp_path / "checkpoint-1"
    checkpoint.mkdir()
    policy.save(checkpoint)
    out = tmp_path / "model"
    request = MergeRequest(
        checkpoints=(checkpoint,), base=world.untrained(FAMILY), out=out, method="linear"
    )
    run_merge(request, no_progress)
    _, _, rows = play(policy, 3)
    own = policy.score(rows, 1.0, 1.0, values=False).token_logprob
    found = make_policy(out, "full").score(rows, 1.0, 1.0, values=False).token_logprob
    assert (own - found).abs().max() < 1e-5


@pytest.mark.parametrize("fault", ["lacks", "more", "shape", "gone", "torn"])
def test_an_offset_of_other_weights_is_refused(world: World, fault: str, tmp_path: Path) -> None:
    policy = shifted(world)
    policy.save(tmp_path)
    offset = load_file(tmp_path / OFFSET_FILE)
    name = min(offset)
    if fault == "gone":
        (tmp_path / OFFSET_FILE).unlink()
    elif fault == "torn":
        (tmp_path / OFFSET_FILE).write_bytes(b"\0" * 5)
    else:
        changed = {
            "lacks": {key: tensor for key, tensor in offset.items() if key != name},
            "more": offset | {"more": torch.zeros(2, 2)},
            "shape": offset | {name: torch.zeros(2, 2)},
        }
        save_file(changed[fault], tmp_path / OFFSET_FILE)
        with pytest.raises(MergeError, match="the offset of"):
            AdapterFiles(tmp_path)
    with pytest.raises(CheckpointError, match=OFFSET_FILE):
        policy.load(tmp_path)


def test_the_adapters_configuration_is_that_of_any_checkpoint(world: World, tmp_path: Path) -> None:
    policy = shifted(world)
    policy.save(tmp_path)
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (4, 8)
