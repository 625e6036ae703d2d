"""One checkpoint's change of one tensor, read in small pieces and checked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import torch
from jaxtyping import Float, Float32, Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.ties import num_kept, select_threshold
from gtr_turbo.merging.weights import Real

CHUNK: Final = 32_768
"""Entries handled at a time: fits the second-level cache, and torch stays on the calling thread."""


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


def spans(num_entries: int) -> list[tuple[int, int]]:
    """Return the half-open pieces of at most CHUNK entries that cover `num_entries`."""
    return [(at, min(at + CHUNK, num_entries)) for at in range(0, num_entries, CHUNK)]


def flat_cpu(tensor: Shaped[Tensor, "..."]) -> Shaped[Tensor, " entry"]:
    """Return `tensor` detached, on the CPU, as one vector; it shares memory where it can."""
    return tensor.detach().to("cpu").reshape(-1)


def measure(change: Change, density: Real) -> Measure:
    """Return the trim threshold of `change` and its number of zeros.

    Raises:
        MergeError: the checkpoint holds NaN or an infinite value; tensor, checkpoint and count are
            in the message.
    """
    magnitude = torch.empty(change.num_entries, dtype=torch.float32)
    num_zero = fill_magnitude(change, magnitude)
    threshold = select_threshold(magnitude.numpy(), num_kept(change.num_entries, density))
    return Measure(threshold=threshold, num_zero=num_zero)


def fill_magnitude(change: Change, magnitude: Float32[Tensor, " entry"]) -> int:
    """Write |d| into `magnitude` and return how many entries are 0; MergeError on NaN or Inf."""
    num_nonzero = 0
    for start, stop in spans(change.num_entries):
        piece = change.chunk(start, stop, magnitude[start:stop]).abs_()
        if not math.isfinite(float(piece.max())):
            _refuse_non_finite(change)
        num_nonzero += int(torch.count_nonzero(piece))
    return change.num_entries - num_nonzero


def measure_globally(changes: Mapping[str, Change], density: Real) -> dict[str, Measure]:
    """Return measures with one threshold: that of all tensors laid end to end."""
    num_entries = sum(change.num_entries for change in changes.values())
    magnitude = torch.empty(num_entries, dtype=torch.float32)
    start, num_zero = 0, dict[str, int]()
    for name, change in changes.items():
        stop = start + change.num_entries
        num_zero[name] = fill_magnitude(change, magnitude[start:stop])
        start = stop
    threshold = select_threshold(magnitude.numpy(), num_kept(num_entries, density))
    return {name: Measure(threshold=threshold, num_zero=zeros) for name, zeros in num_zero.items()}


def apply_delta(
    base: Shaped[Tensor, " entry"], delta: Float32[Tensor, " entry"], dtype: torch.dtype
) -> Shaped[Tensor, " entry"]:
    """Return base + delta rounded once to `dtype`; where the delta is 0, the base bit for bit."""
    result = torch.empty(base.numel(), dtype=dtype)
    wide = torch.float64 if base.dtype == torch.float64 else torch.float32
    for start, stop in spans(base.numel()):
        reference, change = base[start:stop].to(wide), delta[start:stop]
        # -0.0 + 0.0 is 0.0, so an unchanged entry must not go through the sum.
        result[start:stop] = torch.where(change == 0.0, reference, reference + change)
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
