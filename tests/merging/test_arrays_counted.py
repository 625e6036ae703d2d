from typing import Any

import numpy as np
import pytest

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import TiesOptions
from gtr_turbo.merging.arrays.changes import ArrayChange
from gtr_turbo.merging.arrays.counted import CountedMaker
from gtr_turbo.merging.settings import MergeSettings


def settings(**changes: Any) -> MergeSettings:
    values: dict[str, Any] = {
        "method": "ties",
        "density": 0.8,
        "scale": 1.0,
        "decay": None,
        "window": None,
        "options": TiesOptions(),
    }
    return MergeSettings(**values | changes)


def change(*values: float) -> ArrayChange:
    own = np.array(values, np.float32)
    return ArrayChange(name="w", label="c", checkpoint=own, base=None)


def test_the_four_sums_by_hand() -> None:
    sums = CountedMaker(settings()).empty(3)
    sums.add(change(3, -1, 0), 1.0, 0.5)
    sums.add(change(1, 2, -3), 1.0, 0.5)
    sums.check_room(1e30)
    assert {name: value.tolist() for name, value in sums.arrays().items()} == {
        "positive_mass": [4.0, 2.0, 0.0],
        "negative_mass": [0.0, -1.0, -3.0],
        "positive_weight": [2, 1, 0],
        "negative_weight": [0, 1, 1],
    }
    assert sums.finish(2.0, np.empty(3, np.float32)).tolist() == [2.0, 2.0, -3.0]


@pytest.mark.parametrize(("num_seen", "kind"), [(254, "U8"), (255, "I16"), (32_767, "I32")])
def test_counts_are_widened_before_they_wrap(num_seen: int, kind: str) -> None:
    maker = CountedMaker(settings())
    assert maker.lowest_scale() == 0.0
    sums = maker.empty(1).arrays()
    sums["positive_weight"] = np.array([num_seen]).astype(np.uint8 if num_seen < 256 else np.int16)
    own = maker.restored(sums, num_seen, None)
    own.add(change(1.0), 1.0, 0.5)
    assert own.arrays()["positive_weight"].tolist() == [num_seen + 1]
    found = maker.kinds({"positive_weight": "U8"}, num_seen + 1, 1.0, is_rescaled=False)
    assert found["positive_weight"] == kind
    widths = {"U8": 1, "I16": 2, "I32": 4}
    assert own.arrays()["positive_weight"].itemsize == widths[kind]


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "linear"},
        {"decay": 0.5},
        {"options": TiesOptions(denominator="total")},
        {"options": TiesOptions(sum_format="fp64")},
    ],
)
def test_settings_that_need_torch_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(MergeError, match="without torch are TIES with equal weights"):
        CountedMaker(settings(**changes))


@pytest.mark.parametrize(("before", "weight"), [({}, 0.5), ({"positive_weight": "F32"}, 1.0)])
def test_weights_that_differ_are_refused(before: dict[str, str], weight: float) -> None:
    with pytest.raises(MergeError, match="without torch have equal weights"):
        CountedMaker(settings()).kinds(before, 2, weight, is_rescaled=False)
