"""Running sums of one tensor: add, subtract, decay and finish in time that does not depend on K.

TIES trims each change by itself and the base is fixed, so everything else about a checkpoint enters
through four sums per entry: the mass and the weight of its positive and of its negative changes.
The elected sign and the disjoint mean follow from them exactly.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import torch
from jaxtyping import Float, Float32, Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.counted import CountedSums
from gtr_turbo.merging.arrays.kernels import CHUNK, count_zeros, spans
from gtr_turbo.merging.changes import Change
from gtr_turbo.merging.formats import SumFormat
from gtr_turbo.merging.sign_kernel import SignKernel
from gtr_turbo.merging.tensors import as_array, as_tensor
from gtr_turbo.merging.weights import NEGLIGIBLE_SHARE, Real

_COUNT_DTYPES: Final = (torch.uint8, torch.int16, torch.int32)
_FORGOTTEN_SHARE: Final = 2.0**-40
_WEIGHT_SLACK: Final = 1e-5


@final
@dataclass(slots=True)
class MergeStatistics:
    """Sums over all entries of a merged change, for `diagnostics`."""

    num_entries: int = 0
    num_zero: int = 0
    merged_square: Real = 0.0
    mean_square: Real = 0.0
    product: Real = 0.0

    def include(self, merged: Float32[Tensor, " entry"], mean: Float32[Tensor, " entry"]) -> None:
        """Add a piece of the merged change and of the plain mean of the kept changes."""
        self.num_entries += merged.numel()
        self.num_zero += count_zeros(as_array(merged))
        self.merged_square += float(torch.dot(merged, merged))
        self.mean_square += float(torch.dot(mean, mean))
        self.product += float(torch.dot(merged, mean))

    def summary(self) -> dict[str, float]:
        """Return `zero_fraction`, `norm_ratio` (merged / mean) and `cosine_to_mean`.

        The mean is that of the kept changes. Where it is 0 everywhere, the ratio and the cosine are
        1 if the merged change is 0 as well, else infinite and 0.
        """
        merged_norm, mean_norm = math.sqrt(self.merged_square), math.sqrt(self.mean_square)
        both = merged_norm * mean_norm
        alike = 1.0 if merged_norm == mean_norm else math.inf
        return {
            "zero_fraction": self.num_zero / self.num_entries if self.num_entries else 0.0,
            "norm_ratio": merged_norm / mean_norm if mean_norm > 0.0 else alike,
            "cosine_to_mean": self.product / both if both > 0.0 else float(alike == 1.0),
        }


class AbstractSums(ABC):
    """The running sums of one tensor."""

    @abstractmethod
    def add(self, change: Change, raw_weight: Real, threshold: Real) -> None:
        """Add raw_weight times the kept part of `change`."""

    @abstractmethod
    def subtract(self, change: Change, raw_weight: Real, threshold: Real) -> None:
        """Take out again what `add` with the same arguments put in."""

    @abstractmethod
    def check_contains(self, change: Change, raw_weight: Real, threshold: Real) -> None:
        """Raise MergeError when `change` cannot be part of these sums."""

    @abstractmethod
    def check_room(self, step: Real) -> None:
        """Raise MergeError when a sum could leave its range by adding up to `step`."""

    @abstractmethod
    def multiply(self, factor: Real, raw_total: Real) -> None:
        """Multiply all sums by `factor`; `raw_total` is the total weight after that."""

    @abstractmethod
    def clear(self) -> None:
        """Set all sums to 0."""

    @abstractmethod
    def finish(
        self, raw_total: Real, statistics: MergeStatistics | None
    ) -> Float32[Tensor, " entry"]:
        """Return the merged change; `raw_total` is the weight of all checkpoints inside."""

    @abstractmethod
    def tensors(self) -> dict[str, Shaped[Tensor, " entry"]]:
        """Return the sums by name, sharing memory with this object."""


@final
class SignSums(AbstractSums):
    """Four sums per entry for TIES: positive and negative mass, positive and negative weight.

    The weights are counts in uint8, int16 or int32 while every checkpoint has raw weight 1; they
    are widened before they could wrap.
    """

    def __init__(self, num_entries: int, sum_format: SumFormat, denominator: str) -> None:
        """Start with empty sums for a tensor of `num_entries` entries.

        `denominator` says what the mass of the elected sign is divided by: its weight ("matched"),
        that of all checkpoints ("total"), or nothing ("none").
        """
        self._format = sum_format
        self._denominator: str = denominator
        self._positive_mass = torch.zeros(num_entries, dtype=sum_format.dtype)
        self._negative_mass = torch.zeros(num_entries, dtype=sum_format.dtype)
        self._positive_weight = torch.zeros(num_entries, dtype=torch.uint8)
        self._negative_weight = torch.zeros(num_entries, dtype=torch.uint8)
        self._largest_count = 0
        self._has_residue = False

    @staticmethod
    def from_tensors(
        stored: Mapping[str, Shaped[Tensor, " entry"]],
        sum_format: SumFormat,
        denominator: str,
        num_seen: int,
        *,
        may_have_residue: bool,
    ) -> "SignSums":
        """Return the sums that `tensors` gave, without copying them.

        `num_seen` checkpoints were ever added; `may_have_residue` says that some were taken out.
        """
        sums = SignSums(0, sum_format, denominator)
        sums._positive_mass = stored["positive_mass"]
        sums._negative_mass = stored["negative_mass"]
        sums._positive_weight = stored["positive_weight"]
        sums._negative_weight = stored["negative_weight"]
        sums._largest_count = num_seen
        sums._has_residue = may_have_residue
        return sums

    def add(self, change: Change, raw_weight: Real, threshold: Real) -> None:
        """Add raw_weight times the entries of `change` whose magnitude reaches `threshold`."""
        self._make_room(raw_weight)
        self._largest_count += 1
        self._accumulate(change, raw_weight, threshold, 1)

    def subtract(self, change: Change, raw_weight: Real, threshold: Real) -> None:
        """Take `change` out again; entries that nothing is left in read as 0 from then on."""
        self._has_residue = True
        self._accumulate(change, raw_weight, threshold, -1)

    def check_contains(self, change: Change, raw_weight: Real, threshold: Real) -> None:
        """Raise MergeError when more would be taken out of an entry than was put in."""
        buffer = torch.empty(min(CHUNK, change.num_entries), dtype=torch.float32)
        least = raw_weight * (1.0 - _WEIGHT_SLACK)
        for start, stop in spans(change.num_entries):
            piece = change.chunk(start, stop, buffer)
            short = (piece >= threshold) & (self._positive_weight[start:stop] < least)
            short |= (piece <= -threshold) & (self._negative_weight[start:stop] < least)
            if bool(short.any()):
                raise MergeError(
                    f'{change.label} is not part of this merge: tensor "{change.name}" has'
                    f" {int(short.sum())} entries with less inside than it would take out.",
                    hint="remove a checkpoint with the values and the weight it was added with.",
                )

    def check_room(self, step: Real) -> None:
        """Raise MergeError when a mass could leave its range by adding up to `step`."""
        self._format.check_room(self._positive_mass, step)
        self._format.check_room(self._negative_mass, step)

    def multiply(self, factor: Real, raw_total: Real) -> None:
        """Multiply all sums; entries whose weight has faded to nothing are emptied."""
        if not self._positive_weight.is_floating_point():
            self._widen(self._format.weight_dtype)
        pairs = (
            (self._positive_mass, self._positive_weight),
            (self._negative_mass, self._negative_weight),
        )
        for mass, weight in pairs:
            for start, stop in spans(mass.numel()):
                weight_piece, mass_piece = weight[start:stop], mass[start:stop]
                self._format.multiply(mass_piece, factor)
                weight_piece.mul_(factor)
                # Numbers this faint turn into denormals, which are slow and mean nothing.
                faded = weight_piece < _FORGOTTEN_SHARE * raw_total
                mass_piece.masked_fill_(faded, 0)
                weight_piece.masked_fill_(faded, 0.0)

    def clear(self) -> None:
        """Set all sums to 0."""
        for tensor in self.tensors().values():
            tensor.zero_()
        self._largest_count = 0

    def finish(
        self, raw_total: Real, statistics: MergeStatistics | None
    ) -> Float32[Tensor, " entry"]:
        """Return the disjoint mean of the elected sign per entry, 0 where nothing was kept."""
        result = torch.empty(self._positive_mass.numel(), dtype=torch.float32)
        if self._denominator == "matched" and not self._has_residue and self._is_counted():
            self._counted().finish(raw_total, as_array(result))
            if statistics is not None:
                for start, stop in spans(result.numel()):
                    total = self._positive_mass[start:stop] + self._negative_mass[start:stop]
                    statistics.include(result[start:stop], total.div_(raw_total))
            return result
        kernel = SignKernel(self._format.read(self._positive_mass[:0]).dtype)
        for start, stop in spans(result.numel()):
            positive, positive_weight = self._side(kernel, 1, start, stop, raw_total)
            negative, negative_weight = self._side(kernel, -1, start, stop, raw_total)
            total, is_positive = kernel.total(positive, negative)
            merged = kernel.elected_mass(positive, negative, is_positive)
            if self._denominator == "matched":
                merged.div_(kernel.elected_weight(positive_weight, negative_weight, is_positive))
            elif self._denominator == "total":
                merged.div_(raw_total)
            result[start:stop] = merged
            if statistics is not None:
                statistics.include(result[start:stop], total.div_(raw_total).to(torch.float32))
        return result

    def tensors(self) -> dict[str, Shaped[Tensor, " entry"]]:
        """Return the four sums by name, sharing memory with this object."""
        return {
            "positive_mass": self._positive_mass,
            "negative_mass": self._negative_mass,
            "positive_weight": self._positive_weight,
            "negative_weight": self._negative_weight,
        }

    def _side(
        self, kernel: SignKernel, sign: int, start: int, stop: int, raw_total: Real
    ) -> tuple[Float[Tensor, " entry"], Shaped[Tensor, " entry"]]:
        """Return mass and weight of one sign, both 0 where its weight is negligible."""
        mass = self._positive_mass if sign > 0 else self._negative_mass
        weight = self._positive_weight if sign > 0 else self._negative_weight
        mass_piece, weight_piece = self._format.read(mass[start:stop]), weight[start:stop]
        if weight_piece.is_floating_point():
            return kernel.drop_light(mass_piece, weight_piece, NEGLIGIBLE_SHARE * raw_total)
        if self._has_residue:
            return kernel.drop_light(mass_piece, weight_piece, 1)
        return mass_piece, weight_piece

    def _accumulate(
        self, change: Change, raw_weight: Real, threshold: Real, direction: int
    ) -> None:
        if raw_weight == 0.0 or math.isinf(threshold):
            return
        signed = direction * raw_weight
        if signed == 1.0 and self._is_counted():
            self._counted().add(change.arrays(), raw_weight, float(threshold))
            return
        kernel, own = SignKernel(), change.arrays()
        room = as_array(kernel.piece_buffer())
        # hardshrink keeps what is strictly above its bound, so the bound is the float before.
        bound = float(torch.nextafter(torch.tensor(threshold), torch.tensor(0.0)))
        for start, stop in spans(change.num_entries):
            kept = as_tensor(own.look(start, stop, room))
            if bound > 0.0:
                kept = torch.nn.functional.hardshrink(kept, bound)
            part = kernel.positive_part(kept)
            self._format.add(self._positive_mass[start:stop], part, signed)
            kernel.add_weight(self._positive_weight[start:stop], part, signed)
            part = kernel.negative_part(kept)
            self._format.add(self._negative_mass[start:stop], part, signed)
            kernel.add_weight(self._negative_weight[start:stop], part, signed)

    def _is_counted(self) -> bool:
        """Return whether the sums are those of equal weights: float32 masses and counts."""
        is_whole = not self._positive_weight.is_floating_point()
        return is_whole and self._positive_mass.dtype == torch.float32

    def _counted(self) -> CountedSums:
        """Return the same sums, in the same memory, as those of equal weights."""
        return CountedSums(
            (as_array(self._positive_mass), as_array(self._negative_mass)),
            (as_array(self._positive_weight), as_array(self._negative_weight)),
        )

    def _make_room(self, raw_weight: Real) -> None:
        dtype = self._positive_weight.dtype
        wanted = weight_dtype_after(dtype, self._largest_count + 1, raw_weight, self._format)
        if wanted != dtype:
            self._widen(wanted)

    def _widen(self, dtype: torch.dtype) -> None:
        self._positive_weight = self._positive_weight.to(dtype)
        self._negative_weight = self._negative_weight.to(dtype)


def weight_dtype_after(
    dtype: torch.dtype, largest_count: int, raw_weight: Real, sum_format: SumFormat
) -> torch.dtype:
    """Return the type that weights need once a checkpoint of `raw_weight` has been added.

    Counts stay whole numbers while every weight is 1, in the smallest type that holds
    `largest_count`.
    """
    if dtype.is_floating_point:
        return dtype
    if raw_weight not in (0.0, 1.0):
        return sum_format.weight_dtype
    wide_enough = [own for own in _COUNT_DTYPES if largest_count <= torch.iinfo(own).max]
    return max(dtype, wide_enough[0], key=lambda own: own.itemsize)


@final
class PlainSums(AbstractSums):
    """One sum per entry for weighted means."""

    def __init__(self, num_entries: int, sum_format: SumFormat) -> None:
        """Start with an empty sum for a tensor of `num_entries` entries."""
        self._format = sum_format
        self._mass = torch.zeros(num_entries, dtype=sum_format.dtype)

    @staticmethod
    def from_tensors(
        stored: Mapping[str, Shaped[Tensor, " entry"]], sum_format: SumFormat
    ) -> "PlainSums":
        """Return the sum that `tensors` gave, without copying it."""
        sums = PlainSums(0, sum_format)
        sums._mass = stored["mass"]
        return sums

    def add(self, change: Change, raw_weight: Real, threshold: Real) -> None:
        """Add raw_weight times `change`; nothing is trimmed."""
        self._accumulate(change, raw_weight)

    def subtract(self, change: Change, raw_weight: Real, threshold: Real) -> None:
        """Take `change` out again."""
        self._accumulate(change, -raw_weight)

    def check_contains(self, change: Change, raw_weight: Real, threshold: Real) -> None:
        """Do nothing: any change may be part of a plain sum."""

    def check_room(self, step: Real) -> None:
        """Raise MergeError when the sum could leave its range by adding up to `step`."""
        self._format.check_room(self._mass, step)

    def multiply(self, factor: Real, raw_total: Real) -> None:
        """Multiply the sum."""
        for start, stop in spans(self._mass.numel()):
            self._format.multiply(self._mass[start:stop], factor)

    def clear(self) -> None:
        """Set the sum to 0."""
        self._mass.zero_()

    def finish(
        self, raw_total: Real, statistics: MergeStatistics | None
    ) -> Float32[Tensor, " entry"]:
        """Return the weighted mean of the changes."""
        result = torch.empty(self._mass.numel(), dtype=torch.float32)
        for start, stop in spans(result.numel()):
            result[start:stop] = self._format.read(self._mass[start:stop]) / raw_total
            if statistics is not None:
                statistics.include(result[start:stop], result[start:stop])
        return result

    def tensors(self) -> dict[str, Shaped[Tensor, " entry"]]:
        """Return the sum by name, sharing memory with this object."""
        return {"mass": self._mass}

    def _accumulate(self, change: Change, signed_weight: Real) -> None:
        if signed_weight == 0.0:
            return
        buffer = torch.empty(min(CHUNK, change.num_entries), dtype=torch.float32)
        for start, stop in spans(change.num_entries):
            piece = change.chunk(start, stop, buffer)
            self._format.add(self._mass[start:stop], piece, signed_weight)
