import numpy as np
import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import (
    LinearAccumulator,
    TiesAccumulator,
    TiesOptions,
    make_accumulator,
    restore_accumulator,
)
from gtr_turbo.merging.linear import weighted_mean
from tests.merging.test_accumulate import walk


def test_diagnostics_of_a_merge_by_hand() -> None:
    accumulator = TiesAccumulator(None, density=1.0)
    assert accumulator.diagnostics() == {}
    accumulator.add({"w": torch.tensor([3.0, -1.0, 0.0, 0.0])})
    accumulator.add({"w": torch.tensor([1.0, 5.0, 0.0, 0.0])})
    accumulator.merged()
    # Of the merged change (2, 5, 0, 0) and the mean (2, 2, 0, 0).
    assert accumulator.diagnostics() == {
        "num_checkpoints": 2.0,
        "zero_fraction": 0.5,
        "norm_ratio": pytest.approx((29 / 8) ** 0.5),
        "cosine_to_mean": pytest.approx(14 / (29 * 8) ** 0.5),
    }


def test_global_scope_has_one_threshold_over_all_tensors() -> None:
    options = TiesOptions(scope="global")
    accumulator = TiesAccumulator(None, density=0.4, options=options)
    accumulator.add(
        {
            "a": torch.tensor([10.0, 9, 8, 7, 6]),
            "b": torch.tensor([0.5, 0.4, 0.3, 0.2, 0.1]),
        }
    )
    merged = accumulator.merged()
    assert merged["a"].tolist() == [10.0, 9.0, 8.0, 7.0, 0.0]
    assert merged["b"].tolist() == [0.0] * 5


def test_dividing_by_the_total_weight_shrinks_what_few_agree_on() -> None:
    accumulator = TiesAccumulator(None, 1.0, options=TiesOptions(denominator="total"))
    accumulator.add({"w": torch.tensor([3.0, 0.0])})
    accumulator.add({"w": torch.tensor([0.0, -4.0])})
    assert accumulator.merged()["w"].tolist() == [1.5, -2.0]


def test_integer_tensors_are_copied_and_must_be_equal() -> None:
    base = {"ids": torch.arange(3), "w": torch.zeros(1)}
    accumulator = TiesAccumulator(base)
    accumulator.add({"ids": torch.arange(3), "w": torch.ones(1)})
    merged = accumulator.merged()
    assert list(merged) == ["ids", "w"]
    assert merged["ids"].tolist() == [0, 1, 2]
    assert list(accumulator.merged_delta()) == ["w"]
    with pytest.raises(MergeError, match=r'"ids" of type torch\.int64 differs'):
        accumulator.add({"ids": torch.arange(1, 4), "w": torch.ones(1)})
    changes = TiesAccumulator(None)
    changes.add({"ids": torch.arange(3), "w": torch.ones(1)})
    assert changes.merged()["ids"].tolist() == [0, 1, 2]


def test_tied_tensors_count_once_and_stay_tied() -> None:
    shared = torch.zeros(4)
    base = {"embed": shared, "head": shared, "w": torch.zeros(4)}
    options = TiesOptions(scope="global")
    accumulator = TiesAccumulator(base, density=0.5, options=options)
    value = torch.tensor([4.0, 3.0, 2.0, 1.0])
    accumulator.add({"embed": value, "head": value.clone(), "w": 2.5 * torch.ones(4)})
    merged = accumulator.merged()
    assert merged["embed"] is merged["head"]
    # Half of eight entries, not of 12: 4, 3 and the 2.5s that equal the fourth largest.
    assert merged["embed"].tolist() == [4.0, 3.0, 0.0, 0.0]
    restored = restore_accumulator(*accumulator.state(), base)
    assert restored.merged()["embed"].tolist() == [4.0, 3.0, 0.0, 0.0]
    with pytest.raises(MergeError, match='"embed" and "head" share their values'):
        accumulator.add({"embed": value, "head": value + 1.0, "w": torch.ones(4)})


def test_ties_given_by_name_survive_a_restore() -> None:
    base = {"embed": torch.zeros(2), "head": torch.zeros(2)}
    accumulator = TiesAccumulator(base, 1.0, tied=[("embed", "head")])
    accumulator.add({"embed": torch.ones(2), "head": torch.ones(2)})
    restored = restore_accumulator(*accumulator.state(), base)
    merged = restored.merged()
    assert merged["embed"] is merged["head"]


def test_the_factory_knows_its_methods() -> None:
    assert type(make_accumulator("ties", density=0.5, window=3)) is TiesAccumulator
    assert type(make_accumulator("linear", scale=0.5)) is LinearAccumulator
    with pytest.raises(MergeError, match='did you mean "ties"'):
        make_accumulator("tie")


def test_the_cost_of_an_add_does_not_grow() -> None:
    accumulator = TiesAccumulator(None)
    (delta,) = walk(1)
    sizes = set()
    for _ in range(200):
        accumulator.add(delta)
        sizes.add(sum(tensor.nbytes for tensor in accumulator.state()[0].values()))
    num_entries = 7 * 11 + 7 + 1
    assert sizes == {10 * num_entries}


def test_counts_are_widened_before_they_wrap() -> None:
    accumulator = TiesAccumulator(None, density=1.0)
    for _ in range(300):
        accumulator.add({"w": torch.tensor([1.0, -2.0])})
    assert accumulator.merged()["w"].tolist() == [1.0, -2.0]
    dtypes = {tensor.dtype for tensor in accumulator.state()[0].values()}
    assert torch.int16 in dtypes
    assert torch.uint8 not in dtypes


def test_numpy_and_torch_agree_on_the_size_of_a_mean() -> None:
    deltas = walk(9)
    accumulator = LinearAccumulator(None)
    for delta in deltas:
        accumulator.add(delta)
    for name, value in accumulator.merged().items():
        stacked = np.stack([delta[name].numpy().astype(np.float64) for delta in deltas])
        assert value.numpy() == pytest.approx(stacked.mean(axis=0), rel=1e-5, abs=1e-10)
    exact = weighted_mean([delta["layer.bias"] for delta in deltas], [1.0] * 9)
    assert torch.equal(exact, accumulator.merged()["layer.bias"])
