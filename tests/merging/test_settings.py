import json
from typing import Any

import pytest

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.settings import MergeSettings, TiesOptions


def settings(**changes: Any) -> MergeSettings:
    values: dict[str, Any] = {
        "method": "ties",
        "density": 0.8,
        "scale": 1,
        "decay": None,
        "window": None,
        "options": TiesOptions(),
    }
    return MergeSettings(**values | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"density": 80}, "lie in"),
        ({"scale": float("inf")}, "must be finite"),
        ({"decay": 0}, "lie in"),
        ({"window": 0}, "at least 1 checkpoint"),
        ({"window": 3, "decay": 0.5}, "exclude each other"),
        ({"options": TiesOptions(scope="row")}, "`scope` must be one of"),
        ({"options": TiesOptions(denominator="none")}, "`denominator` must be one of"),
        ({"options": TiesOptions(ema_init="zero")}, '"first" or "corrected"'),
        ({"options": TiesOptions(sum_format="fp8")}, 'no sum format named "fp8"'),
    ],
)
def test_what_no_merge_can_have_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MergeError, match=message):
        settings(**changes)


def test_a_window_sums_in_double_precision() -> None:
    assert settings().sum_format == "fp32"
    assert settings(window=3).sum_format == "fp64"
    assert settings(window=3, options=TiesOptions(sum_format="int32")).sum_format == "int32"


def test_settings_survive_json() -> None:
    own = settings(decay=0.3, options=TiesOptions(scope="global"))
    assert MergeSettings.from_json(json.loads(json.dumps(own.to_json()))) == own
    assert not own.keeps_all
    assert settings(density=1).keeps_all
