import math

import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.trimming import SMALLEST_MAGNITUDE
from gtr_turbo.merging.changes import Change
from gtr_turbo.merging.formats import find_format
from gtr_turbo.merging.sums import MergeStatistics, PlainSums, SignSums, weight_dtype_after
from gtr_turbo.merging.ties import ties_delta

FP32 = find_format("fp32")


def change(*values: float) -> Change:
    return Change(name="w", label="c", checkpoint=torch.tensor(values), base=None)


def filled(*changes: Change, denominator: str = "matched") -> SignSums:
    sums = SignSums(changes[0].num_entries, FP32, denominator)
    for own in changes:
        sums.add(own, 1.0, SMALLEST_MAGNITUDE)
    return sums


def test_the_four_sums_by_hand() -> None:
    sums = filled(change(3, -1, 0), change(1, 2, -3))
    assert {name: value.tolist() for name, value in sums.tensors().items()} == {
        "positive_mass": [4.0, 2.0, 0.0],
        "negative_mass": [0.0, -1.0, -3.0],
        "positive_weight": [2, 1, 0],
        "negative_weight": [0, 1, 1],
    }
    assert sums.finish(2.0, None).tolist() == [2.0, 2.0, -3.0]


def test_sums_match_the_rule_in_plain_sight_over_many_pieces() -> None:
    generator = torch.Generator().manual_seed(0)
    deltas = [torch.randn(100_000, generator=generator) for _ in range(5)]
    thresholds = [0.3, 0.1, SMALLEST_MAGNITUDE, 0.9, math.inf]
    sums = SignSums(100_000, FP32, "matched")
    for delta, threshold in zip(deltas, thresholds, strict=True):
        sums.add(Change(name="w", label="c", checkpoint=delta, base=None), 1.0, threshold)
    expected = ties_delta(deltas, [1.0] * 5, thresholds)
    assert torch.equal(sums.finish(5.0, None), expected)


def test_counts_grow_and_turn_into_weights() -> None:
    sums = filled(change(1.0))
    sums.add(change(1.0), 0.5, SMALLEST_MAGNITUDE)
    assert sums.tensors()["positive_weight"].tolist() == [1.5]
    assert sums.tensors()["positive_weight"].dtype == torch.float32


@pytest.mark.parametrize(
    ("largest", "raw_weight", "expected"),
    [
        (255, 1.0, torch.uint8),
        (256, 1.0, torch.int16),
        (32_768, 0.0, torch.int32),
        (2, 0.5, torch.float32),
    ],
)
def test_counts_are_as_narrow_as_they_can_be(
    largest: int, raw_weight: float, expected: torch.dtype
) -> None:
    assert weight_dtype_after(torch.uint8, largest, raw_weight, FP32) == expected
    assert weight_dtype_after(torch.float32, largest, raw_weight, FP32) == torch.float32
    assert weight_dtype_after(torch.int32, 3, 1.0, FP32) == torch.int32


def test_what_was_taken_out_leaves_exactly_nothing() -> None:
    sums = filled(change(0.1, 1.0), change(0.7, 1.0))
    for value in (0.7, 0.1):
        sums.subtract(change(value, 0.0), 1.0, SMALLEST_MAGNITUDE)
    assert sums.finish(2.0, None).tolist() == [0.0, 1.0]
    with pytest.raises(MergeError, match="1 entries with less inside"):
        sums.check_contains(change(0.1, 1.0), 1.0, SMALLEST_MAGNITUDE)


def test_clearing_empties() -> None:
    sums = filled(change(1.0))
    sums.clear()
    assert sums.finish(1.0, None).tolist() == [0.0]
    plain = PlainSums(1, FP32)
    plain.add(change(2.0), 1.0, 0.0)
    plain.clear()
    assert plain.tensors()["mass"].tolist() == [0.0]


def test_decaying_forgets_what_has_faded() -> None:
    sums = filled(change(8.0, -2.0))
    sums.multiply(2.0**-50, 1.0)
    assert all(not value.any() for value in sums.tensors().values())
    other = filled(change(8.0, -2.0))
    other.multiply(0.5, 0.5)
    assert other.tensors()["positive_mass"].tolist() == [4.0, 0.0]
    assert other.finish(0.5, None).tolist() == [8.0, -2.0]


@pytest.mark.parametrize(
    ("denominator", "expected"), [("matched", 3.0), ("total", 1.5), ("none", 6.0)]
)
def test_denominators(denominator: str, expected: float) -> None:
    sums = filled(change(2), change(4), change(-1), change(0), denominator=denominator)
    assert sums.finish(4.0, None).tolist() == [expected]


def test_a_plain_sum() -> None:
    sums = PlainSums(2, FP32)
    sums.add(change(1.0, 2.0), 1.0, 0.0)
    sums.add(change(5.0, -2.0), 3.0, 0.0)
    sums.add(change(7.0, 7.0), 0.0, 0.0)
    assert sums.finish(4.0, None).tolist() == [4.0, -1.0]
    sums.subtract(change(1.0, 2.0), 1.0, 0.0)
    sums.check_contains(change(9.0, 9.0), 1.0, 0.0)
    sums.multiply(0.5, 1.5)
    assert sums.finish(1.5, None).tolist() == [5.0, -2.0]


def test_statistics_of_nothing_and_of_zero() -> None:
    assert MergeStatistics().summary() == {
        "zero_fraction": 0.0,
        "norm_ratio": 1.0,
        "cosine_to_mean": 1.0,
    }
    statistics = MergeStatistics()
    statistics.include(torch.ones(4), torch.zeros(4))
    assert statistics.summary() == {
        "zero_fraction": 0.0,
        "norm_ratio": math.inf,
        "cosine_to_mean": 0.0,
    }
