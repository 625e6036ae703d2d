"""Where named arrays come from, and what those of two sources must have in common."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import final

import numpy as np

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.directories import entries_of, refuse_quantised
from gtr_turbo.merging.arrays.files import read_entry
from gtr_turbo.merging.arrays.kernels import Scratch
from gtr_turbo.merging.arrays.numbers import FLOATS

_NAMES_SHOWN = 3


class AbstractArraySource(ABC):
    """Named arrays that are read one at a time."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What messages call this source."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the names of the floating-point arrays, in a fixed order."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array without reading it."""

    @abstractmethod
    def kind(self, name: str) -> str:
        """Return the type of an array without reading it, as in a safetensors header."""

    @abstractmethod
    def read(self, name: str, scratch: Scratch) -> np.ndarray:
        """Return an array as one vector, in `scratch` or not; it must not be changed."""


@final
class ArrayFiles(AbstractArraySource):
    """The floating-point arrays of a model directory (or of one safetensors file)."""

    def __init__(self, path: Path, label: str | None = None) -> None:
        """Read the headers below `path`; `label` is what messages call it, None: the path.

        Raises:
            CheckpointError: there is no model, or a shard is missing or damaged.
            MergeError: the model is quantised, or stored as pickle.
        """
        self._label = label or str(path)
        entries = entries_of(path).items()
        self._entries = {name: entry for name, entry in entries if entry.kind in FLOATS}
        refuse_quantised(path)

    @property
    def label(self) -> str:
        """What messages call this model."""
        return self._label

    def names(self) -> tuple[str, ...]:
        """Return the names, file by file, in the order of their bytes."""
        return tuple(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array, from the header."""
        return self._entries[name].shape

    def kind(self, name: str) -> str:
        """Return the type of an array, from the header."""
        return self._entries[name].kind

    def read(self, name: str, scratch: Scratch) -> np.ndarray:
        """Return an array as one vector in `scratch`."""
        entry = self._entries[name]
        return read_entry(entry, scratch.bytes(entry.num_bytes)).reshape(-1)


def check_alike(first: AbstractArraySource, other: AbstractArraySource) -> None:
    """Raise MergeError unless `other` has the names and shapes of `first`."""
    check_same_names(first.names(), other.names(), other.label)
    for name in first.names():
        check_same_shape(name, first.shape(name), other.shape(name), other.label)


def check_same_names(expected: Collection[str], found: Iterable[str], label: str) -> None:
    """Raise MergeError unless the source called `label` has exactly the expected names."""
    names, wanted = dict.fromkeys(found), set(expected)
    missing = [name for name in expected if name not in names]
    extra = [name for name in names if name not in wanted]
    if missing or extra:
        parts = [
            f"{verb} {_shown(some)}"
            for verb, some in (("lacks", missing), ("has in addition", extra))
            if some
        ]
        raise MergeError(
            f"{label} {' and '.join(parts)}; every checkpoint has exactly the base's tensors.",
            hint="a missing tensor is not an unchanged one; check that all come from the same run.",
        )


def check_same_shape(
    name: str, expected: tuple[int, ...], found: tuple[int, ...], label: str
) -> None:
    """Raise MergeError unless a tensor of the source called `label` has the expected shape."""
    if found != expected:
        raise MergeError(
            f'tensor "{name}" of {label} has shape {found}, the base has {expected}.',
            hint="tensors are never cropped or padded; check vocabulary and adapter ranks.",
        )


def _shown(names: Sequence[str]) -> str:
    quoted = ", ".join(f'"{name}"' for name in names[:_NAMES_SHOWN])
    rest = len(names) - _NAMES_SHOWN
    return quoted if rest <= 0 else f"{quoted} and {rest} more"
