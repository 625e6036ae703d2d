"""Tensors in safetensors files, read and written one at a time; `arrays.files` does the work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import final

import torch
from jaxtyping import Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays import files
from gtr_turbo.merging.tensors import DTYPES, KIND_OF, as_array, as_tensor

Announced = tuple[torch.dtype, Sequence[int]]
"""Type and shape of a tensor that is going to be written."""


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """Where one tensor lies in a file."""

    stored: files.Entry

    @property
    def path(self) -> Path:
        """The file."""
        return self.stored.path

    @property
    def dtype(self) -> torch.dtype:
        """Type of the tensor."""
        return DTYPES[self.stored.kind]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return self.stored.shape


def read_header(path: Path) -> dict[str, Entry]:
    """Return the tensors of a safetensors file by name, in the order of their bytes.

    Raises:
        CheckpointError: the file is missing, cut short or not a safetensors file.
        MergeError: a tensor has a type that merges do not read, such as float8.
    """
    return {name: Entry(stored) for name, stored in files.read_header(path).items()}


def read_entry(entry: Entry) -> Shaped[Tensor, "..."]:
    """Return one tensor, read into memory of its own."""
    return as_tensor(files.read_entry(entry.stored))


@final
class TensorWriter:
    """Writes one safetensors file whose tensors arrive in any order."""

    def __init__(
        self, path: Path, entries: Mapping[str, tuple[torch.dtype, Sequence[int]]]
    ) -> None:
        """Create `path` with the header for `entries` (type and shape by name)."""
        self._announced = {name: (dtype, tuple(shape)) for name, (dtype, shape) in entries.items()}
        self._writer = files.ArrayWriter(
            path, {name: (KIND_OF[dtype], shape) for name, (dtype, shape) in entries.items()}
        )

    def write(self, name: str, tensor: Shaped[Tensor, "..."]) -> None:
        """Write one tensor of the type and shape that were announced."""
        dtype, shape = self._announced[name]
        if (tensor.dtype, tuple(tensor.shape)) != (dtype, shape):
            raise MergeError(
                f'tensor "{name}" was announced as {dtype} {shape}, but is {tensor.dtype}'
                f" {tuple(tensor.shape)}.",
                hint="the announced type and shape come from the base.",
            )
        self._writer.write(name, as_array(tensor.detach().to("cpu").contiguous()))

    def __enter__(self) -> "TensorWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.__exit__(kind, error, traceback)

    def finish(self) -> None:
        """Flush the file to disk; MergeError when an announced tensor never came."""
        self._writer.finish()
