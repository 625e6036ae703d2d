"""Where gradients go: the critic's head, its trunk, and the policy's trained weights."""

import pytest
import torch
from torch import Tensor

from gtr_turbo.core.batch import TokenRows
from gtr_turbo.policies.critic import ValueHead
from gtr_turbo.policies.vlm import VlmPolicy
from tests.world import CRITICS, KINDS, World, make_policy, nudge, play


def gradients(policy: VlmPolicy, rows: TokenRows, part: str) -> dict[str, Tensor]:
    """Return the gradients of `value` or `token_logprob` with respect to all trained weights."""
    with policy.training(dropout=False):
        scores = policy.score(rows, 1.0, 1.0, values=True)
        getattr(scores, part).square().sum().backward()
    named = [*policy.policy_parameters(), *policy.critic_parameters()]
    found = {n: p.grad.clone() for n, p in named if p.grad is not None and p.grad.any()}
    for _, parameter in named:
        parameter.grad = None
    return found


@pytest.fixture(scope="module", params=CRITICS, ids="-".join)
def case(request: pytest.FixtureRequest, world: World) -> tuple[VlmPolicy, str]:
    family, finetuning, trunk = request.param
    return nudge(make_policy(world.untrained(family), finetuning, trunk)), trunk


def test_the_value_loss_reaches_what_the_trunk_setting_says(case: tuple[VlmPolicy, str]) -> None:
    policy, trunk = case
    _, _, rows = play(policy, 3)
    reached = set(gradients(policy, rows, "value"))
    head = {n for n, _ in policy.critic_parameters() if n.startswith("critic.")}
    adapter = {n for n, _ in policy.critic_parameters()} - head
    of_policy = {n for n, _ in policy.policy_parameters()}
    assert head <= reached
    if trunk == "frozen":
        assert reached == head
    elif trunk == "own_adapter":
        assert adapter
        assert reached - head <= adapter
        assert len(reached & adapter) > 0.9 * len(adapter)
        assert not reached & of_policy
    else:
        assert len(reached & of_policy) > 0.9 * len(of_policy)


def test_the_policy_loss_reaches_the_policy_alone(case: tuple[VlmPolicy, str]) -> None:
    policy, _ = case
    _, _, rows = play(policy, 3)
    reached = set(gradients(policy, rows, "token_logprob"))
    trained = {n for n, _ in policy.policy_parameters()}
    # The same vector added to every key cancels in the softmax, so its gradient is 0 or noise.
    cancels = {n for n in trained if n.endswith("k_proj.bias")}
    assert reached <= trained
    assert reached | cancels == trained


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_gradient_checkpointing_changes_no_gradient(world: World, kind: tuple[str, str]) -> None:
    family, finetuning = kind
    plain, saving = (
        nudge(
            make_policy(
                world.untrained(family), finetuning, model__gradient_checkpointing=is_saving
            )
        )
        for is_saving in (False, True)
    )
    _, _, rows = play(plain, 3)
    expected, found = (gradients(p, rows, "token_logprob") for p in (plain, saving))
    assert expected.keys() == found.keys()
    for name in expected:
        assert torch.allclose(expected[name], found[name], rtol=1e-4, atol=1e-5), name


def test_an_adapter_of_its_own_is_another_adapter(world: World) -> None:
    """Moving the critic's adapter moves values and nothing else; the policy's moves replies."""
    policy = make_policy(world.untrained("qwen2_5_vl"), "lora", "own_adapter")
    nudge(policy)
    _, _, rows = play(policy, 3)
    with torch.no_grad():
        before = policy.score(rows, 1.0, 1.0, values=True)
        for name, parameter in policy.critic_parameters():
            if not name.startswith("critic."):
                parameter.mul_(1.5)
        after = policy.score(rows, 1.0, 1.0, values=True)
    assert before.value is not None
    assert after.value is not None
    assert torch.equal(before.token_logprob, after.token_logprob)
    assert not torch.allclose(before.value, after.value)


def test_a_new_head_says_zero_and_has_the_layers_asked_for() -> None:
    head = ValueHead(6, (5, 4))
    assert not head(torch.randn(3, 6)).any()
    shapes = [tuple(p.shape) for p in head.parameters()]
    assert shapes == [(5, 6), (5,), (4, 5), (4,), (1, 4), (1,)]


def test_the_head_computes_in_float32() -> None:
    head = ValueHead(2, ())
    with torch.no_grad():
        weight, bias = head.parameters()
        weight.copy_(torch.tensor([[2.0, -1.0]]))
        bias.fill_(0.5)
    value = head(torch.tensor([[1.0, 3.0]], dtype=torch.bfloat16))
    assert value.dtype == torch.float32
    assert value.tolist() == [2.0 - 3.0 + 0.5]
