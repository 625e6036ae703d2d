"""Pydantic's complaints in our form: the field by its dotted name, what it must be, what it was."""

import reprlib
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from gtr_turbo.errors import ConfigError, nearest_hint

_MAX_BITS = 63
"""Seeds and counts beyond it cannot be handed to torch or written by every JSON reader."""
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80  # a value is shown, but never a page of it

Path = Sequence[int | str]


def explain(error: ValidationError, root: type[BaseModel]) -> ConfigError:
    """Return the first complaint about a nested model as a ConfigError.

    An unknown key gets the nearest known one of its section as a hint, a bad value the field's
    description. A ConfigError that a validator raised comes back as it is.
    """
    first, *others = error.errors(include_url=False)
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, ConfigError):
        return inner
    path = first["loc"]
    if first["type"] == "extra_forbidden":
        section = section_at(path[:-1], root) or root
        owner = f"`{_dotted(path[:-1])}`" if path[:-1] else "the configuration"
        return ConfigError(
            f"there is no configuration key `{_dotted(path)}`.",
            hint=nearest_hint(str(path[-1]), section.model_fields, f"keys of {owner}"),
        )
    depth = next((n for n in range(len(path), 0, -1) if field_at(path[:n], root)), len(path))
    field = field_at(path[:depth], root)
    message = first["msg"].replace("Input should be", "must be", 1)
    if first["type"] == "model_type":
        message = "must be a section with its fields below it"
    elif len(path) > depth + 1 and path[-1] != "[key]":  # a member of the union of rule values
        message = "must be a boolean, a finite number, a text, or a list of numbers or texts"
    elif field is not None and get_origin(field.annotation) in (Union, UnionType):
        # Each member of the union complains, under a name of its own behind the field's.
        path = path[:depth]
        also = [e["msg"] for e in others if e["loc"][:depth] == path]
        message = ", or ".join([message, *(text.removeprefix("Input should be ") for text in also)])
    return ConfigError(
        f"`{_dotted(path[: depth + 1])}` {message}, got {_SHORT.repr(first['input'])}.",
        hint=None if field is None else field.description,
    )


def refuse_lookalikes(values: Mapping[str, Any], root: type[BaseModel]) -> None:
    """Raise ConfigError for what pydantic would take for a number, but nobody meant as one.

    These are booleans (`yes` would be 1) and whole numbers that need more than 64 bits.
    """
    for owner, fields in values.items():
        for key, value in fields.items() if isinstance(fields, Mapping) else ():
            field = field_at((owner, key), root)
            if isinstance(value, bool) and field is not None and field.annotation is not bool:
                raise ConfigError(
                    f"`{owner}.{key}` is no switch, got {str(value).lower()}.",
                    hint="YAML reads yes, no, on and off as booleans; put a text in quotes.",
                )
            if isinstance(value, int) and value.bit_length() > _MAX_BITS:
                raise ConfigError(f"`{owner}.{key}` must fit into 64 bits, got a larger number.")


def section_at(path: Path, root: type[BaseModel]) -> type[BaseModel] | None:
    """Return the section that a path of keys leads to, None when it leads to none."""
    section = root
    for key in path:
        field = section.model_fields.get(str(key))
        annotation = None if field is None else field.annotation
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return None
        section = annotation
    return section


def field_at(path: Path, root: type[BaseModel]) -> FieldInfo | None:
    """Return the field that a path of keys leads to, None when it leads to none."""
    section = section_at(path[:-1], root)
    return None if section is None else section.model_fields.get(str(path[-1]))


def _dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)
