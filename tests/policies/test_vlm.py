"""What one policy does at its edges: broken pictures, mismatched rows, dropout, bfloat16."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gtr_turbo.core.turns import Observation, picture_hash
from gtr_turbo.errors import TaskError, VisionMismatchError
from gtr_turbo.ops.collate import token_rows
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.train.checks import LOGPROB_TOLERANCE
from tests.world import KINDS, World, make_policy, nudge, observations, play

FAMILY = "qwen2_5_vl"


@pytest.fixture(scope="module")
def policy(world: World) -> VlmPolicy:
    return make_policy(world.untrained(FAMILY))


def showing(picture: object) -> Observation:
    """Return an observation with a picture that its own checks would refuse."""
    seen = observations(1)[0]
    broken = replace(seen)
    object.__setattr__(broken, "picture", picture)
    return broken


@pytest.mark.parametrize(
    "picture",
    [
        np.zeros((28, 56, 3), np.float32),
        np.zeros((28, 56), np.uint8),
        np.zeros((28, 56, 4), np.uint8),
        np.zeros((3, 28, 56), np.uint8),
        np.zeros((0, 56, 3), np.uint8),
        np.zeros((1, 28, 56, 3), np.uint8),
    ],
    ids=["float", "grey", "alpha", "channels-first", "empty", "stack"],
)
def test_a_broken_picture_is_refused_by_name(policy: VlmPolicy, picture: np.ndarray) -> None:
    good = observations(1)[0]
    with pytest.raises(TaskError, match="picture of type") as refusal:
        policy.encode([good, showing(picture)])
    assert str(picture.shape) in refusal.value.message
    assert "uint8" in str(refusal.value.hint)


def test_pictures_carry_the_hash_of_what_was_shown(policy: VlmPolicy) -> None:
    shown = observations(3)
    for seen, prompt in zip(shown, policy.encode(shown), strict=True):
        assert prompt.picture.sha256 == picture_hash(seen.picture)


def test_pictures_of_different_sizes_share_a_batch(policy: VlmPolicy) -> None:
    seen = observations(2)
    tall = replace(seen[0], picture=np.tile(seen[0].picture, (2, 1, 1)))
    prompts = policy.encode([tall, seen[1]])
    assert prompts[0].picture.grid != prompts[1].picture.grid
    alone = [policy.encode([one])[0] for one in (tall, seen[1])]
    for together, single in zip(prompts, alone, strict=True):
        assert together.token_ids == single.token_ids
        assert np.array_equal(together.picture.patches, single.picture.patches)


def test_rows_whose_picture_lost_a_token_are_refused(policy: VlmPolicy) -> None:
    prompts, replies, _ = play(policy, 2)
    image_id = policy.processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    place = prompts[0].token_ids.index(image_id)
    cut = replace(
        prompts[0],
        token_ids=prompts[0].token_ids[:place] + prompts[0].token_ids[place + 1 :],
        position_ids=np.delete(prompts[0].position_ids, place, axis=1),
    )
    rows = token_rows([cut, prompts[1]], replies, policy.pad_token_id)
    with pytest.raises(VisionMismatchError, match="do not match"):
        policy.score(rows, 1.0, 1.0, values=False)


def test_a_truncated_prompt_is_refused(policy: VlmPolicy) -> None:
    grid = policy.encode(observations(1))[0].picture.grid
    with pytest.raises(VisionMismatchError, match="0 picture tokens"):
        policy._check_placeholders((1, 2, 3), grid)


def test_thought_and_action_are_split_at_the_action_key(policy: VlmPolicy) -> None:
    text = '{"cards":["7","5"],"formula":"","thoughts":"7+5=12","action":"7"}'
    reply = policy.written_reply(text)
    decode = policy.processor.tokenizer.decode
    thought = decode(reply.token_ids[: reply.num_thought_tokens])
    action = decode(reply.token_ids[reply.num_thought_tokens :], skip_special_tokens=True)
    assert thought + action == text
    assert '"action"' not in thought
    assert '"action":"7"}' in action


def test_dropout_acts_only_where_it_is_asked_for(world: World) -> None:
    policy = nudge(make_policy(world.untrained(FAMILY), "lora", lora__dropout=0.5))
    _, _, rows = play(policy, 3)

    def scores() -> torch.Tensor:
        return policy.score(rows, 1.0, 1.0, values=False).token_logprob.detach()

    calm = scores()
    with policy.training(dropout=False):
        assert torch.allclose(scores(), calm, atol=1e-6)
    with policy.training(dropout=True):
        assert not torch.allclose(scores(), calm, atol=1e-3)
    assert torch.equal(scores(), calm)
    _, replies, again = play(policy, 3)
    behaviour = np.concatenate([reply.token_logprobs for reply in replies])
    found = policy.score(again, 1.0, 1.0, values=False).token_logprob[again.is_response]
    assert np.abs(found.detach().numpy() - behaviour).max() < 1e-5


@pytest.mark.parametrize("kind", [k for k in KINDS if k[1] == "lora"], ids="-".join)
def test_bfloat16_runs_on_a_cpu(world: World, kind: tuple[str, str]) -> None:
    policy = make_policy(world.untrained(kind[0]), kind[1], model__dtype="bfloat16")
    nudge(policy, 0.01)
    _, replies, rows = play(policy, 6)
    with policy.training(dropout=False):
        scores = policy.score(rows, 1.0, 1.0, values=True)
        assert scores.token_logprob.dtype == torch.float32
        assert scores.value is not None
        (scores.token_logprob.sum() + scores.value.sum()).backward()
    behaviour = np.concatenate([reply.token_logprobs for reply in replies])
    found = scores.token_logprob[rows.is_response].detach().numpy()
    assert np.abs(found - behaviour).mean() < LOGPROB_TOLERANCE["bfloat16"]
    gradients = [p.grad for _, p in policy.policy_parameters() if p.grad is not None]
    assert gradients
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    with torch.no_grad(), policy.wearing(policy.change()):
        worn = policy.score(rows, 1.0, 1.0, values=False).token_logprob
    gap = (worn - scores.token_logprob.detach())[rows.is_response].abs().mean()
    assert float(gap) < LOGPROB_TOLERANCE["bfloat16"]
