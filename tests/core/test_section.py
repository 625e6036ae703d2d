"""What every part of the configuration shares."""

import pytest
from pydantic import ValidationError

from gtr_turbo.core.section import Section


class Part(Section):
    """A part."""

    size: float = 1.0
    """How large it is."""


def test_a_part_cannot_be_changed_after_it_is_made() -> None:
    part = Part(size=2.0)
    with pytest.raises(ValidationError, match="frozen"):
        part.size = 3.0


def test_unknown_keys_and_infinities_are_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        Part.model_validate({"sise": 1.0})
    with pytest.raises(ValidationError, match="finite"):
        Part(size=float("inf"))


def test_a_fields_text_is_its_help() -> None:
    assert Part.model_fields["size"].description == "How large it is."
