import sys
from types import ModuleType

import pytest

from gtr_turbo.core.lazy import lazy_names


@pytest.fixture
def package() -> ModuleType:
    made = ModuleType("some_package")
    load, names = lazy_names(vars(made), {"json.decoder": ("JSONDecoder",), "this": ("s",)})
    made.__dict__.update(__getattr__=load, __dir__=names)
    return made


def test_a_name_is_loaded_at_its_first_use_and_kept(package: ModuleType) -> None:
    assert "JSONDecoder" not in vars(package)
    found = package.JSONDecoder
    assert vars(package)["JSONDecoder"] is found is sys.modules["json.decoder"].JSONDecoder


def test_names_are_listed_without_loading_them(package: ModuleType) -> None:
    sys.modules.pop("this", None)
    assert {"JSONDecoder", "s", "__name__"} <= set(dir(package))
    assert "this" not in sys.modules


def test_an_unknown_name_is_no_attribute(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'some_package' has no attribute 'other'"):
        _ = package.other
