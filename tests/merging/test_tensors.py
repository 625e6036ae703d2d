import pytest
import torch

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import TiesAccumulator, merge
from gtr_turbo.merging.arrays.files import KINDS
from gtr_turbo.merging.tensors import (
    DTYPES,
    KIND_OF,
    as_array,
    as_tensor,
    check_type,
    flat_cpu,
    rounded,
)


@pytest.mark.parametrize("kind", list(DTYPES))
def test_memory_is_shared_both_ways(kind: str) -> None:
    tensor = torch.tensor([0, 1, 1]).to(DTYPES[kind])
    array = as_array(tensor)
    assert (array.dtype, KIND_OF[tensor.dtype]) == (KINDS[kind], kind)
    assert array.__array_interface__["data"][0] == tensor.data_ptr()
    assert torch.equal(as_tensor(array), tensor)
    assert as_tensor(array).data_ptr() == tensor.data_ptr()


def test_vectors_share_memory_where_they_can() -> None:
    matrix = torch.zeros(2, 3)
    assert flat_cpu(matrix).data_ptr() == matrix.data_ptr()
    assert flat_cpu(matrix).shape == (6,)


def test_float8_is_refused_by_name() -> None:
    short = {"w": torch.zeros(3).to(torch.float8_e4m3fn)}
    check_type("w", "the base", torch.bfloat16)
    check_type("w", "the base", torch.int64)
    with pytest.raises(MergeError, match=r'tensor "w" of the base has type torch\.float8_e4m3fn'):
        merge(short, [short])
    with pytest.raises(MergeError, match='tensor "w" of checkpoint-1 has type'):
        merge({"w": torch.zeros(3)}, [{"w": torch.ones(3)}, short])
    with pytest.raises(MergeError, match='tensor "w" of checkpoint-0 has type'):
        TiesAccumulator(None).add(short)


@pytest.mark.parametrize("method", ["ties", "linear", "task_arithmetic"])
def test_a_result_that_float16_cannot_hold_is_refused(method: str) -> None:
    base = {"a": torch.ones(2, dtype=torch.float16), "w": torch.ones(2, dtype=torch.float16)}
    moved = {"a": torch.zeros(2, dtype=torch.float16), "w": torch.tensor([1.0, 1e5])}
    with pytest.raises(MergeError, match='the merged tensor "w" is not finite in F16'):
        merge(base, [moved], method=method)
    with pytest.raises(MergeError, match='the merged tensor "w" is not finite in F16'):
        merge(base, [moved, moved], method=method)
    accumulator = TiesAccumulator(base, density=1.0)
    accumulator.add(moved)
    with pytest.raises(MergeError, match='the merged tensor "w" is not finite in F16'):
        accumulator.merged()


def test_rounding_copies() -> None:
    values = torch.tensor([1.0, 65504.0])
    assert rounded(values, torch.float32, "w").data_ptr() != values.data_ptr()
    assert rounded(values, torch.float16, "w").tolist() == [1.0, 65504.0]
    with pytest.raises(MergeError, match='"w" is not finite in F16'):
        rounded(values * 2, torch.float16, "w")
