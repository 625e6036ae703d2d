"""The configuration's fields as texts: what can be set, what it is set to, what it means."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, final, get_args, get_origin

from gtr_turbo.core.config import Config


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FieldText:
    """One field of a configuration."""

    key: str
    """Dotted name, as in `guidance.coef`."""
    value: str
    """What it is set to, as it would be written in YAML."""
    help: str
    """What it means, in one line."""
    choices: tuple[str, ...]
    """Every allowed value where they can be listed, else empty."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SectionText:
    """One section of a configuration."""

    name: str
    help: str
    fields: tuple[FieldText, ...]


def describe(config: Config) -> list[SectionText]:
    """Return the sections of a configuration in their order, with a text for every field."""
    sections: list[SectionText] = []
    for name in Config.model_fields:
        section = getattr(config, name)
        values = section.model_dump(mode="json")
        fields = tuple(
            FieldText(
                key=f"{name}.{key}",
                value=_yaml(values[key]),
                help=" ".join((field.description or "").split()),
                choices=_choices(field.annotation),
            )
            for key, field in type(section).model_fields.items()
        )
        help_text = (type(section).__doc__ or "").partition("\n")[0]
        sections.append(SectionText(name=name, help=help_text, fields=fields))
    return sections


def option_lines(section: SectionText, width: int) -> Iterator[tuple[str, str]]:
    """Yield (option with its value, help with choices) of each field of a section.

    A value that would make the option longer than `width` characters goes to the end of the help.
    """
    for field in section.fields:
        option, text = f"  --{field.key} {field.value}", field.help
        if field.choices:
            text += f" ({' | '.join(field.choices)})"
        if len(option) > width:
            option, text = f"  --{field.key}", f"{text} = {field.value}"
        yield option, text


def _choices(annotation: Any) -> tuple[str, ...]:
    """Return the members of a Literal, of a tuple of one, or nothing."""
    if get_origin(annotation) is Literal:
        return tuple(str(choice) for choice in get_args(annotation))
    if annotation is bool:
        return ("true", "false")
    if get_origin(annotation) is tuple:
        return _choices(get_args(annotation)[0])
    return ()


def _yaml(value: Any) -> str:
    """Return a JSON value in YAML's flow form on one line; strings and keys stand without quotes.

    >>> _yaml({"a": [1, None], "b": "x"})
    '{a: [1, null], b: x}'
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_yaml(part) for part in value) + "]"
    return value if isinstance(value, str) else json.dumps(value)
