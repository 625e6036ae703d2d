"""Laws of TIES merges, over many random inputs, and numbers by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import MergeWarning, TiesAccumulator, merge
from gtr_turbo.merging.ties import trim, trim_threshold

Models = list[dict[str, Tensor]]
VALUES = st.floats(-8, 8, width=32).map(lambda value: 0.0 if abs(value) < 1e-3 else value)


@st.composite
def models(draw: st.DrawFn, *, whole: bool = False) -> Models:
    """Return one to five checkpoints of two tensors each."""
    num = draw(st.integers(1, 5))
    size = draw(st.integers(1, 12))
    values = st.integers(-4, 4).map(float) if whole else VALUES
    return [
        {
            "a": torch.from_numpy(draw(hnp.arrays(np.float32, (size,), elements=values))),
            "b": torch.from_numpy(draw(hnp.arrays(np.float32, (2, 3), elements=values))),
        }
        for _ in range(num)
    ]


DENSITIES = st.sampled_from([0.2, 0.5, 0.8, 1.0])
LAW = settings(max_examples=60, deadline=None)


def base_of(checkpoints: Models) -> dict[str, Tensor]:
    return {name: torch.zeros_like(value) for name, value in checkpoints[0].items()}


def assert_same(left: dict[str, Tensor], right: dict[str, Tensor], rtol: float = 1e-5) -> None:
    assert left.keys() == right.keys()
    for name, value in left.items():
        torch.testing.assert_close(value, right[name], rtol=rtol, atol=1e-6)


@LAW
@given(models(), DENSITIES, st.sampled_from([0.25, 2.0, 3.7, 1e4]))
def test_only_ratios_of_weights_matter(found: Models, density: float, factor: float) -> None:
    weights = [1.0 + index for index in range(len(found))]
    one = merge(base_of(found), found, density=density, weights=weights)
    scaled = [factor * weight for weight in weights]
    assert_same(one, merge(base_of(found), found, density=density, weights=scaled))


@LAW
@given(models(whole=True), DENSITIES, st.randoms(use_true_random=False))
def test_the_order_does_not_matter_for_equal_weights(
    found: Models, density: float, shuffler: object
) -> None:
    one = merge(base_of(found), found, density=density)
    mixed = list(found)
    shuffler.shuffle(mixed)  # pyright: ignore[reportAttributeAccessIssue]
    assert_same(one, merge(base_of(found), mixed, density=density), rtol=0.0)


@LAW
@given(models(), DENSITIES)
def test_the_negative_of_all_gives_the_negative_off_ties(found: Models, density: float) -> None:
    one = merge(base_of(found), found, density=density)
    other = merge(
        base_of(found), [{k: -v for k, v in own.items()} for own in found], density=density
    )
    for name in one:
        kept = [trim(own[name], trim_threshold(own[name], density)).double() for own in found]
        is_off_ties = torch.stack(kept).sum(0).abs() > 1e-4
        torch.testing.assert_close(one[name][is_off_ties], -other[name][is_off_ties])


@LAW
@given(models(), DENSITIES)
def test_the_stream_is_the_batch_after_every_step(found: Models, density: float) -> None:
    base = {name: torch.ones_like(value) for name, value in found[0].items()}
    accumulator = TiesAccumulator(base, density)
    for index, own in enumerate(found):
        accumulator.add(own)
        assert_same(
            accumulator.merged(), merge(base, found[: index + 1], density=density), rtol=0.0
        )


@LAW
@given(models(), models(), DENSITIES)
def test_added_then_removed_is_never_added(found: Models, others: Models, density: float) -> None:
    extra = {name: others[0]["b"].mean() + value for name, value in found[0].items()}
    accumulator = TiesAccumulator(None, density)
    for own in found:
        accumulator.add(own)
    accumulator.add(extra, name="extra")
    accumulator.remove(extra, name="extra")
    merged, expected = accumulator.merged(), merge(None, found, density=density)
    for name in merged:
        kept = [trim(own[name], trim_threshold(own[name], density)).double() for own in found]
        is_off_ties = torch.stack(kept).sum(0).abs() > 1e-3
        found_there, there = merged[name][is_off_ties], expected[name][is_off_ties]
        torch.testing.assert_close(found_there, there, rtol=1e-4, atol=1e-5)


@LAW
@given(models(), DENSITIES)
def test_the_result_lies_between_the_changes_that_agree(found: Models, density: float) -> None:
    merged = merge(None, found, density=density)
    for name, value in merged.items():
        kept = torch.stack([trim(own[name], trim_threshold(own[name], density)) for own in found])
        agree = torch.where(kept * value > 0, kept, torch.nan)
        low = torch.nan_to_num(agree, nan=torch.inf).amin(0)
        high = torch.nan_to_num(agree, nan=-torch.inf).amax(0)
        is_moved = value != 0.0
        slack = 1e-5 * value.abs()
        assert bool((value >= low - slack)[is_moved].all())
        assert bool((value <= high + slack)[is_moved].all())


@LAW
@given(models(), DENSITIES, st.integers(1, 6))
def test_copies_give_the_trimmed_checkpoint(found: Models, density: float, num: int) -> None:
    expected = {
        name: trim(value, trim_threshold(value, density)) for name, value in found[0].items()
    }
    assert_same(merge(None, [found[0]] * num, density=density), expected)


@LAW
@given(models(), st.integers(1, 6))
def test_one_checkpoint_at_density_one_is_itself(found: Models, exponent: int) -> None:
    base = {name: torch.full_like(value, 10.0**exponent) for name, value in found[0].items()}
    assert_same(merge(base, found[:1], density=1), found[0], rtol=0.0)


def test_densities_can_differ_by_checkpoint() -> None:
    changes = [{"w": torch.tensor([4.0, 1.0])}, {"w": torch.tensor([2.0, 1.0])}]
    assert merge(None, changes, density=[0.5, 1.0])["w"].tolist() == [3.0, 1.0]
    with pytest.raises(MergeError, match="1 densities were given for 2"):
        merge(None, changes, density=[0.5])


def test_the_sum_can_be_left_undivided() -> None:
    changes = [{"w": torch.tensor([4.0, 1.0])}, {"w": torch.tensor([2.0, -3.0])}]
    found = merge(None, changes, density=1.0, denominator="none", weights=[1, 2])
    assert found["w"].tolist() == [8.0, -6.0]
    total = merge(None, changes, density=1.0, denominator="total")
    assert total["w"].tolist() == [3.0, -1.5]


def test_choices_are_checked() -> None:
    with pytest.raises(MergeError, match='`scope` must be one of tensor, global, got "row"'):
        merge(None, [{"w": torch.ones(1)}], scope="row")
    with pytest.raises(MergeError, match="`denominator` must be one of matched, total, none"):
        merge(None, [{"w": torch.ones(1)}], denominator="all")


def test_global_scope_matches_one_long_tensor() -> None:
    generator = torch.Generator().manual_seed(3)
    sizes = {"a": 70_000, "b": 5, "c": 300}
    changes = [
        {name: torch.randn(size, generator=generator) * 10.0**at
         for at, (name, size) in enumerate(sizes.items())}
        for _ in range(3)
    ]  # fmt: skip
    found = merge(None, changes, density=0.3, scope="global")
    long = [{"w": torch.cat(list(own.values()))} for own in changes]
    expected = merge(None, long, density=0.3)["w"]
    assert torch.equal(torch.cat(list(found.values())), expected)


def test_the_recursion_is_another_method() -> None:
    changes = [{"w": torch.tensor([8.0, 1.0])}, {"w": torch.tensor([0.0, 4.0])}]
    assert merge(None, changes, method="ema_ties", density=1.0)["w"].tolist() == [8.0, 2.5]
    third = {"w": torch.tensor([2.0, -6.0])}
    # Step 2 gives (8, 2.5); step 3 averages it with (2, −6): 8 and 2 agree, −6 outweighs 2.5.
    found = merge(None, [*changes, third], method="ema_ties_recursive", density=1.0)
    assert found["w"].tolist() == [5.0, -6.0]
    trimmed = merge(None, changes, method="ema_ties_recursive", density=0.5)
    assert trimmed["w"].tolist() == [8.0, 4.0]


def test_methods_that_set_weights_refuse_others() -> None:
    changes = [{"w": torch.ones(1)}] * 2
    for method in ("ema", "ema_ties", "ema_ties_recursive", "sma", "uniform_soup"):
        with pytest.raises(MergeError, match="sets the weights itself"):
            merge(None, changes, method=method, weights=[1, 2])


def test_a_window_takes_the_last() -> None:
    changes = [{"w": torch.tensor([float(value)])} for value in (100, 3, 5)]
    for method in ("window_ties", "window_linear"):
        assert merge(None, changes, method=method, window=2)["w"].tolist() == [4.0]
        assert merge(None, changes, method=method, window=9)["w"].tolist() == [36.0]
    found = merge(
        None, changes, method="window_ties", window=2, density=[0.5, 1, 1], weights=[9, 1, 3]
    )
    assert found["w"].tolist() == [4.5]
    with pytest.raises(MergeError, match="at least 1 checkpoint, got 0"):
        merge(None, changes, method="window_ties", window=0)


def test_a_change_lost_to_rounding_warns() -> None:
    base = {"w": torch.ones(4, dtype=torch.bfloat16)}
    moved = {"w": torch.tensor([1.0, 1.0, 1.0, 1.0078125], dtype=torch.bfloat16)}
    with pytest.warns(MergeWarning, match=r"75\.0% of the 16-bit entries of checkpoint-0"):
        merge(base, [moved], density=1.0)
    accumulator = TiesAccumulator(base)
    with pytest.warns(MergeWarning, match=r"75\.0%"):
        accumulator.add(moved)
    assert merge(base, [moved], method="linear")["w"].tolist() == moved["w"].tolist()
