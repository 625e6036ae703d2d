"""Adam over two parts: limits of their own, named moments, and steps that are refused whole."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gtr_turbo.errors import CheckpointError, NonFiniteError
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.train.optim import FILE, Optimizer
from tests.world import World, make_policy, tiny_config


def parts(policy: VlmPolicy) -> list[dict[str, torch.nn.Parameter]]:
    return [dict(policy.policy_parameters()), dict(policy.critic_parameters())]


def make(world: World, **fields: Any) -> tuple[VlmPolicy, Optimizer]:
    fields = {"ppo__learning_rate": 1e-3, **fields}
    policy = make_policy(world.untrained("qwen3_vl"), "lora")
    return policy, Optimizer(policy, tiny_config(world.untrained("qwen3_vl"), **fields))


def give_gradients(policy: VlmPolicy, scale: float = 1.0, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    for named in parts(policy):
        for parameter in named.values():
            parameter.grad = scale * torch.randn(parameter.shape, generator=generator)


def weights(policy: VlmPolicy) -> dict[str, Tensor]:
    return {n: p.detach().clone() for named in parts(policy) for n, p in named.items()}


def test_the_norm_is_the_policys_before_the_limit(world: World) -> None:
    policy, optimizer = make(world)
    give_gradients(policy)
    squares = [p.grad.square().sum() for p in parts(policy)[0].values() if p.grad is not None]
    expected = float(torch.stack(squares).sum().sqrt())
    assert optimizer.step("here") == pytest.approx(expected, rel=1e-5)
    assert all(p.grad is None for named in parts(policy) for p in named.values())


def test_a_wild_critic_does_not_shrink_the_policys_step(world: World) -> None:
    ends = []
    for factor in (1.0, 1e4):
        policy, optimizer = make(world)
        give_gradients(policy)
        for parameter in parts(policy)[1].values():
            assert parameter.grad is not None
            parameter.grad *= factor
        optimizer.step("here")
        ends.append({n: p.detach() for n, p in parts(policy)[0].items()})
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_the_first_step_is_one_learning_rate_against_the_gradient(world: World) -> None:
    """Adam's first step is −lr · g / (|g| + ε'), whatever the limit made of g."""
    policy, optimizer = make(world, critic__learning_rate=0.01)
    before = weights(policy)
    give_gradients(policy)
    signs = {
        n: p.grad.sign() for named in parts(policy) for n, p in named.items() if p.grad is not None
    }
    optimizer.set_learning_rate(0.002)
    optimizer.step("here")
    rates = {n: 0.01 if n.startswith("critic.") else 0.002 for n in before}
    for name, now in weights(policy).items():
        moved = (now - before[name]) / (-rates[name] * signs[name])
        assert float(moved.median()) == pytest.approx(1.0, abs=0.01), name


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_moves_nothing(world: World, part: int, value: float) -> None:
    policy, optimizer = make(world)
    give_gradients(policy)
    poisoned = list(parts(policy)[part].values())[-1].grad
    assert poisoned is not None
    poisoned.view(-1)[0] = value
    before = weights(policy)
    with pytest.raises(NonFiniteError, match="at update 3") as refusal:
        optimizer.step("update 3")
    assert ("policy", "critic")[part] in refusal.value.message
    assert all(torch.equal(before[n], now) for n, now in weights(policy).items())


def test_loaded_moments_continue_bit_equally(world: World, tmp_path: Path) -> None:
    policy, optimizer = make(world)
    give_gradients(policy, seed=1)
    optimizer.step("here")
    optimizer.save(tmp_path)
    other, fresh = make(world)
    with torch.no_grad():
        for mine, theirs in zip(parts(other), parts(policy), strict=True):
            for name, parameter in mine.items():
                parameter.copy_(theirs[name])
    fresh.load(tmp_path)
    for one, its in ((policy, optimizer), (other, fresh)):
        give_gradients(one, seed=2)
        its.step("here")
    left, right = weights(policy), weights(other)
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_moments_of_other_weights_are_refused(world: World, tmp_path: Path) -> None:
    policy, optimizer = make(world)
    give_gradients(policy)
    optimizer.step("here")
    optimizer.save(tmp_path)
    state = load_file(tmp_path / FILE)
    save_file({**state, "stranger/exp_avg": torch.zeros(1)}, tmp_path / FILE)
    with pytest.raises(CheckpointError, match="stranger"):
        optimizer.load(tmp_path)


def test_a_reset_makes_the_next_step_a_first_step(world: World, tmp_path: Path) -> None:
    policy, optimizer = make(world)
    for seed in (1, 2):
        give_gradients(policy, seed=seed)
        optimizer.step("here")
    optimizer.reset()
    optimizer.save(tmp_path)
    assert load_file(tmp_path / FILE) == {}
    other, fresh = make(world)
    with torch.no_grad():
        for mine, theirs in zip(parts(other), parts(policy), strict=True):
            for name, parameter in mine.items():
                parameter.copy_(theirs[name])
    for one, its in ((policy, optimizer), (other, fresh)):
        give_gradients(one, seed=3)
        its.step("here")
    left, right = weights(policy), weights(other)
    assert all(torch.equal(left[name], right[name]) for name in left)
