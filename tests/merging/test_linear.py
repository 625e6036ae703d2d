import torch

from gtr_turbo.merging.linear import ema_step, weighted_mean, weighted_sum

FIRST, SECOND = torch.tensor([1.0, 2.0]), torch.tensor([5.0, -2.0])


def test_sum_and_mean_by_hand() -> None:
    assert weighted_sum([FIRST, SECOND], [1, 3]).tolist() == [16.0, -4.0]
    assert weighted_mean([FIRST, SECOND], [1, 3]).tolist() == [4.0, -1.0]


def test_one_step_of_the_exponential_average() -> None:
    assert ema_step(FIRST, SECOND, 0.25).tolist() == [2.0, 1.0]


def test_short_types_are_summed_in_float32() -> None:
    ones = torch.ones(1, dtype=torch.bfloat16)
    assert weighted_sum([ones] * 300, [1.0] * 300).tolist() == [300.0]
