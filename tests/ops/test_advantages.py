import numpy as np
import pytest
import torch

from gtr_turbo.ops.advantages import STD_EPSILON, gae, standardise


def by_double_sum(
    rewards: list[float], values: list[float], next_value: float, gamma: float, gae_lambda: float
) -> list[float]:
    """Return A_t = Σ_l (γλ)^l δ_{t+l}, without recursion."""
    after = [*values[1:], next_value]
    deltas = [r + gamma * w - v for r, v, w in zip(rewards, values, after, strict=True)]
    return [
        sum((gamma * gae_lambda) ** (s - t) * deltas[s] for s in range(t, len(deltas)))
        for t in range(len(deltas))
    ]


def test_a_terminated_episode_by_hand() -> None:
    # γ = ½, λ = ½, V = (1, 2, 3), r = (0, 0, 10), nothing follows.
    # δ = (0 + 1 − 1, 0 + 1.5 − 2, 10 − 3) = (0, −0.5, 7)
    # A_3 = 7, A_2 = −0.5 + 7/4 = 1.25, A_1 = 0 + 1.25/4 = 0.3125
    rewards, values = torch.tensor([0.0, 0.0, 10.0]), torch.tensor([1.0, 2.0, 3.0])
    assert gae(rewards, values, 0.0, 0.5, 0.5).tolist() == [0.3125, 1.25, 7.0]


def test_a_truncated_episode_is_worth_what_would_have_followed() -> None:
    # As above with V = 4 after the last turn: δ_3 = 10 + 2 − 3 = 9, A = (0 + 1.75/4, −0.5 + 9/4, 9)
    rewards, values = torch.tensor([0.0, 0.0, 10.0]), torch.tensor([1.0, 2.0, 3.0])
    assert gae(rewards, values, 4.0, 0.5, 0.5).tolist() == [0.4375, 1.75, 9.0]


def test_lambda_zero_is_the_one_step_error_and_lambda_one_the_return_minus_the_value() -> None:
    rewards, values = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.25])
    assert gae(rewards, values, 8.0, 0.5, 0.0).tolist() == [1 + 0.125 - 0.5, 2 + 4 - 0.25]
    assert gae(rewards, values, 8.0, 0.5, 1.0).tolist() == [1 + 1 + 2 - 0.5, 2 + 4 - 0.25]


@pytest.mark.parametrize("length", [1, 2, 7, 20])
@pytest.mark.parametrize("next_value", [0.0, -3.5])
def test_gae_is_the_double_sum(length: int, next_value: float) -> None:
    draw = np.random.default_rng(length)
    rewards, values = draw.normal(size=(2, length)).astype(np.float32)
    found = gae(torch.from_numpy(rewards), torch.from_numpy(values), next_value, 0.9, 0.95)
    expected = by_double_sum(rewards.tolist(), values.tolist(), next_value, 0.9, 0.95)
    assert found.tolist() == pytest.approx(expected, abs=1e-6)
    assert found.dtype == torch.float32


def test_no_turns_no_advantages() -> None:
    nothing = torch.zeros(0)
    assert gae(nothing, nothing, 1.0, 0.9, 0.95).shape == (0,)


def test_values_that_carry_gradients_are_only_read() -> None:
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    assert not gae(torch.tensor([0.0, 1.0]), values, 0.0, 0.9, 0.95).requires_grad


def test_standardised_advantages_by_hand() -> None:
    # Mean 3, deviations (−2, 0, 2), variance 8/3 over all of them.
    found = standardise(torch.tensor([1.0, 3.0, 5.0]))
    std = (8 / 3) ** 0.5
    assert found.tolist() == pytest.approx([-2 / (std + STD_EPSILON), 0.0, 2 / (std + STD_EPSILON)])


def test_equal_advantages_become_zero() -> None:
    assert standardise(torch.full((4,), 7.0)).tolist() == [0.0] * 4
    assert standardise(torch.tensor([3.0])).tolist() == [0.0]


def test_a_spread_of_noise_is_not_blown_up() -> None:
    # Deviations of 1e-5 around the mean, divided by the floor of 1e-2 (plus 1e-5).
    found = standardise(torch.tensor([-1e-5, 1e-5]))
    assert found.tolist() == pytest.approx([-1e-5 / 0.01001, 1e-5 / 0.01001], rel=1e-4)
