import math

import torch

from gtr_turbo.ops.imitation import negative_log_likelihood

LOGPROBS = torch.tensor([[-1.0, -2.0, -4.0], [-0.5, -8.0, 0.0], [-3.0, -1.0, -2.0]])
IMITATED = torch.tensor([[False, True, True], [True, False, False], [False, False, False]])


def test_it_is_the_mean_over_the_imitated_tokens_of_each_turn() -> None:
    assert negative_log_likelihood(LOGPROBS, IMITATED).tolist() == [3.0, 0.5, 0.0]


def test_tokens_that_are_not_imitated_get_no_gradient() -> None:
    tokens = LOGPROBS.clone().requires_grad_()
    negative_log_likelihood(tokens, IMITATED).sum().backward()
    assert tokens.grad is not None
    assert tokens.grad.tolist() == [[0, -0.5, -0.5], [-1, 0, 0], [0, 0, 0]]


def test_a_turn_without_any_is_finite() -> None:
    nothing = negative_log_likelihood(LOGPROBS, torch.zeros_like(IMITATED))
    assert all(math.isfinite(value) for value in nothing.tolist())
