"""What can be the base URL of an API, told before anybody is asked."""

import re
from typing import Final
from urllib.parse import urlsplit

from gtr_turbo.errors import ConfigError

MAX_CHARACTERS: Final = 2_000
"""Longer ones are refused by many servers."""

_PLACE = re.compile(
    r"(.*@)?"  # user and password
    r"(\[[0-9A-Fa-f:.]+\]|[\w-]{1,63}(\.[\w-]{1,63})*\.?)"  # an IPv6 address, or any other
    r"(:\d*)?",  # the port
    re.ASCII,
)


def refuse_address(option: str, url: str, *words: str) -> None:
    """Raise ConfigError for the value of an option that is no address and none of the words."""
    if url not in words and not is_address(url):
        others = "".join(f' or "{word}"' for word in words)
        raise ConfigError(
            f'`{option}` must be an http or https address{others}, got "{url}".',
            hint="give the base URL of the API, for example https://api.openai.com/v1.",
        )


def is_address(url: str) -> bool:
    """Return whether a text is an http or https address with a host that can be looked up.

    >>> is_address("http://localhost:8000/v1"), is_address("http://localhost:80x/v1")
    (True, False)
    """
    if not (url.isascii() and url.isprintable()) or " " in url or len(url) > MAX_CHARACTERS:
        return False
    try:
        parts = urlsplit(url)
        is_port = parts.port != 0
    except ValueError:  # no IPv6 address, or a port beyond the last one
        return False
    return parts.scheme in ("http", "https") and is_port and bool(_PLACE.fullmatch(parts.netloc))
