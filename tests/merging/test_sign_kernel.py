import pytest
import torch
from torch import Tensor

from gtr_turbo.merging.sign_kernel import SignKernel


def sides(num: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    positive = torch.randn(num, generator=generator).clamp_min(0.0)
    return positive, torch.randn(num, generator=generator).clamp_max(0.0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.float32])
def test_elections_choose_without_branches(dtype: torch.dtype) -> None:
    positive, negative = sides(1000)
    kernel = SignKernel()
    total, is_positive = kernel.total(positive, negative)
    assert torch.equal(total, positive + negative)
    assert torch.equal(is_positive, positive + negative >= 0.0)
    mass = kernel.elected_mass(positive, negative, is_positive).clone()
    assert torch.equal(mass, torch.where(is_positive, positive, negative))
    generator = torch.Generator().manual_seed(1)
    heavy, light = (torch.randint(0, 200, (1000,), generator=generator).to(dtype) for _ in "ab")
    weight = kernel.elected_weight(heavy, light, is_positive)
    expected = torch.where(is_positive, heavy, light)
    assert torch.equal(weight, torch.where(expected == 0, 1, expected).to(torch.float32))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_light_entries_are_dropped(dtype: torch.dtype) -> None:
    weight = torch.tensor([0, 1, 2, 3], dtype=dtype)
    mass, left = SignKernel().drop_light(torch.full((4,), 5.0), weight, 2)
    assert mass.tolist() == [0.0, 0.0, 5.0, 5.0]
    assert left.tolist() == [0, 0, 2, 3]


def test_weights_go_in_and_out() -> None:
    part = torch.tensor([0.5, 0.0, -1e-45])
    counts, shares = torch.tensor([3, 3, 3], dtype=torch.uint8), torch.zeros(3)
    kernel = SignKernel()
    kernel.add_weight(counts, part, 1.0)
    assert counts.tolist() == [4, 3, 4]
    kernel.add_weight(counts, part, -1.0)
    assert counts.tolist() == [3, 3, 3]
    kernel.add_weight(shares, part, 0.25)
    assert shares.tolist() == [0.25, 0.0, 0.25]
