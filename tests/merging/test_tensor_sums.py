import numpy as np
import pytest

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import TiesOptions
from gtr_turbo.merging.arrays.changes import ArrayChange
from gtr_turbo.merging.settings import MergeSettings
from gtr_turbo.merging.tensor_sums import TensorSumsMaker


def maker(
    sum_format: str = "fp32", decay: float | None = None, is_linear: bool = False
) -> TensorSumsMaker:
    return TensorSumsMaker(
        MergeSettings(
            method="linear" if is_linear else "ties",
            density=1.0,
            scale=1.0,
            decay=decay,
            window=None,
            options=TiesOptions(sum_format=sum_format),
        )
    )


def change(*values: float) -> ArrayChange:
    own = np.array(values, np.float32)
    return ArrayChange(name="w", label="c", checkpoint=own, base=None)


def test_weights_that_differ_are_summed() -> None:
    sums = maker(decay=0.25).empty(2)
    sums.add(change(4.0, -1.0), 1.0, 1e-3)
    sums.add(change(1.0, 2.0), 3.0, 1e-3)
    assert sums.finish(4.0, np.empty(2, np.float32)).tolist() == [1.75, 2.0]
    again = maker(decay=0.25).restored(sums.arrays(), 2, (0.5, 2.0))
    assert again.arrays()["positive_weight"].tolist() == [2.0, 1.5]
    assert again.finish(2.0, np.empty(2, np.float32)).tolist() == [1.75, 2.0]


def test_a_linear_mean_has_one_sum() -> None:
    own = maker(is_linear=True)
    assert own.kinds({}, 1, 1.0, is_rescaled=False) == {"mass": "F32"}
    sums = own.empty(1)
    sums.add(change(3.0), 1.0, 0.0)
    again = own.restored(sums.arrays(), 1, None)
    again.add(change(1.0), 1.0, 0.0)
    assert again.finish(2.0, np.empty(1, np.float32)).tolist() == [2.0]


@pytest.mark.parametrize(
    ("before", "count", "raw_weight", "is_rescaled", "kind"),
    [
        ({}, 1, 1.0, False, "U8"),
        ({"positive_weight": "U8"}, 256, 1.0, False, "I16"),
        ({"positive_weight": "U8"}, 2, 0.5, False, "F32"),
        ({"positive_weight": "U8"}, 2, 1.0, True, "F32"),
    ],
)
def test_kinds_of_weights(
    before: dict[str, str], count: int, raw_weight: float, is_rescaled: bool, kind: str
) -> None:
    found = maker().kinds(before, count, raw_weight, is_rescaled=is_rescaled)
    assert found["negative_weight"] == kind
    assert found["negative_mass"] == "F32"


def test_formats_with_limits_are_kept() -> None:
    own = maker("fp16")
    assert own.lowest_scale() == 1.0
    with pytest.raises(MergeError, match="do not fit the fp16 format"):
        own.empty(1).check_room(17.0)
