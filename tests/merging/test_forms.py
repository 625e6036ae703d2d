import pytest
import torch
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.forms import residual, to_int8, to_low_rank


def random_change(rows: int, columns: int, rank: int | None = None, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if rank is None:
        return torch.randn(rows, columns, generator=generator)
    left = torch.randn(rows, rank, generator=generator)
    return left @ torch.randn(rank, columns, generator=generator)


def missed(change: Tensor, form: Tensor) -> float:
    numerator, denominator = residual(change, form)
    return (numerator / denominator) ** 0.5


def test_eight_bits_keep_every_row_to_a_half_step() -> None:
    change = random_change(6, 400) * torch.logspace(-6, 2, 6)[:, None]
    change[3] = 0.0
    form = to_int8(change)
    step = change.abs().amax(1) / 127
    assert bool(((form.dense() - change).abs() <= 0.5001 * step[:, None]).all())
    assert torch.equal(form.dense()[3], change[3])
    assert missed(change, form.dense()) < 0.01


def test_a_change_of_low_rank_is_kept_whole() -> None:
    change = random_change(40, 30, rank=4)
    low = to_low_rank(change, 4, torch.Generator())
    assert low.factors.rank == 4
    assert missed(change, low.dense()) < 1e-5


@pytest.mark.parametrize("side", [64, 700])
def test_the_best_adapter_is_found(side: int) -> None:
    change = random_change(side, side + 5, rank=20) + 0.05 * random_change(side, side + 5, seed=1)
    low = to_low_rank(change, 8, torch.Generator().manual_seed(0))
    best = float(torch.linalg.svdvals(change)[8:].square().sum().sqrt() / change.norm())
    assert missed(change, low.dense()) == pytest.approx(best, rel=2e-2)


def test_the_rest_in_eight_bits_closes_the_gap() -> None:
    change = random_change(50, 60)
    bare = to_low_rank(change, 4, torch.Generator())
    full = to_low_rank(change, 4, torch.Generator(), with_rest=True)
    assert missed(change, bare.dense()) > 0.5
    assert missed(change, full.dense()) < 0.01


def test_ranks_are_positive_and_never_too_large() -> None:
    with pytest.raises(MergeError, match="at least 1, got 0"):
        to_low_rank(random_change(3, 3), 0, torch.Generator())
    low = to_low_rank(random_change(3, 5), 99, torch.Generator())
    assert low.factors.rank == 3


def test_the_residual_by_hand() -> None:
    assert residual(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 1.0])) == (9.0, 25.0)
