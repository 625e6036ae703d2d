import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import merge

BASE = {"w": torch.tensor([10.0, 10.0])}
MODELS = [{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([5.0, -2.0])}]


def test_a_mean_leaves_the_base_out() -> None:
    for method in ("linear", "sma", "uniform_soup"):
        assert merge(BASE, MODELS, method=method)["w"].tolist() == [3.0, 0.0]
    far = {"w": torch.tensor([1e9, -1e9])}
    small = [{"w": torch.tensor([0.1, 0.3])}, {"w": torch.tensor([0.3, 0.5])}]
    torch.testing.assert_close(
        merge(far, small, method="linear")["w"], torch.tensor([0.2, 0.4]), rtol=1e-6, atol=0.0
    )


def test_a_scale_moves_the_mean_away_from_the_base() -> None:
    assert merge(BASE, MODELS, method="linear", scale=0.5)["w"].tolist() == [6.5, 5.0]
    assert merge(None, MODELS, method="linear", scale=2)["w"].tolist() == [6.0, 0.0]


def test_task_arithmetic_adds_changes_up() -> None:
    # (1 − 10) + (5 − 10) = −14 and (2 − 10) + (−2 − 10) = −20, halved.
    assert merge(BASE, MODELS, method="task_arithmetic", scale=0.5)["w"].tolist() == [3.0, 0.0]
    normal = merge(BASE, MODELS, method="task_arithmetic", weights=[1, 3], normalize=True)
    assert normal["w"].tolist() == [4.0, -1.0]


def test_the_exponential_average_by_hand() -> None:
    models = [{"w": torch.tensor([value])} for value in (1.0, 2.0, 4.0)]
    assert merge(None, models, method="ema")["w"].tolist() == [2.75]
    # Weights 1/8, 1/4, 1/2 over 7/8.
    found = merge(None, models, method="ema", ema_init="corrected")["w"]
    assert float(found) == pytest.approx((0.125 + 0.5 + 2.0) / 0.875)
    with pytest.raises(MergeError, match=r"lie in \(0, 1\], got 0"):
        merge(None, models, method="ema", alpha=0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=8), st.floats(0.05, 1.0))
def test_closed_form_and_recursion_agree_for_means(values: list[float], alpha: float) -> None:
    found = float(merge(None, [{"w": torch.tensor([v])} for v in values], method="ema",
                        alpha=alpha)["w"])  # fmt: skip
    mean = values[0]
    for value in values[1:]:
        mean = alpha * value + (1.0 - alpha) * mean
    assert found == pytest.approx(mean, rel=1e-5, abs=1e-4)


def test_a_mean_of_short_types_is_rounded_once() -> None:
    models = [{"w": torch.tensor([value], dtype=torch.bfloat16)} for value in (1.0, 1.0078125)]
    assert merge(None, [*models, models[1]], method="linear")["w"].tolist() == [1.0078125]
