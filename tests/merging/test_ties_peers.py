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
