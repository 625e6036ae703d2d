import math

import pytest
import torch

from gtr_turbo.core.batch import TokenCredit
from gtr_turbo.ops.ppo import (
    RATIO_LIMIT,
    approximate_kl,
    clip_fraction,
    clipped_surrogate,
    explained_variance,
    token_surrogate,
    value_loss,
)


def loss(ratio: float, advantage: float, clip: float = 0.1) -> float:
    logprob = torch.tensor([math.log(ratio) - 3.0])
    return clipped_surrogate(logprob, torch.tensor([-3.0]), torch.tensor([advantage]), clip).item()


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.0, 2.0, -2.0),
        (1.05, 2.0, -2.1),  # inside the range
        (1.5, 2.0, -2.2),  # a gain counts up to 1.1
        (0.5, 2.0, -1.0),  # a loss counts in full
        (1.5, -2.0, 3.0),
        (0.5, -2.0, 1.8),  # 0.9 · 2
        (9.9, -2.0, 19.8),
        (10.1, -2.0, 2.2),  # beyond the limit: only the clipped term
        (10.1, 2.0, -2.2),
        (1e6, -2.0, 2.2),
    ],
)
def test_the_clipped_surrogate_by_hand(ratio: float, advantage: float, expected: float) -> None:
    assert loss(ratio, advantage) == pytest.approx(expected, rel=1e-5)


def gradient(log_ratio: float, advantage: float) -> float:
    logprob = torch.tensor([log_ratio], requires_grad=True)
    clipped_surrogate(logprob, torch.zeros(1), torch.tensor([advantage]), 0.1).sum().backward()
    assert logprob.grad is not None
    return logprob.grad.item()


def test_the_gradient_is_ratio_times_advantage_or_zero() -> None:
    assert gradient(0.0, 2.0) == pytest.approx(-2.0)
    assert gradient(math.log(1.5), 2.0) == 0.0  # clipped gain
    assert gradient(math.log(1.5), -2.0) == pytest.approx(3.0)
    assert gradient(math.log(RATIO_LIMIT) + 0.01, -2.0) == 0.0  # runaway


@pytest.mark.parametrize("log_ratio", [30.0, 89.0, 1000.0])
@pytest.mark.parametrize("advantage", [-2.0, 2.0])
def test_a_ratio_beyond_float32_has_a_finite_loss_and_no_gradient(
    log_ratio: float, advantage: float
) -> None:
    found = clipped_surrogate(
        torch.tensor([log_ratio]), torch.zeros(1), torch.tensor([advantage]), 0.1
    )
    assert found.item() == pytest.approx(-1.1 * advantage)
    assert gradient(log_ratio, advantage) == 0.0


@pytest.mark.parametrize(
    ("value", "old", "target", "clip", "expected"),
    [
        (2.0, 1.0, 4.0, None, 2.0),  # ½ · 2²
        (2.0, 1.0, 4.0, 0.5, 3.125),  # held at 1.5: ½ · 2.5², the larger of the two
        (1.25, 1.0, 4.0, 0.5, 3.78125),  # inside the range: ½ · 2.75²
        (0.0, 1.0, 4.0, 0.5, 8.0),  # moved away: the unclipped error is larger, ½ · 4²
    ],
)
def test_the_value_loss_by_hand(
    value: float, old: float, target: float, clip: float | None, expected: float
) -> None:
    found = value_loss(torch.tensor([value]), torch.tensor([old]), torch.tensor([target]), clip)
    assert found.tolist() == [expected]


def test_the_approximate_kl_by_hand() -> None:
    # r = 2 and ½: (2 − 1 − ln 2 + ½ − 1 + ln 2) / 2 = ¼
    logprob = torch.log(torch.tensor([2.0, 0.5]))
    assert approximate_kl(logprob, torch.zeros(2)) == pytest.approx(0.25)
    assert approximate_kl(logprob, logprob) == 0.0
    assert math.isfinite(approximate_kl(torch.zeros(2), torch.tensor([-89.0, 0.0])))


def test_the_clip_fraction_counts_turns_outside_the_range() -> None:
    logprob = torch.log(torch.tensor([1.0, 1.05, 1.2, 0.8]))
    assert clip_fraction(logprob, torch.zeros(4), 0.1) == 0.5


def test_explained_variance_by_hand() -> None:
    target = torch.tensor([1.0, 2.0, 3.0, 4.0])  # variance 1.25
    assert explained_variance(target, target) == 1.0
    assert explained_variance(torch.full((4,), 9.0), target) == 0.0
    assert explained_variance(target + 5.0, target) == 1.0  # a constant offset explains all
    # Errors (1, 0, 0, −1): variance ½, and 1 − 0.5 / 1.25 = 0.6
    assert explained_variance(torch.tensor([0.0, 2, 3, 5]), target) == pytest.approx(0.6)
    assert explained_variance(-target, target) == pytest.approx(-3.0)
    assert explained_variance(target, torch.ones(4)) == 0.0


def test_watching_takes_no_part_in_the_gradient() -> None:
    # A conversion of a tensor with a gradient would warn, and warnings are errors here.
    live = torch.tensor([0.1, 0.2], requires_grad=True)
    fixed = torch.tensor([0.0, 0.3])
    assert approximate_kl(live, fixed) > 0
    assert clip_fraction(live, fixed, 0.15) == 0.0
    assert explained_variance(live, fixed) < 1
    assert explained_variance(fixed, live) < 1


def test_tokens_with_credit_are_clipped_one_by_one() -> None:
    old = torch.log(torch.tensor([[0.5, 0.5, 0.5, 0.5]]))
    new = torch.log(torch.tensor([[0.55, 0.9, 0.25, 0.6]]))
    advantage = torch.tensor([[1.0, 2.0, -1.0, 0.0]])
    credit = TokenCredit(old_logprob=old, advantage=advantage)
    # Ratios 1.1, 1.8, 0.5, 1.2; clipped at 0.1: −1.1·1, −1.1·2, −max-of-(0.5, 0.9)·(−1), 0.
    found = token_surrogate(new, credit, 0.1)
    assert found[0].tolist() == pytest.approx([-1.1, -2.2, 0.9, 0.0], abs=1e-6)


def test_a_token_without_credit_moves_nothing() -> None:
    new = torch.tensor([[-0.2, -0.9]], requires_grad=True)
    credit = TokenCredit(
        old_logprob=torch.tensor([[-0.3, -0.8]]), advantage=torch.tensor([[0.0, 1.0]])
    )
    token_surrogate(new, credit, 0.2).sum().backward()
    assert new.grad is not None
    assert new.grad[0, 0] == 0
    assert new.grad[0, 1] < 0
