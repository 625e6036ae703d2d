"""Where named tensors come from: a mapping, or anything that is read one at a time."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, final

import torch
from jaxtyping import Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError


class AbstractTensorSource(ABC):
    """Named tensors that are read one at a time."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What messages call this source."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the names of all tensors, in a fixed order."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor without reading it."""

    @abstractmethod
    def dtype(self, name: str) -> torch.dtype:
        """Return the type of a tensor without reading it."""

    @abstractmethod
    def storage(self, name: str) -> Hashable:
        """Return a key that is equal for names which share their storage, else of its own."""

    @abstractmethod
    def read(self, name: str) -> Shaped[Tensor, "..."]:
        """Return the tensor; it may share memory with the source and must not be changed."""


@final
class InMemory(AbstractTensorSource):
    """A mapping from names to tensors."""

    def __init__(self, tensors: Mapping[str, Tensor], label: str) -> None:
        """Wrap `tensors`, which are not copied.

        Each is asked for once and held: where a mapping makes its tensors when they are asked for,
        two of them could take the same memory one after the other and pass for tied.

        Raises MergeError when a value is no tensor.
        """
        found: dict[str, Any] = dict(tensors)
        for name, value in found.items():
            if not isinstance(value, Tensor):
                raise MergeError(
                    f'"{name}" of {label} is a {type(value).__name__}, not a tensor.',
                    hint="give tensors by name, as a state dict has them.",
                )
        self._tensors: dict[str, Tensor] = found
        self._label = label

    @property
    def label(self) -> str:
        """What messages call this mapping."""
        return self._label

    def names(self) -> tuple[str, ...]:
        """Return the names in the order of the mapping."""
        return tuple(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return tuple(self._tensors[name].shape)

    def dtype(self, name: str) -> torch.dtype:
        """Return the type of a tensor."""
        return self._tensors[name].dtype

    def storage(self, name: str) -> Hashable:
        """Return where the tensor lies in memory; empty tensors share nothing."""
        tensor = self._tensors[name]
        if tensor.numel() == 0:
            return name
        place = (str(tensor.device), tensor.data_ptr())
        return (place, tuple(tensor.shape), tensor.stride(), tensor.dtype)

    def read(self, name: str) -> Shaped[Tensor, "..."]:
        """Return the tensor itself, detached."""
        return self._tensors[name].detach()


def checkpoint_label(name: str) -> str:
    """Return what messages call the checkpoint `name`."""
    return name if name.startswith("checkpoint") else f'checkpoint "{name}"'
