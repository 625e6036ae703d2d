import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.kernels import CHUNK, Scratch
from gtr_turbo.merging.changes import Change, apply_delta, measure, measure_globally

BIG = CHUNK + 100


def change(checkpoint: torch.Tensor, base: torch.Tensor | None = None, name: str = "w") -> Change:
    return Change(name=name, label="checkpoint-0", checkpoint=checkpoint, base=base)


def test_short_types_are_widened_before_the_difference() -> None:
    base = torch.tensor([1.0], dtype=torch.bfloat16)
    moved = torch.tensor([1.0078125], dtype=torch.bfloat16)
    assert change(moved, base).whole().tolist() == [0.0078125]
    wide = torch.tensor([1.0 + 2.0**-40], dtype=torch.float64)
    assert change(wide, torch.ones(1, dtype=torch.float64)).whole().tolist() == [2.0**-40]
    assert change(torch.tensor([3.0, 4.0])).whole().tolist() == [3.0, 4.0]


def test_a_change_of_several_pieces() -> None:
    base = torch.arange(float(BIG))
    own = change(base + 1.0, base)
    assert torch.equal(own.whole(), torch.ones(BIG))
    assert own.num_entries == BIG


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_measures(density: float) -> None:
    values = torch.zeros(BIG)
    values[5], values[CHUNK + 7] = -3.0, 2.0
    found = measure(change(values), density, Scratch())
    assert (found.num_zero, found.largest) == (BIG - 2, 3.0)
    assert found == measure(change(values), density)


def test_a_global_threshold() -> None:
    changes = {"a": change(torch.tensor([4.0, 3.0])), "b": change(torch.tensor([0.0, 5.0, 1.0]))}
    found = measure_globally(changes, 0.4)
    assert {name: own.threshold for name, own in found.items()} == {"a": 4.0, "b": 4.0}
    assert found["b"].num_zero == 1


def test_what_is_not_finite_is_counted() -> None:
    values = torch.ones(BIG)
    values[[3, CHUNK + 1]] = torch.nan
    with pytest.raises(MergeError, match=f'"w" of checkpoint-0 has 2 NaN .* entries of {BIG}'):
        measure(change(values), 0.5)


def test_unchanged_entries_keep_their_bits() -> None:
    base = torch.tensor([-0.0, 0.0, 5.0, 1e-45])
    same = apply_delta(base, torch.zeros(4), torch.float32, "w")
    assert str(same.tolist()) == str(base.tolist())
    assert apply_delta(base, torch.ones(4), torch.float32, "w").tolist() == [1.0, 1.0, 6.0, 1.0]
    found = apply_delta(torch.ones(3), torch.tensor([0.0, 0.5, 1.0]), torch.float32, "w")
    assert found.tolist() == [1, 1.5, 2]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_sum_that_its_type_cannot_hold_is_refused(dtype: torch.dtype) -> None:
    base = torch.full((BIG,), torch.finfo(dtype).max, dtype=dtype)
    delta = torch.zeros(BIG)
    assert torch.equal(apply_delta(base, delta, dtype, "w"), base)
    delta[CHUNK + 3] = torch.finfo(dtype).max
    with pytest.raises(MergeError, match=r'the merged tensor "w" is not finite in B?F16'):
        apply_delta(base, delta, dtype, "w")
