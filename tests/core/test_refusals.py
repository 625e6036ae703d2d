from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gtr_turbo.core.refusals import explain, field_at, refuse_lookalikes, section_at
from gtr_turbo.errors import ConfigError


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    size: int = Field(default=1, ge=1)
    """How large."""
    name: str = "x"
    is_on: bool = False

    @model_validator(mode="after")
    def _odd(self) -> "Inner":
        if self.size == 13:
            raise ConfigError("13 brings bad luck.", hint="take 12.")
        return self


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    inner: Inner = Inner()
    number: int = 0


def explained(values: dict[Any, Any]) -> ConfigError:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(values)
    return explain(caught.value, Outer)


def test_a_bad_value_is_named_and_its_field_described() -> None:
    error = explained({"inner": {"size": 0}})
    assert error.message == "`inner.size` must be greater than or equal to 1, got 0."
    assert error.hint == "How large."


def test_a_field_without_a_description_gets_no_hint() -> None:
    assert explained({"number": "x"}).hint is None


def test_an_unknown_key_is_compared_with_its_own_section() -> None:
    error = explained({"inner": {"nam": 1}})
    assert error.message == "there is no configuration key `inner.nam`."
    assert error.hint == 'did you mean "name"? Known keys of `inner`: is_on, name, size.'
    assert explained({"nmber": 1}).hint == (
        'did you mean "number"? Known keys of the configuration: inner, number.'
    )


def test_a_section_that_is_none_is_called_one() -> None:
    assert explained({"inner": 3}).message == (
        "`inner` must be a section with its fields below it, got 3."
    )


def test_a_validators_own_error_comes_back_whole() -> None:
    error = explained({"inner": {"size": 13}})
    assert (error.message, error.hint) == ("13 brings bad luck.", "take 12.")


def test_a_large_value_is_shown_in_part() -> None:
    message = explained({"inner": {"name": ["x" * 10_000] * 50}}).message
    assert len(message) < 800


@pytest.mark.parametrize(
    ("key", "value"), [("size", True), ("size", False), ("name", True), ("size", 2**63)]
)
def test_lookalikes_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"`inner.{key}`"):
        refuse_lookalikes({"inner": {key: value}}, Outer)


def test_what_is_meant_as_it_stands_passes() -> None:
    refuse_lookalikes(
        {
            "inner": {"is_on": True, "size": 2**63 - 1, "name": "yes"},
            "number": 3,
            "other": {"x": 1},
        },
        Outer,
    )
    assert parse_ok({"inner": {"is_on": True}}).inner.is_on


def parse_ok(values: dict[str, Any]) -> Outer:
    return Outer.model_validate(values)


def test_paths_lead_to_sections_and_fields() -> None:
    assert section_at((), Outer) is Outer
    assert section_at(("inner",), Outer) is Inner
    assert section_at(("inner", "size"), Outer) is None
    assert section_at(("nothing",), Outer) is None
    found = field_at(("inner", "size"), Outer)
    assert found is not None
    assert found.description == "How large."
    assert field_at(("inner", "size", 0), Outer) is None
