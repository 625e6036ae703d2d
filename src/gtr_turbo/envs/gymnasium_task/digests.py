"""A hash of anything that an environment observes."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def observation_hash(value: Any) -> str:
    """Return the sha256 of an observation: arrays, numbers, texts, and lists and mappings of them.

    Of anything else only the type counts.
    """
    digest = hashlib.sha256()
    for part in _parts(value):
        digest.update(part)
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    """Yield the bytes of a value, so marked that different values have different bytes."""
    if isinstance(value, Mapping):
        yield f"{{{len(value)}".encode()
        for key in sorted(value, key=str):
            yield from _parts(str(key))
            yield from _parts(value[key])
    elif isinstance(value, list | tuple):
        yield f"[{len(value)}".encode()
        for part in value:
            yield from _parts(part)
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        yield f"a{array.dtype}{array.shape}".encode()
        yield np.ascontiguousarray(array).tobytes() if array.dtype != object else b""
    elif value is None or isinstance(value, bool | int | float):
        yield f"n{value!r};".encode()
    elif isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        yield f"s{len(text)};".encode() + text
    else:
        yield f"o{type(value).__name__};".encode()
