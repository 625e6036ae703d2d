"""From options of a command line, and files, to the nested values of a configuration."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gtr_turbo.core.config import Config
from gtr_turbo.core.plain_yaml import parse_yaml
from gtr_turbo.errors import ConfigError, nearest_hint

_KEY = re.compile(r"\w+(\.\w+)*")


def parse_overrides(arguments: Sequence[str], options: Iterable[str]) -> list[tuple[str, Any]]:
    """Return (dotted key, YAML value) pairs of `--a.b VALUE` or `--a.b=VALUE`, in their order.

    A hyphen in a key counts as an underscore. `options` are the command's own ones, which an
    unknown option is compared with. Raises ConfigError for anything else.

    >>> parse_overrides(["--guidance.token-cap", "null", "--ppo.clip=0.2"], [])
    [('guidance.token_cap', None), ('ppo.clip', 0.2)]
    """
    known = [f"--{name.replace('_', '-')}" for name in (*options, *Config.model_fields)]
    pairs: list[tuple[str, Any]] = []
    rest = list(arguments)
    while rest:
        flag, equals, text = rest.pop(0).partition("=")
        key = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or not _KEY.fullmatch(key):
            raise ConfigError(
                f"`{flag}` is no option.",
                hint="configuration fields are given as --section.field VALUE.",
            )
        if "." not in key and key not in Config.model_fields:
            raise ConfigError(
                f"there is no option `{flag}`.", hint=nearest_hint(flag, known, "options")
            )
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise ConfigError(f"`{flag}` needs a value.", hint=f"write {flag} VALUE.")
            text = rest.pop(0)
        pairs.append((key, parse_yaml(text, f"the value of `{flag}`")))
    return pairs


def put(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key in nested `values`; a mapping is merged into the section that is there.

    Raises ConfigError for anything else in the place of a section.
    """
    for part in reversed(key.split(".")):
        value = {part: value}
    merge_into(values, value)


def merge_into(values: dict[str, Any], other: Mapping[str, Any], within: str = "") -> None:
    """Put `other` into `values`, section by section; `within` is the dotted name of `values`.

    Raises ConfigError where a section would be replaced by something that is none: a section
    without any key, say, would drop what a preset says there.
    """
    for key, value in other.items():
        if not isinstance(values.get(key), dict):
            values[key] = value
        elif isinstance(value, Mapping):
            merge_into(values[key], value, f"{within}{key}.")
        else:
            raise ConfigError(
                f"`{within}{key}` must be a mapping of fields to values, got {value!r:.80}.",
                hint="leave the section out, or give it a field.",
            )
