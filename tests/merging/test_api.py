import inspect

import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import METHODS, merge

ONE = [{"w": torch.ones(2)}]


def test_unknown_names_are_refused_with_a_hint() -> None:
    with pytest.raises(MergeError, match='did you mean "ties"'):
        merge(None, ONE, method="tiess")
    with pytest.raises(MergeError, match='no option named "scopes"'):
        merge(None, ONE, scopes="global")
    with pytest.raises(MergeError, match='needs the option "window"'):
        merge(None, ONE, method="window_ties")


def test_a_refusal_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no checkpoint"):
        merge(None, [])


def test_results_keep_the_order_of_the_base_and_are_new() -> None:
    base = {"z": torch.zeros(1), "n": torch.arange(2), "a": torch.zeros(1)}
    found = merge(base, [base], density=0.0)
    assert list(found) == ["z", "n", "a"]
    found["z"] += 1.0
    found["n"] += 1
    assert base["z"].item() == 0.0
    assert base["n"].tolist() == [0, 1]


def test_every_method_says_what_it_does() -> None:
    for name, function in METHODS.items():
        assert inspect.getdoc(function), name
        first, *options = inspect.signature(function).parameters.values()
        assert first.name == "problem"
        assert all(option.kind is option.KEYWORD_ONLY for option in options), name


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("greedy_soup",)])
def test_every_method_refuses_what_is_not_finite(method: str) -> None:
    base = {"a": torch.zeros(3), "b": torch.zeros(3)}
    bad = {"a": torch.ones(3), "b": torch.tensor([1.0, float("-inf"), float("nan")])}
    options: dict[str, object] = {}
    if method == "fisher":
        options["fishers"] = [base, base]
    if method.startswith("window"):
        options["window"] = 2
    with pytest.raises(MergeError, match=r'"b" of checkpoint-1 has 2 NaN or infinite entries of 3'):
        merge(base, [base, bad], method=method, **options)  # pyright: ignore[reportArgumentType]


def test_a_base_that_is_not_finite_is_named() -> None:
    base = {"w": torch.tensor([float("inf")])}
    with pytest.raises(MergeError, match='"w" of the base has 1 NaN or infinite entry of 1'):
        merge(base, [{"w": torch.zeros(1)}])


def test_a_change_too_large_for_float32_is_refused() -> None:
    with pytest.raises(MergeError, match="overflows float32"):
        merge({"w": torch.tensor([-3e38])}, [{"w": torch.tensor([3e38])}])


def test_double_precision_is_kept() -> None:
    base = {"w": torch.tensor([1.0, -0.0], dtype=torch.float64)}
    moved = {"w": torch.tensor([1.0 + 1e-12, -0.0], dtype=torch.float64)}
    found = merge(base, [moved, moved], density=1.0)["w"]
    assert found.dtype == torch.float64
    assert float(found[0]) == pytest.approx(1.0 + 1e-12, rel=1e-15)
    assert str(float(found[1])) == "-0.0"


@pytest.mark.parametrize("scale", [float("nan"), float("inf")])
def test_scales_are_finite(scale: float) -> None:
    with pytest.raises(MergeError, match="must be finite"):
        merge(None, ONE, scale=scale)
