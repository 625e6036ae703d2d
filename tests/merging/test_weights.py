import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.weights import check_alpha, check_weights, ema_weights, sma_weights


def test_equal_weights_are_whole() -> None:
    assert sma_weights(3) == (1.0, 1.0, 1.0)
    with pytest.raises(MergeError, match="at least one checkpoint, got 0"):
        sma_weights(0)


def test_exponential_weights_by_hand() -> None:
    assert ema_weights(1, 0.3) == (1.0,)
    assert ema_weights(4, 0.5) == (0.125, 0.125, 0.25, 0.5)
    # 0.1 · 0.9^age over their sum 1 − 0.9^2.
    assert ema_weights(2, 0.1, "corrected") == pytest.approx((0.09 / 0.19, 0.1 / 0.19))
    assert ema_weights(3, 1.0) == (0.0, 0.0, 1.0)


def test_the_paper_s_bias_at_a_low_rate() -> None:
    weights = ema_weights(10, 0.1)
    assert weights[0] == pytest.approx(0.387, abs=5e-4)
    assert weights[-1] == 0.1


@given(st.integers(1, 60), st.floats(0.01, 1.0), st.sampled_from(["first", "corrected"]))
def test_exponential_weights_sum_to_one(num: int, alpha: float, start: str) -> None:
    weights = ema_weights(num, alpha, start)
    assert sum(weights) == pytest.approx(1.0)
    assert all(weight >= 0.0 for weight in weights)


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.1, float("nan"), float("inf")])
def test_rates_outside_the_unit_interval_are_refused(alpha: float) -> None:
    with pytest.raises(MergeError, match=r"must lie in \(0, 1\]"):
        check_alpha(alpha)


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(MergeError, match='"first" or "corrected", got "zero"'):
        ema_weights(2, 0.5, "zero")


def test_weights_are_checked() -> None:
    assert check_weights(None, 2) == (1.0, 1.0)
    assert check_weights([1, 3], 2) == (1.0, 3.0)
    assert check_weights((0.0, 2.0), 2) == (0.0, 2.0)
    with pytest.raises(MergeError, match="3 weights were given for 2 checkpoints"):
        check_weights([1, 1, 1], 2)
    with pytest.raises(MergeError, match="checkpoint 1 must be finite and at least 0, got -1"):
        check_weights([1, -1], 2)
    with pytest.raises(MergeError, match="got nan"):
        check_weights([float("nan"), 1], 2)
    with pytest.raises(MergeError, match="positive sum"):
        check_weights([0, 0], 2)
