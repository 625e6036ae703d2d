"""Agreement with other libraries where their rule is ours: float32, no equal magnitudes."""

import pytest
import torch
from torch import Tensor

from gtr_turbo.merging import merge

NUM = 50_000


def changes(num: int) -> list[Tensor]:
    """Return the first changes of a random walk with drift."""
    generator = torch.Generator().manual_seed(1)
    at, drift = torch.zeros(NUM), 1e-4 * torch.randn(NUM, generator=generator)
    found: list[Tensor] = []
    for _ in range(num):
        at = at + drift + 1e-4 * torch.randn(NUM, generator=generator)
        found.append(at)
    return found


def ours(own: list[Tensor], weights: list[float] | None = None) -> Tensor:
    return merge(None, [{"w": one} for one in own], density=0.8, weights=weights)["w"]


@pytest.mark.parametrize("num", [2, 5, 17])
def test_peft_with_equal_weights(num: int) -> None:
    merge_utils = pytest.importorskip("peft.utils.merge_utils")
    expected = merge_utils.ties(changes(num), torch.ones(num), 0.8)
    torch.testing.assert_close(ours(changes(num)), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("weights", [[1.0] * 6, [0.03125, 0.03125, 0.0625, 0.125, 0.25, 0.5]])
def test_mergekit_with_normalised_weights(weights: list[float]) -> None:
    parts = pytest.importorskip("mergekit.sparsify")
    arithmetic = pytest.importorskip("mergekit.merge_methods.generalized_task_arithmetic")
    method = parts.SparsificationMethod.magnitude
    trimmed = [parts.sparsify(one, density=0.8, method=method) for one in changes(6)]
    shares = torch.tensor(weights)[:, None]
    weighted = torch.stack(trimmed) * shares
    is_elected = arithmetic.get_mask(weighted, method="sum")
    divisor = (shares * is_elected).sum(0)
    expected = (weighted * is_elected).sum(0) / torch.where(divisor == 0.0, 1.0, divisor)
    torch.testing.assert_close(ours(changes(6), weights), expected, rtol=1e-5, atol=1e-9)


def reference(own: list[Tensor], density: float) -> Tensor:
    """Return the original TIES: one threshold over everything, int(density n) + 1 entries kept."""
    kept = int(density * own[0].numel()) + 1
    thresholds = [float(change.abs().sort(descending=True).values[kept - 1]) for change in own]
    trimmed = [torch.where(c.abs() >= t, c, 0.0) for c, t in zip(own, thresholds, strict=True)]
    stacked = torch.stack(trimmed)
    agrees = torch.sign(stacked) == torch.sign(stacked.sum(0))
    agrees &= stacked != 0.0
    return (stacked * agrees).sum(0) / agrees.sum(0).clamp_min(1)


@pytest.mark.parametrize("num", [1, 4, 9])
def test_the_original_rule_is_the_global_scope(num: int) -> None:
    own = changes(num)
    named = [{"a": one[:40_000], "b": one[40_000:].reshape(100, 100)} for one in own]
    found = merge(None, named, density=(int(0.8 * NUM) + 1) / NUM, scope="global")
    both = torch.cat([found["a"], found["b"].reshape(-1)])
    torch.testing.assert_close(both, reference(own, 0.8), rtol=1e-5, atol=1e-9)
