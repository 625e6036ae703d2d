"""Whole models on disk, in one safetensors file or in shards, as sources of named tensors."""

from collections.abc import Collection, Hashable
from pathlib import Path
from typing import final

import torch
from jaxtyping import Shaped
from torch import Tensor

from gtr_turbo.merging.arrays.directories import entries_of, refuse_quantised
from gtr_turbo.merging.arrays.directories import read_json as read_json
from gtr_turbo.merging.safetensors_files import Entry, read_entry
from gtr_turbo.merging.sources import AbstractTensorSource


@final
class ModelFiles(AbstractTensorSource):
    """The tensors of a model directory (or of one safetensors file), read one at a time."""

    def __init__(
        self, path: Path, label: str | None = None, named_like: Collection[str] = ()
    ) -> None:
        """Read the headers below `path`.

        Args:
            path: Model directory or safetensors file.
            label: What messages call it; None: the path.
            named_like: Names of the base; weights that were stored under their module names get the
                base's names where those can be told.

        Raises:
            CheckpointError: there is no model, or a shard is missing or damaged.
            MergeError: the model is quantised, or stored as pickle.
        """
        self._path = path
        self._label = label or str(path)
        self._entries = {
            find_stored_name(name, named_like) or name: Entry(stored)
            for name, stored in entries_of(path).items()
        }
        refuse_quantised(path)

    @property
    def label(self) -> str:
        """What messages call this model."""
        return self._label

    @property
    def path(self) -> Path:
        """Directory or file of the model."""
        return self._path

    def names(self) -> tuple[str, ...]:
        """Return the names of all tensors, file by file, in the order of their bytes."""
        return tuple(self._entries)

    def file_of(self, name: str) -> str:
        """Return the name of the file that holds a tensor."""
        return self._entries[name].path.name

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor, from the header."""
        return self._entries[name].shape

    def dtype(self, name: str) -> torch.dtype:
        """Return the type of a tensor, from the header."""
        return self._entries[name].dtype

    def storage(self, name: str) -> Hashable:
        """Return the name: a file holds each tensor once, and tied ones are left out of it."""
        return name

    def read(self, name: str) -> Shaped[Tensor, "..."]:
        """Return a tensor in memory of its own."""
        return read_entry(self._entries[name])


def find_stored_name(name: str, known: Collection[str]) -> str | None:
    """Return what a weight of the network is called in the files of its model, None if nowhere.

    Vision-language models are saved under older names than their modules have.
    """
    candidates = (
        name,
        name.replace("model.language_model.", "model.", 1),
        name.replace("model.language_model.", "language_model.model.", 1),
        name.replace("model.visual.", "visual.", 1),
        name.removeprefix("model."),
    )
    return next((candidate for candidate in candidates if candidate in known), None)
