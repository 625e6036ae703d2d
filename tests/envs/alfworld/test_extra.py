import json

import pytest

from gtr_turbo.envs.alfworld.extra import load
from gtr_turbo.errors import ConfigError


def test_what_is_there_is_returned() -> None:
    assert load("json") is json


def test_what_is_missing_is_named_with_the_way_to_get_it() -> None:
    with pytest.raises(ConfigError, match=r"(?s)no_such_engine.*gtr-turbo\[alfworld\]"):
        load("no_such_engine")
