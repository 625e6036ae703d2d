import math

import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import merge
from gtr_turbo.merging.lora import (
    TILE_ROWS,
    LoraFactors,
    concatenate_adapters,
    imitate_factor_merge,
    lora_delta,
    lora_scaling,
    merge_adapters,
)


def random_adapter(seed: int, *, rank: int = 3, rows: int = 7, scaling: float = 2.0,
                   modules: tuple[str, ...] = ("q", "v")) -> dict[str, LoraFactors]:  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    return {
        name: LoraFactors(
            a=torch.randn(rank, 5, generator=generator),
            b=torch.randn(rows, rank, generator=generator),
            scaling=scaling,
        )
        for name in modules
    }


def dense(adapter: dict[str, LoraFactors]) -> dict[str, torch.Tensor]:
    return {name: lora_delta(own.a, own.b, own.scaling) for name, own in adapter.items()}


def test_scaling_by_hand() -> None:
    assert lora_scaling(8, 16) == 2.0
    assert lora_scaling(16, 8, use_rslora=True) == 2.0
    with pytest.raises(MergeError, match="at least 1, got 0"):
        lora_scaling(0, 8)


def test_the_change_by_hand() -> None:
    a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0], [-1.0]])
    assert lora_delta(a, b, 2.0).tolist() == [[2.0, 4.0], [-2.0, -4.0]]


def test_long_changes_are_made_in_tiles() -> None:
    own = random_adapter(0, rows=2 * TILE_ROWS + 3)["q"]
    expected = own.scaling * (own.b.double() @ own.a.double())
    found = lora_delta(own.a, own.b, own.scaling).double()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    short = LoraFactors(a=own.a.bfloat16(), b=own.b.bfloat16(), scaling=1.0)
    assert lora_delta(short.a, short.b, 1.0).dtype == torch.float32


def test_adapters_merge_by_what_they_do() -> None:
    adapters = [random_adapter(seed) for seed in range(4)]
    found = merge_adapters(adapters, density=0.6, weights=[1, 2, 3, 4])
    expected = merge(None, [dense(own) for own in adapters], density=0.6, weights=[1, 2, 3, 4])
    for name in ("q", "v"):
        assert torch.equal(found[name], expected[name])


def test_ranks_and_scalings_may_differ() -> None:
    adapters = [random_adapter(0, rank=2, scaling=0.5), random_adapter(1, rank=4)]
    found = merge_adapters(adapters, method="linear")
    for name, value in found.items():
        mean = (dense(adapters[0])[name] + dense(adapters[1])[name]) / 2
        torch.testing.assert_close(value, mean)


def test_changes_relative_to_a_first_adapter() -> None:
    start, *later = (random_adapter(seed) for seed in range(3))
    found = merge_adapters(later, reference=start, scale=0.5, density=1.0)
    expected = merge(dense(start), [dense(own) for own in later], scale=0.5, density=1.0)
    for name in found:
        assert torch.equal(found[name], expected[name])


def test_one_adapter_at_density_one_is_itself() -> None:
    only = random_adapter(5)
    for name, value in merge_adapters([only], density=1.0).items():
        assert torch.equal(value, dense(only)[name])


def test_concatenation_is_the_exact_mean() -> None:
    adapters = [random_adapter(0), random_adapter(1, rank=2, scaling=0.25)]
    joined = concatenate_adapters(adapters, [1, 3])
    for name, own in joined.items():
        assert (own.rank, own.scaling) == (5, 1.0)
        mean = (dense(adapters[0])[name] + 3 * dense(adapters[1])[name]) / 4
        torch.testing.assert_close(lora_delta(own.a, own.b, own.scaling), mean)


def test_the_imitation_merges_factors_and_misses() -> None:
    adapters = [random_adapter(seed) for seed in range(3)]
    wrong = imitate_factor_merge(adapters, density=1.0)
    a = merge(None, [{"q": own["q"].a} for own in adapters], density=1.0)["q"]
    assert torch.equal(wrong["q"].a, a)
    right = merge_adapters(adapters, density=1.0)["q"]
    missed = lora_delta(wrong["q"].a, wrong["q"].b, 2.0) - right
    assert float(missed.norm() / right.norm()) > 0.1
    copies = imitate_factor_merge([adapters[0]] * 2, method="linear")
    torch.testing.assert_close(copies["q"].b, adapters[0]["q"].b)


def test_adapters_that_do_not_fit_are_refused() -> None:
    with pytest.raises(MergeError, match='lacks "v"'):
        merge_adapters([random_adapter(0), random_adapter(0, modules=("q",))])
    with pytest.raises(MergeError, match='"q" of checkpoint-1 has shape'):
        merge_adapters([random_adapter(0), random_adapter(0, rows=8)])
    with pytest.raises(MergeError, match='module "v" has shape None in checkpoint-1'):
        concatenate_adapters([random_adapter(0), random_adapter(0, modules=("q",))])
    with pytest.raises(MergeError, match=r"has rank 2 and scaling 2\.0 in checkpoint-1"):
        imitate_factor_merge([random_adapter(0), random_adapter(1, rank=2)])


def test_an_adapter_with_a_nan_is_refused() -> None:
    broken = random_adapter(0)
    broken["v"].a[1, 1] = math.nan
    with pytest.raises(MergeError, match='"v" of checkpoint-1 has 7 NaN'):
        merge_adapters([random_adapter(0), broken])
