import warnings

import pytest
import torch

from gtr_turbo.merging.arrays.changes import ArrayChange
from gtr_turbo.merging.changes import Change
from gtr_turbo.merging.rounding import MergeWarning, UnchangedShare


def change(label: str, dtype: torch.dtype, num: int = 4) -> ArrayChange:
    values = torch.zeros(num, dtype=dtype)
    return Change(name="w", label=label, checkpoint=values, base=None).arrays()


def test_shares_are_over_all_16_bit_tensors_of_a_checkpoint() -> None:
    share = UnchangedShare()
    share.include(change("a", torch.bfloat16), 4)
    share.include(change("a", torch.float16, 12), 4)
    share.include(change("b", torch.float32), 4)
    share.include(change("c", torch.bfloat16, 0), 0)
    assert share.shares() == {"a": 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        share.warn()


def test_more_than_half_warns() -> None:
    share = UnchangedShare()
    share.include(change("a", torch.bfloat16), 3)
    with pytest.warns(MergeWarning, match=r'75\.0% .* of a equal the base.*"linear"'):
        share.warn()
