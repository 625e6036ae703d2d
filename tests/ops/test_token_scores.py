import math

import pytest
import torch

from gtr_turbo.ops.token_scores import mean_entropy, placed

WHERE = torch.tensor([[False, True, True], [True, False, False]])


def test_values_stand_at_true_places_row_by_row() -> None:
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    found = placed(values, WHERE)
    assert found.tolist() == [[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]]
    (found * torch.tensor([[9.0, 5.0, 7.0], [4.0, 9.0, 9.0]])).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [5.0, 7.0, 4.0]


def test_the_entropy_is_the_mean_over_a_reply_written_out() -> None:
    shares = [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]]
    found = mean_entropy(torch.tensor(shares).log(), WHERE)
    own = [-sum(p * math.log(p) for p in row if p) for row in shares]
    assert found.tolist() == pytest.approx([(own[0] + own[1]) / 2, own[2]])


def test_a_suppressed_token_has_no_part_in_the_gradient() -> None:
    logits = torch.tensor([[0.3, -torch.inf, 1.2]] * 3, requires_grad=True)
    mean_entropy(logits.log_softmax(dim=-1), WHERE).sum().backward()
    free = torch.tensor([[0.3, 1.2]] * 3, requires_grad=True)
    mean_entropy(free.log_softmax(dim=-1), WHERE).sum().backward()
    assert logits.grad is not None
    assert free.grad is not None
    assert torch.allclose(logits.grad[:, [0, 2]], free.grad)
    assert not logits.grad[:, 1].any()
