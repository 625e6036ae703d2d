import numpy as np
import pytest

from gtr_turbo.merging.arrays.kernels import (
    CHUNK,
    Scratch,
    add_kept,
    count_zeros,
    finish_matched,
    spans,
)


def test_pieces_cover_everything_once() -> None:
    assert spans(0) == []
    assert spans(CHUNK) == [(0, CHUNK)]
    assert spans(2 * CHUNK + 1) == [(0, CHUNK), (CHUNK, 2 * CHUNK), (2 * CHUNK, 2 * CHUNK + 1)]


def test_scratch_is_used_again() -> None:
    scratch = Scratch()
    first = scratch.floats(10)
    assert np.shares_memory(scratch.floats(4), first)
    assert np.shares_memory(scratch.bytes(40), first)
    assert scratch.floats(20).size == 20
    assert not np.shares_memory(scratch.floats(20), first)


def test_zeros_are_counted() -> None:
    assert count_zeros(np.array([0.0, -0.0, 1e-45, 2.0], np.float32)) == 2


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
def test_kept_changes_go_to_their_side(dtype: type[np.generic]) -> None:
    masses = (np.array([1, 1, 1, 1], np.float32), np.array([-1, -1, -1, -1], np.float32))
    counts = (np.full(4, 1, dtype), np.full(4, 1, dtype))
    add_kept(np.array([2.0, -2.0, 1.5, -0.0], np.float32), 2.0, masses, counts)
    assert [own.tolist() for own in masses] == [[3, 1, 1, 1], [-1, -3, -1, -1]]
    assert [own.tolist() for own in counts] == [[2, 1, 1, 1], [1, 2, 1, 1]]


def test_the_elected_sign_is_divided_by_its_count() -> None:
    masses = (np.array([4, 2, 1, 0], np.float32), np.array([-1, -2, -6, 0], np.float32))
    counts = (np.array([2, 1, 1, 0], np.uint8), np.array([1, 1, 3, 0], np.uint8))
    result = np.empty(4, np.float32)
    finish_matched(masses, counts, result)
    assert result.tolist() == [2.0, 2.0, -2.0, 0.0]
    assert counts[0].tolist() == [2, 1, 1, 0]
