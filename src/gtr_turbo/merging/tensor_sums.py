"""Sums on disk of any method, weights and format, computed with torch."""

from collections.abc import Mapping
from typing import final

import numpy as np

from gtr_turbo.merging.arrays.changes import ArrayChange
from gtr_turbo.merging.arrays.counted import (
    MASSES,
    WEIGHTS,
    AbstractStoredSums,
    AbstractSumsMaker,
)
from gtr_turbo.merging.changes import Change
from gtr_turbo.merging.formats import find_format
from gtr_turbo.merging.settings import MergeSettings
from gtr_turbo.merging.sums import AbstractSums, PlainSums, SignSums, weight_dtype_after
from gtr_turbo.merging.tensors import DTYPES, KIND_OF, as_array, as_tensor
from gtr_turbo.merging.weights import Real


@final
class TensorSums(AbstractStoredSums):
    """Sums of tensors, seen as sums of arrays."""

    def __init__(self, sums: AbstractSums) -> None:
        """Wrap `sums`."""
        self._sums = sums

    def check_room(self, step: Real) -> None:
        """Raise MergeError when a sum could leave its range by adding up to `step`."""
        self._sums.check_room(step)

    def add(self, change: ArrayChange, raw_weight: Real, threshold: float) -> None:
        """Add raw_weight times the entries of `change` whose magnitude reaches `threshold`."""
        own = Change(
            name=change.name,
            label=change.label,
            checkpoint=as_tensor(change.checkpoint),
            base=None if change.base is None else as_tensor(change.base),
        )
        self._sums.add(own, raw_weight, threshold)

    def finish(self, raw_total: Real, out: np.ndarray) -> np.ndarray:
        """Write the merged change into `out`."""
        out[...] = as_array(self._sums.finish(raw_total, None))
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the sums by name."""
        return {name: as_array(value) for name, value in self._sums.tensors().items()}


@final
class TensorSumsMaker(AbstractSumsMaker):
    """Sums for every setting that a merge on disk can have."""

    def __init__(self, settings: MergeSettings) -> None:
        """Prepare for merges with `settings`."""
        self._settings = settings
        self._format = find_format(settings.sum_format)

    def lowest_scale(self) -> float:
        """Return how far a decay may be postponed."""
        return float(self._format.lowest_scale)

    def kinds(
        self, before: Mapping[str, str], count: int, raw_weight: Real, *, is_rescaled: bool
    ) -> dict[str, str]:
        """Return the kind of each sum on disk once checkpoint number `count` has been added."""
        mass = KIND_OF[self._format.dtype]
        if self._settings.method == "linear":
            return {"mass": mass}
        dtype = self._format.weight_dtype
        if not is_rescaled:
            stored = DTYPES[before.get(WEIGHTS[0], "U8")]
            dtype = weight_dtype_after(stored, count, raw_weight, self._format)
        return dict.fromkeys(MASSES, mass) | dict.fromkeys(WEIGHTS, KIND_OF[dtype])

    def empty(self, num_entries: int) -> AbstractStoredSums:
        """Return sums over nothing."""
        if self._settings.method == "linear":
            return TensorSums(PlainSums(num_entries, self._format))
        denominator = self._settings.options.denominator
        return TensorSums(SignSums(num_entries, self._format, denominator))

    def restored(
        self, stored: Mapping[str, np.ndarray], num_seen: int, rescaled: tuple[Real, Real] | None
    ) -> AbstractStoredSums:
        """Return the sums in `stored`, multiplied first if `rescaled` says so."""
        own = {name: as_tensor(value) for name, value in stored.items()}
        sums: AbstractSums = (
            PlainSums.from_tensors(own, self._format)
            if self._settings.method == "linear"
            else SignSums.from_tensors(
                own,
                self._format,
                self._settings.options.denominator,
                num_seen,
                may_have_residue=False,
            )
        )
        if rescaled is not None:
            sums.multiply(*rescaled)
        return TensorSums(sums)
