import math

import torch

from gtr_turbo.merging.arrays.trimming import SMALLEST_MAGNITUDE
from gtr_turbo.merging.ties import elect, ties_delta, trim, trim_threshold


def test_all_entries_at_the_threshold_stay() -> None:
    delta = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    threshold = trim_threshold(delta, 0.5)
    assert threshold == 1.0
    assert torch.equal(trim(delta, threshold), delta)


def test_the_threshold_is_the_kth_largest_magnitude() -> None:
    delta = torch.tensor([[5.0, -4.0], [3.0, -2.0], [1.0, 0.0]])
    assert trim_threshold(delta, 0.5) == 3.0
    assert trim(delta, 3.0).tolist() == [[5.0, -4.0], [3.0, 0.0], [0.0, 0.0]]


def test_zeros_are_never_kept() -> None:
    delta = torch.zeros(10)
    delta[3] = -1e-45
    assert trim_threshold(delta, 0.9) == SMALLEST_MAGNITUDE
    assert trim_threshold(delta, 1.0) == SMALLEST_MAGNITUDE
    assert trim(delta, SMALLEST_MAGNITUDE)[3] == delta[3]


def test_nothing_is_kept_at_density_zero() -> None:
    assert trim_threshold(torch.ones(3), 0.0) == math.inf


def test_an_exact_zero_elects_plus() -> None:
    positive = torch.tensor([1.0, 1.0, 0.0, 0.0])
    negative = torch.tensor([-1.0, -2.0, -1.0, 0.0])
    assert elect(positive, negative).tolist() == [True, False, False, True]


def test_the_mean_is_over_those_that_agree() -> None:
    deltas = [torch.tensor([4.0, 1.0, -1.0]), torch.tensor([4.0, 1.0, 2.0]),
              torch.tensor([-3.0, 2.0, -4.0])]  # fmt: skip
    merged = ties_delta(deltas, [0.25, 0.25, 0.5], [SMALLEST_MAGNITUDE] * 3)
    assert merged.tolist() == [4.0, 1.5, -3.0]
    whole = ties_delta(deltas, [1, 1, 2], [SMALLEST_MAGNITUDE] * 3, divide_by_total=True)
    assert whole.tolist() == [2.0, 1.5, -2.25]


def test_a_fading_sign_counts_as_absent() -> None:
    deltas = [torch.tensor([8.0, 0.0]), torch.tensor([0.0, -1.0])]
    merged = ties_delta(deltas, [1e-7, 1.0], [0.5, 0.5])
    assert merged.tolist() == [0.0, -1.0]
