"""One checkpoint's change of one tensor, read in small pieces and checked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Float32, Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.kernels import CHUNK, Scratch, count_zeros, spans
from gtr_turbo.merging.ties import num_kept, select_threshold
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

    def chunk(
        self, start: int, stop: int, buffer: Float32[Tensor, " _"]
    ) -> Float32[Tensor, " entry"]:
        """Return entries [start, stop) of the change, written into the head of `buffer`."""
        head = buffer[: stop - start]
        part = self.checkpoint[start:stop]
        if self.base is None:
            return head.copy_(part)
        reference = self.base[start:stop]
        if torch.float64 in (part.dtype, reference.dtype):
            return head.copy_(part.to(torch.float64) - reference)
        # Through float32 even for two bfloat16 tensors, whose own difference would be rounded.
        return head.copy_(part).sub_(reference)

    def look(
        self, start: int, stop: int, buffer: Float32[Tensor, " _"]
    ) -> Float32[Tensor, " entry"]:
        """Return entries [start, stop), which must not be changed: a view where there is one."""
        if self.base is None and self.checkpoint.dtype == torch.float32:
            return self.checkpoint[start:stop]
        return self.chunk(start, stop, buffer)

    def replaced_by(self, values: Shaped[Tensor, " entry"]) -> "Change":
        """Return a change of the same name and origin whose values are `values`."""
        return Change(name=self.name, label=self.label, checkpoint=values, base=None)

    def whole(self) -> Float32[Tensor, " entry"]:
        """Return the change as one new float32 vector."""
        result = torch.empty(self.num_entries, dtype=torch.float32)
        for start, stop in spans(self.num_entries):
            self.chunk(start, stop, result[start:stop])
        return result


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is known of a change before anything is added."""

    threshold: Real
    """Magnitude from which entries are kept."""
    num_zero: int
    """Entries that did not change at all."""
    largest: Real
    """The largest magnitude."""


def flat_cpu(tensor: Shaped[Tensor, "..."]) -> Shaped[Tensor, " entry"]:
    """Return `tensor` detached, on the CPU, as one vector; it shares memory where it can."""
    return tensor.detach().to("cpu").reshape(-1)


def measure(change: Change, density: Real, scratch: Scratch | None = None) -> Measure:
    """Return the trim threshold of `change` and its number of zeros.

    Nothing but one piece is held when `density` is 0 or 1; otherwise `scratch` lends the memory.

    Raises:
        MergeError: the checkpoint holds NaN or an infinite value; tensor, checkpoint and count are
            in the message.
    """
    kept = num_kept(change.num_entries, density)
    if kept in (0, change.num_entries):
        num_zero, largest = fill_magnitude(change, None)
        threshold = select_threshold(np.empty(0, np.float32), kept)
        return Measure(threshold=threshold, num_zero=num_zero, largest=largest)
    magnitude = (scratch or Scratch()).floats(change.num_entries)
    num_zero, largest = fill_magnitude(change, magnitude)
    threshold = select_threshold(magnitude.numpy(), kept)
    return Measure(threshold=threshold, num_zero=num_zero, largest=largest)


def fill_magnitude(
    change: Change, magnitude: Float32[Tensor, " entry"] | None
) -> tuple[int, float]:
    """Write |d| into `magnitude`, if given; return how many d are 0, and the largest |d|.

    Raises:
        MergeError: an entry of the checkpoint or the base is NaN or infinite.
    """
    room = min(CHUNK, change.num_entries)
    buffer, flag = torch.empty(room), torch.empty(room, dtype=torch.bool)
    num_zero, largest = 0, 0.0
    for start, stop in spans(change.num_entries):
        own = buffer if magnitude is None else magnitude[start:stop]
        piece = change.chunk(start, stop, own).abs_()
        here = float(piece.amax())
        if not math.isfinite(here):
            _refuse_non_finite(change)
        largest = max(largest, here)
        num_zero += count_zeros(piece, flag)
    return num_zero, largest


def measure_globally(changes: Mapping[str, Change], density: Real) -> dict[str, Measure]:
    """Return measures with one threshold: that of all tensors laid end to end."""
    num_entries = sum(change.num_entries for change in changes.values())
    magnitude = torch.empty(num_entries, dtype=torch.float32)
    start, found = 0, dict[str, tuple[int, float]]()
    for name, change in changes.items():
        stop = start + change.num_entries
        found[name] = fill_magnitude(change, magnitude[start:stop])
        start = stop
    threshold = select_threshold(magnitude.numpy(), num_kept(num_entries, density))
    return {
        name: Measure(threshold=threshold, num_zero=num_zero, largest=largest)
        for name, (num_zero, largest) in found.items()
    }


def apply_delta(
    base: Shaped[Tensor, " entry"], delta: Float32[Tensor, " entry"], dtype: torch.dtype
) -> Shaped[Tensor, " entry"]:
    """Return base + delta rounded once to `dtype`; where the delta is 0, the base bit for bit."""
    result = torch.empty(base.numel(), dtype=dtype)
    wide = torch.float64 if base.dtype == torch.float64 else torch.float32
    room = min(CHUNK, base.numel())
    summed, flag = torch.empty(room, dtype=wide), torch.empty(room, dtype=torch.bool)
    for start, stop in spans(base.numel()):
        reference, change = base[start:stop], delta[start:stop]
        piece = summed[: stop - start].copy_(reference)
        has_zeros = wide == torch.float32 and count_zeros(piece, flag) > 0
        piece.add_(change)
        if has_zeros or wide == torch.float64:
            # -0.0 + 0.0 is 0.0, so an unchanged zero must not go through the sum.
            piece = torch.where(change == 0.0, reference.to(wide), piece)
        result[start:stop] = piece
    return result


def _refuse_non_finite(change: Change) -> None:
    culprits: list[tuple[str, Float[Tensor, " entry"]]] = [(change.label, change.checkpoint)]
    if change.base is not None:
        culprits.insert(0, ("the base", change.base))
    for label, values in culprits:
        num_bad = int((~torch.isfinite(values)).sum())
        if num_bad:
            raise MergeError(
                f'tensor "{change.name}" of {label} has {num_bad} NaN or infinite'
                f" {'entry' if num_bad == 1 else 'entries'} of {values.numel()}.",
                hint="leave this checkpoint out, and find the update that broke it.",
            )
    raise MergeError(
        f'the change of tensor "{change.name}" in {change.label} overflows float32.',
        hint="weights this large cannot come from a working model; check the base.",
    )
