"""YAML from people: data only, no key twice, and every refusal a ConfigError."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, final

import yaml

from gtr_turbo.errors import ConfigError

MAX_YAML_BYTES = 1_000_000
"""A configuration is a page or two; anything larger is a mistake or an attack."""

_FAULTS = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)
"""What reading text can raise. Only the first is documented; the others come from tagged scalars
(``!!bool x``), impossible dates, numbers of thousands of digits and very deep nesting."""


@final
class _StrictLoader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        for key_node, _ in pairs:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise ConfigError(
                    f'a YAML mapping gives the key "{key}" twice (line'
                    f" {key_node.start_mark.line + 1}).",
                    hint="keep one of the two.",
                )
            if isinstance(key, Hashable):
                seen.add(key)
        return yaml.SafeLoader.construct_mapping(self, node, deep)


def parse_yaml(text: str, source: str) -> Any:
    """Return the value that a YAML text spells; `source` names the text in errors.

    Raises ConfigError for text that is not YAML, and for a mapping with a key given twice.

    >>> parse_yaml("{coef: 0.5, kind: kl}", "an example")
    {'coef': 0.5, 'kind': 'kl'}
    """
    try:
        loader = _StrictLoader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except ConfigError:
        raise
    except _FAULTS as error:
        raise ConfigError(f"{source} is not plain YAML: {_in_one_line(error)}") from None


def read_text(path: Path) -> str:
    """Return the text of a configuration file.

    Raises ConfigError when the file is missing, too large or not UTF-8.
    """
    if not path.is_file():
        raise ConfigError(f"there is no configuration file {path}.")
    size = path.stat().st_size
    if size > MAX_YAML_BYTES:
        raise ConfigError(f"{path} has {size} bytes; at most {MAX_YAML_BYTES} are read.")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: byte {error.start} is in the way.") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises ConfigError when the file is missing, too large, not UTF-8, not YAML or not a mapping.
    """
    values = parse_yaml(read_text(path), str(path))
    if not isinstance(values, dict):
        raise ConfigError(
            f"{path} must hold a mapping, got {type(values).__name__}.",
            hint="write sections with their fields below them, as `train --dry-run` prints them.",
        )
    return values


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one mapping with dotted keys.

    >>> flatten({"a": {"b": 1}, "c": [2]})
    {'a.b': 1, 'c': [2]}
    """
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _in_one_line(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply."
    return " ".join(str(error).split()).rstrip(".") + "."
