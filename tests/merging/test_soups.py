import pytest
import torch
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import merge

MODELS = [{"w": torch.tensor([value])} for value in (4.0, 1.0, -2.0, 100.0)]


def nearness_to_two(model: dict[str, Tensor]) -> float:
    return -abs(float(model["w"]) - 2.0)


def test_a_greedy_soup_keeps_what_helps() -> None:
    # Best alone is 1; with 4 the mean is 2.5, nearer; with −2 it is 1 and with 100 far: both out.
    found = merge(None, MODELS, method="greedy_soup", score=nearness_to_two)
    assert found["w"].tolist() == [2.5]


def test_a_useless_addition_that_does_no_harm_stays() -> None:
    models = [{"w": torch.tensor([2.0])}, {"w": torch.tensor([2.0])}]
    found = merge(None, models, method="greedy_soup", score=lambda model: 0.0)
    assert found["w"].tolist() == [2.0]


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(MergeError, match=r"checkpoints \[0\] is nan"):
        merge(None, MODELS, method="greedy_soup", score=lambda model: float("nan"))
