"""Trained weights: lent to a teacher, given back, saved, loaded, exported."""

import json
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForImageTextToText

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging import make_accumulator
from gtr_turbo.ops.kl import ESTIMATORS
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.policies.weights import ADAPTER_FILE, CRITIC_FILE, FULL_FILE
from tests.world import CRITICS, KINDS, World, make_policy, nudge, play

CLOSE = 1e-5
FAMILY = "qwen2_5_vl"


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def policy(request: pytest.FixtureRequest, world: World) -> VlmPolicy:
    """Return a policy whose weights are not those of its start."""
    family, finetuning = request.param
    return nudge(make_policy(world.untrained(family), finetuning))


def weights(policy: VlmPolicy) -> dict[str, Tensor]:
    named = [*policy.policy_parameters(), *policy.critic_parameters()]
    assert len({name for name, _ in named}) == len(named)
    return {name: parameter.detach().clone() for name, parameter in named}


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[n], right[n]) for n in left)


@torch.no_grad()
def logprobs(policy: VlmPolicy, seed: int = 0) -> Tensor:
    _, _, rows = play(policy, 4, seed=seed)
    return policy.score(rows, 1.0, 1.0, values=False).token_logprob


# -- wearing ------------------------------------------------------------------------------------


@torch.no_grad()
def test_wearing_its_own_change_gives_the_agent_itself(policy: VlmPolicy) -> None:
    _, _, rows = play(policy, 4)
    own = policy.score(rows, 1.0, 1.0, values=False).token_logprob
    with policy.wearing(policy.change()):
        worn = policy.score(rows, 1.0, 1.0, values=False).token_logprob
    assert (own - worn).abs().max() < CLOSE
    for name in ("clip", "abs", "k3", "forward"):
        assert float(ESTIMATORS[name](own, worn).abs().max()) < CLOSE, name


@torch.no_grad()
def test_wearing_nothing_gives_the_start(world: World, policy: VlmPolicy) -> None:
    _, _, rows = play(policy, 4)
    family = policy._network.config.model_type
    start = make_policy(world.untrained(family), "full")
    expected = start.score(rows, 1.0, 1.0, values=False).token_logprob
    nothing = {name: torch.zeros_like(tensor) for name, tensor in policy.change().items()}
    with policy.wearing(nothing):
        worn = policy.score(rows, 1.0, 1.0, values=False).token_logprob
    assert (expected - worn).abs().max() < CLOSE
    own = policy.score(rows, 1.0, 1.0, values=False).token_logprob
    assert (own - worn).abs().max() > 1e-3, "the nudge was to be seen"


def test_the_agents_weights_come_back_bit_for_bit_also_after_an_error(policy: VlmPolicy) -> None:
    before, version = weights(policy), policy.fingerprint()
    scores = logprobs(policy)
    other = {name: torch.randn_like(tensor) for name, tensor in policy.change().items()}
    with pytest.raises(ArithmeticError), policy.wearing(other):  # noqa: PT012
        assert not torch.equal(logprobs(policy), scores)
        raise ArithmeticError
    assert same(weights(policy), before)
    assert policy.fingerprint() == version
    assert torch.equal(logprobs(policy), scores)
    trained = [*policy.policy_parameters(), *policy.critic_parameters()]
    assert all(parameter.requires_grad for _, parameter in trained)


def test_gradients_flow_as_before_after_wearing(policy: VlmPolicy) -> None:
    _, _, rows = play(policy, 3)

    def gradients() -> dict[str, Tensor]:
        with policy.training(dropout=False):
            policy.score(rows, 1.0, 1.0, values=False).token_logprob.sum().backward()
        found = {n: p.grad.clone() for n, p in policy.policy_parameters() if p.grad is not None}
        for _, parameter in policy.policy_parameters():
            parameter.grad = None
        return found

    before = gradients()
    with policy.wearing(policy.change()), torch.no_grad():
        policy.score(rows, 1.0, 1.0, values=False)
    after = gradients()
    assert before
    assert same(before, after)


def test_one_checkpoint_merged_untrimmed_is_that_checkpoint(policy: VlmPolicy) -> None:
    change = policy.change()
    sums = make_accumulator("ties", density=1.0, ema_alpha=None, scale=1.0)
    sums.add(change, name="one")
    merged = sums.merged_delta()
    assert same(merged, dict(change))
    _, _, rows = play(policy, 3)
    with torch.no_grad():
        own = policy.score(rows, 1.0, 1.0, values=False).token_logprob
        with policy.wearing(merged):
            worn = policy.score(rows, 1.0, 1.0, values=False).token_logprob
    assert float(ESTIMATORS["k3"](own, worn).max()) < CLOSE


def test_a_change_of_other_weights_is_refused(policy: VlmPolicy) -> None:
    change = dict(policy.change())
    name = sorted(change)[0]
    lacking = {key: tensor for key, tensor in change.items() if key != name}
    bent = change | {name: change[name][:1]}
    for wrong in (lacking, bent, change | {"more": change[name]}):
        with pytest.raises(MergeError, match="does not fit"), policy.wearing(wrong):
            pytest.fail("worn")


# -- change and fingerprint ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_a_new_policy_has_changed_nothing(world: World, kind: tuple[str, str]) -> None:
    policy = make_policy(world.untrained(kind[0]), kind[1])
    change = policy.change()
    assert change
    assert all(t.dtype == torch.float32 and not t.any() for t in change.values())


def test_the_change_of_adapters_is_scaling_times_b_a(world: World) -> None:
    policy = nudge(make_policy(world.untrained(FAMILY), "lora"))
    named = dict(policy.policy_parameters())
    change = policy.change()
    a_name = next(n for n in named if n.endswith("q_proj.lora_A.default.weight"))
    a, b = named[a_name], named[a_name.replace("lora_A", "lora_B")]
    expected = 8 / 4 * b @ a
    assert torch.allclose(change[a_name.replace("lora_A.default.", "")], expected, atol=1e-7)


def test_the_fingerprint_sees_one_bit_of_one_weight(world: World) -> None:
    policy = make_policy(world.untrained(FAMILY), "full")
    before = policy.fingerprint()
    assert policy.fingerprint() == before
    last = [parameter for _, parameter in policy.policy_parameters()][-1]
    with torch.no_grad():
        last.view(-1)[-1] = torch.nextafter(last.view(-1)[-1], torch.tensor(1e9))
    assert policy.fingerprint() != before


# -- save, load, export -------------------------------------------------------------------------


@pytest.mark.parametrize("case", CRITICS, ids="-".join)
def test_saved_weights_are_loaded_exactly(
    world: World, case: tuple[str, str, str], tmp_path: Path
) -> None:
    family, finetuning, trunk = case
    policy = nudge(make_policy(world.untrained(family), finetuning, trunk))
    policy.save(tmp_path)
    other = make_policy(world.untrained(family), finetuning, trunk, seed=5)
    assert not same(weights(other), weights(policy))
    other.load(tmp_path)
    assert same(weights(other), weights(policy))
    assert other.fingerprint() == policy.fingerprint()
    assert all(p.requires_grad for _, p in [*other.policy_parameters(), *other.critic_parameters()])
    suffixes = {path.suffix for path in tmp_path.iterdir()}
    assert suffixes <= {".safetensors", ".json"}


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl"])
def test_peft_loads_an_adapter_checkpoint(world: World, family: str, tmp_path: Path) -> None:
    policy = nudge(make_policy(world.untrained(family), "lora"))
    policy.save(tmp_path)
    base = AutoModelForImageTextToText.from_pretrained(world.untrained(family))
    model = PeftModel.from_pretrained(base, str(tmp_path)).eval()
    assert_same_logits(policy, model)


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl"])
def test_transformers_loads_a_full_checkpoint(world: World, family: str, tmp_path: Path) -> None:
    policy = nudge(make_policy(world.untrained(family), "full"))
    policy.save(tmp_path)
    model = AutoModelForImageTextToText.from_pretrained(tmp_path).eval()
    assert_same_logits(policy, model)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_an_exported_policy_is_a_model_directory(
    world: World, kind: tuple[str, str], tmp_path: Path
) -> None:
    """The adapters are merged in: the export, loaded afresh, scores like the policy."""
    policy = nudge(make_policy(world.untrained(kind[0]), kind[1]))
    _, _, rows = play(policy, 3)
    with torch.no_grad():
        own = policy.score(rows, 1.0, 1.0, values=False).token_logprob
    policy.export(tmp_path)
    fresh = make_policy(tmp_path, "full")
    with torch.no_grad():
        exported = fresh.score(rows, 1.0, 1.0, values=False).token_logprob
    assert (own - exported).abs().max() < CLOSE
    assert not list(tmp_path.glob("*.bin"))


@torch.no_grad()
def assert_same_logits(policy: VlmPolicy, model: torch.nn.Module) -> None:
    prompt = play(policy, 1)[0][0]
    ids = torch.tensor([prompt.token_ids])
    image_id = policy.processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "mm_token_type_ids": (ids == image_id).int(),
        "pixel_values": torch.from_numpy(prompt.picture.patches),
        "image_grid_thw": torch.tensor([prompt.picture.grid]),
    }
    own, other = policy._model(**inputs).logits, model(**inputs).logits
    assert torch.equal(own, other)


def damage_key(directory: Path, file: str) -> None:
    state = load_file(directory / file)
    name = sorted(state)[0]
    state["unknown"] = state.pop(name)
    save_file(state, directory / file)


def damage_shape(directory: Path, file: str) -> None:
    state = load_file(directory / file)
    name = sorted(state)[0]
    save_file(state | {name: state[name].flatten()[:-1].clone()}, directory / file)


def damage_bytes(directory: Path, file: str) -> None:
    (directory / file).write_bytes((directory / file).read_bytes()[:100])


def damage_absence(directory: Path, file: str) -> None:
    (directory / file).unlink()


@pytest.mark.parametrize("hurt", [damage_key, damage_shape, damage_bytes, damage_absence])
@pytest.mark.parametrize(
    ("finetuning", "file"),
    [("lora", ADAPTER_FILE), ("lora", CRITIC_FILE), ("full", FULL_FILE), ("full", CRITIC_FILE)],
)
def test_a_checkpoint_of_other_weights_is_refused(
    world: World, finetuning: str, file: str, hurt: object, tmp_path: Path
) -> None:
    policy = make_policy(world.untrained(FAMILY), finetuning)
    policy.save(tmp_path)
    assert callable(hurt)
    hurt(tmp_path, file)
    with pytest.raises(CheckpointError) as refusal:
        policy.load(tmp_path)
    assert file in str(refusal.value)
    assert refusal.value.hint


def test_equal_policies_write_equal_bytes(world: World, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        nudge(make_policy(world.untrained(FAMILY), "lora")).save(tmp_path / name)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name
    config = json.loads((tmp_path / "a" / "adapter_config.json").read_text())
    assert config["inference_mode"] is True
    assert (config["r"], config["lora_alpha"]) == (4, 8)
