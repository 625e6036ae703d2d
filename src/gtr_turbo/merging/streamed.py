"""A running merge of tensors whose sums live on disk; `arrays.merge` for every kind of source."""

from collections.abc import Iterator
from pathlib import Path
from typing import final

import numpy as np
from torch import Tensor

from gtr_turbo.merging.arrays.kernels import Scratch
from gtr_turbo.merging.arrays.merge import ArrayMerge
from gtr_turbo.merging.arrays.sources import AbstractArraySource
from gtr_turbo.merging.naming import Layout, check_names, layout_of
from gtr_turbo.merging.settings import MergeSettings
from gtr_turbo.merging.sources import AbstractTensorSource
from gtr_turbo.merging.tensor_sums import TensorSumsMaker
from gtr_turbo.merging.tensors import KIND_OF, as_array, as_tensor, flat_cpu
from gtr_turbo.merging.weights import Real


@final
class StreamedMerge:
    """A TIES or linear merge with its sums in a directory."""

    def __init__(self, directory: Path, settings: MergeSettings) -> None:
        """Open the state in `directory`, or start an empty one there.

        Raises:
            MergeError: the state was made with other settings, or the settings ask for a window or
                a global threshold, which need more than one tensor at a time.
        """
        self._merge = ArrayMerge(directory, settings, TensorSumsMaker(settings))

    @property
    def names_inside(self) -> tuple[str, ...]:
        """Names of the checkpoints inside, oldest first."""
        return self._merge.names_inside

    def add(
        self,
        base: AbstractTensorSource | None,
        checkpoint: AbstractTensorSource,
        *,
        weight: Real = 1.0,
        name: str | None = None,
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (name, merged tensor) with `checkpoint` inside; the new state counts at the end.

        A caller that stops early leaves the state as it was. Without a base, checkpoints are
        changes and so is what is yielded. Tied names are yielded once, under their first name.

        Raises:
            MergeError: the checkpoint must not be merged.
            CheckpointError: the sums on disk do not fit the checkpoint.
        """
        layout = layout_of(checkpoint if base is None else base)
        check_names(layout, checkpoint)
        own = None if base is None else _Arrays(base, layout)
        stream = self._merge.add(own, _Arrays(checkpoint, layout), weight=weight, name=name)
        for key, merged in stream:
            yield key, as_tensor(merged.copy())


@final
class _Arrays(AbstractArraySource):
    """The floating-point tensors of a source, each shared storage once, as arrays."""

    def __init__(self, source: AbstractTensorSource, layout: Layout) -> None:
        self._source = source
        self._layout = layout

    @property
    def label(self) -> str:
        """What messages call the source."""
        return self._source.label

    def names(self) -> tuple[str, ...]:
        """Return the names of the tensors that are merged."""
        return self._layout.merged_names

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self._source.shape(name)

    def kind(self, name: str) -> str:
        """Return the type of a tensor, as in a safetensors header."""
        return KIND_OF[self._source.dtype(name)]

    def read(self, name: str, scratch: Scratch) -> np.ndarray:
        """Return the tensor's own memory as one vector."""
        return as_array(flat_cpu(self._source.read(name)))
