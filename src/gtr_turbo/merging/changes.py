"""One checkpoint's change of one tensor: `arrays.changes` for tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float32, Shaped
from torch import Tensor

from gtr_turbo.merging.arrays import changes as arrays
from gtr_turbo.merging.arrays.changes import ArrayChange, Measure
from gtr_turbo.merging.arrays.files import KINDS
from gtr_turbo.merging.arrays.kernels import Scratch, spans
from gtr_turbo.merging.tensors import KIND_OF, as_array, as_tensor
from gtr_turbo.merging.weights import Real


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """checkpoint - base of one tensor, in float32; the checkpoint itself where `base` is None."""

    name: str
    label: str
    """Which checkpoint this is, for messages."""
    checkpoint: Shaped[Tensor, " entry"]
    base: Shaped[Tensor, " entry"] | None

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return self.checkpoint.numel()

    def arrays(self) -> ArrayChange:
        """Return the same change over the memory of the same tensors."""
        return ArrayChange(
            name=self.name,
            label=self.label,
            checkpoint=as_array(self.checkpoint),
            base=None if self.base is None else as_array(self.base),
        )

    def replaced_by(self, values: Shaped[Tensor, " entry"]) -> "Change":
        """Return a change of the same name and origin whose values are `values`."""
        return Change(name=self.name, label=self.label, checkpoint=values, base=None)

    def chunk(
        self, start: int, stop: int, buffer: Float32[Tensor, " _"]
    ) -> Float32[Tensor, " entry"]:
        """Return entries [start, stop) of the change, written into the head of `buffer`."""
        self.arrays().chunk(start, stop, as_array(buffer))
        return buffer[: stop - start]

    def whole(self) -> Float32[Tensor, " entry"]:
        """Return the change as one new float32 vector."""
        result = torch.empty(self.num_entries, dtype=torch.float32)
        own, target = self.arrays(), as_array(result)
        for start, stop in spans(self.num_entries):
            own.chunk(start, stop, target[start:stop])
        return result


def measure(change: Change, density: Real, scratch: Scratch | None = None) -> Measure:
    """Return the trim threshold of `change`, its number of zeros and its largest magnitude.

    Raises:
        MergeError: the checkpoint holds NaN or an infinite value; tensor, checkpoint and count are
            in the message.
    """
    return arrays.measure(change.arrays(), density, scratch)


def measure_globally(changes: Mapping[str, Change], density: Real) -> dict[str, Measure]:
    """Return measures with one threshold: that of all tensors laid end to end."""
    own = {name: change.arrays() for name, change in changes.items()}
    return arrays.measure_globally(own, density)


def apply_delta(
    base: Shaped[Tensor, " entry"],
    delta: Float32[Tensor, " entry"],
    dtype: torch.dtype,
    name: str,
) -> Shaped[Tensor, " entry"]:
    """Return base + delta rounded once to `dtype`; where the delta is 0, the base bit for bit.

    Raises:
        MergeError: the sum is too large for `dtype`; tensor `name` is in the message.
    """
    kind = KINDS[KIND_OF[dtype]]
    return as_tensor(arrays.apply_delta(as_array(base), as_array(delta), kind, name))
