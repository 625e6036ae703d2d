"""Rule switches of a task: read, checked, and refused with the nearest name."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gtr_turbo.errors import ConfigError, nearest_hint

Rules = TypeVar("Rules", bound=BaseModel)


def read_rules(defaults: Rules, rules: Mapping[str, Any]) -> Rules:
    """Return the defaults, some of them overridden.

    Raises ConfigError for an unknown rule (naming the nearest) and for a bad value.
    """
    known = type(defaults).model_fields
    for name in rules:
        if name not in known:
            raise ConfigError(
                f'there is no rule named "{name}".', hint=nearest_hint(name, known, "rules")
            )
    try:
        return type(defaults).model_validate(defaults.model_dump() | dict(rules))
    except ValidationError as error:
        raise ConfigError(_first_fault(error)) from error


def _first_fault(error: ValidationError) -> str:
    """Return pydantic's first complaint in the project's form."""
    fault = error.errors(include_url=False)[0]
    message = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return message
    where = ".".join(str(part) for part in fault["loc"])
    return f"rule `{where}`: {message}, got {fault['input']!r}."
