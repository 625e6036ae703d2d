import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gtr_turbo.merging.arrays.trimming import SMALLEST_MAGNITUDE
from gtr_turbo.merging.changes import Change
from gtr_turbo.merging.radix import select_streaming
from gtr_turbo.merging.ties import trim_threshold


def change(values: torch.Tensor) -> Change:
    return Change(name="w", label="c", checkpoint=values, base=None)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=40), st.data())
def test_it_finds_what_a_sort_finds(values: list[float], data: st.DataObject) -> None:
    kept = data.draw(st.integers(1, len(values)))
    expected = sorted((abs(value) for value in values), reverse=True)[kept - 1]
    found = select_streaming(change(torch.tensor(values)), kept)
    if kept == len(values):
        assert found == SMALLEST_MAGNITUDE
    else:
        assert found == max(expected, SMALLEST_MAGNITUDE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("density", [0.01, 0.5, 0.8])
def test_it_agrees_with_the_partition(dtype: torch.dtype, density: float) -> None:
    values = torch.randn(100_000, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = select_streaming(change(values), int(density * 100_000))
    assert found == trim_threshold(values.to(torch.float32), density)


def test_nothing_kept_means_an_infinite_threshold() -> None:
    assert select_streaming(change(torch.ones(3)), 0) == math.inf
