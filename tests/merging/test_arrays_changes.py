"""The rest of what a change is stands in test_changes.py, which goes through this module."""

import numpy as np
import pytest

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.changes import (
    ArrayChange,
    apply_delta,
    fill_magnitude,
    measure,
    measure_globally,
)
from gtr_turbo.merging.arrays.kernels import CHUNK


def change(values: np.ndarray, base: np.ndarray | None = None) -> ArrayChange:
    return ArrayChange(name="w", label="checkpoint-0", checkpoint=values, base=base)


def test_a_look_is_a_view_where_it_can_be() -> None:
    own, buffer = np.arange(4, dtype=np.float32), np.empty(4, np.float32)
    assert np.shares_memory(change(own).look(1, 3, buffer), own)
    assert np.shares_memory(change(own, own).look(1, 3, buffer), buffer)
    assert change(own, np.ones(4, np.float32)).look(1, 3, buffer).tolist() == [0.0, 1.0]


def test_measures() -> None:
    values = np.zeros(CHUNK + 2, np.float32)
    values[CHUNK + 1] = -2.0
    found = measure(change(values), 1.0)
    assert (found.num_zero, found.largest, found.threshold) == (CHUNK + 1, 2.0, 2.0**-149)
    magnitude = np.empty(CHUNK + 2, np.float32)
    assert fill_magnitude(change(values), magnitude) == (CHUNK + 1, 2.0)
    assert magnitude[CHUNK + 1] == 2.0
    both = measure_globally({"a": change(values), "b": change(np.ones(2, np.float32))}, 1e-9)
    assert {own.threshold for own in both.values()} == {2.0}


def test_a_difference_that_overflows_is_refused() -> None:
    large = np.full(1, 3e38, np.float32)
    with pytest.raises(MergeError, match='the change of tensor "w" in checkpoint-0 overflows'):
        measure(change(large, -large), 0.5)


def test_a_base_that_is_not_finite_is_named() -> None:
    with pytest.raises(MergeError, match='"w" of the base has 1 NaN'):
        measure(change(np.ones(1, np.float32), np.full(1, np.inf, np.float32)), 0.5)


def test_a_change_is_applied_in_the_type_of_the_base() -> None:
    base = np.array([-0.0, 1.0], np.float64)
    found = apply_delta(base, np.array([0.0, 2.0**-30], np.float32), base.dtype, "w")
    assert found.tolist() == [0.0, 1.0 + 2.0**-30]
    assert np.signbit(found[0])
