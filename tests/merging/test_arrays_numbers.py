import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.numbers import (
    BFLOAT16,
    converted,
    count_not_finite,
    is_finite,
    narrow,
    subtract,
    widen,
)
from gtr_turbo.merging.tensors import as_array, as_tensor


def every_bfloat16() -> torch.Tensor:
    bits = np.arange(1 << 16, dtype=np.uint16)
    return as_tensor(bits)


def test_bfloat16_is_widened_exactly() -> None:
    values = every_bfloat16()
    for out, dtype in ((np.float32, torch.float32), (np.float64, torch.float64)):
        found = widen(as_array(values), np.empty(1 << 16, out))
        assert np.array_equal(found, values.to(dtype).numpy(), equal_nan=True)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-(2.0**126), 2.0**126, width=32), min_size=1, max_size=30))
def test_rounding_to_bfloat16_is_torch_s(values: list[float]) -> None:
    own = np.array(values, np.float32)
    found = narrow(own, np.empty(own.shape, BFLOAT16), "w")
    assert torch.equal(as_tensor(found), torch.tensor(values).to(torch.bfloat16))


def test_halves_go_to_the_even_neighbour() -> None:
    own = np.array([1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8, -1.0 - 2.0**-8, 1e-45], np.float32)
    found = as_tensor(narrow(own, np.empty(4, BFLOAT16), "w")).tolist()
    assert found == [1.0, 1.015625, -1.0, 0.0]


def test_differences_of_short_types_are_not_rounded() -> None:
    short = as_array(torch.tensor([1.0, 1.0078125], dtype=torch.bfloat16))
    assert subtract(short[1:], short[:1], np.empty(1, np.float32)).tolist() == [0.0078125]
    wide = np.array([1.0 + 2.0**-40])
    assert subtract(wide, short[:1], np.empty(1, np.float32)).tolist() == [2.0**-40]
    half = np.array([3.0], np.float16)
    assert subtract(half, short[:1], np.empty(1, np.float32)).tolist() == [2.0]


@pytest.mark.parametrize(("dtype", "value"), [(np.float16, 65520.0), (BFLOAT16, 3.4e38)])
def test_what_a_type_cannot_hold_is_refused(dtype: np.dtype, value: float) -> None:
    with pytest.raises(MergeError, match='the merged tensor "w" is not finite'):
        narrow(np.array([1.0, value], np.float32), np.empty(2, dtype), "w")
    with pytest.raises(MergeError, match='the merged tensor "w" is not finite in F32'):
        converted(np.array([1e39]), np.dtype(np.float32), "w")


def test_what_is_not_finite_is_counted() -> None:
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        own = as_array(torch.tensor([1.0, torch.nan, -torch.inf], dtype=dtype))
        assert (count_not_finite(own), is_finite(own), is_finite(own[:1])) == (2, False, True)
        assert is_finite(own[:0])


def test_a_type_that_fits_is_kept() -> None:
    own = np.array([1.0], np.float32)
    assert converted(own, np.dtype(np.float32), "w") is own
    assert converted(own, BFLOAT16, "w").tolist() == [0x3F80]
