"""Warnings about checkpoints whose change was lost to a 16-bit type."""

import warnings
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from gtr_turbo.merging.arrays.changes import ArrayChange
from gtr_turbo.merging.arrays.numbers import BFLOAT16

MOSTLY_UNCHANGED: Final = 0.5
"""Share of zero changes in a 16-bit checkpoint from which a merge warns."""

_SHORT_TYPES: Final = (BFLOAT16, np.dtype(np.float16))


@final
class MergeWarning(UserWarning):
    """A merge that can be done but will probably not be what was wanted."""


@final
@dataclass(slots=True)
class UnchangedShare:
    """Counts, over the tensors of a checkpoint, the 16-bit entries that equal the base."""

    num_entries: dict[str, int] = field(default_factory=dict)
    num_zero: dict[str, int] = field(default_factory=dict)

    def include(self, change: ArrayChange, num_zero: int) -> None:
        """Count one tensor of a checkpoint."""
        if change.checkpoint.dtype in _SHORT_TYPES:
            total = self.num_entries.get(change.label, 0)
            self.num_entries[change.label] = total + change.num_entries
            self.num_zero[change.label] = self.num_zero.get(change.label, 0) + num_zero

    def shares(self) -> dict[str, float]:
        """Return the share of unchanged entries by checkpoint, for those with 16-bit tensors."""
        return {
            label: self.num_zero[label] / total
            for label, total in self.num_entries.items()
            if total > 0
        }

    def warn(self) -> None:
        """Warn about each checkpoint whose 16-bit entries mostly equal the base.

        One step of training is smaller than the spacing of such numbers; what is left is rounding
        noise, and a mean over the entries that happen to differ makes it several times too large.
        """
        for label, share in self.shares().items():
            if share > MOSTLY_UNCHANGED:
                warnings.warn(
                    f"{share:.1%} of the 16-bit entries of {label} equal the base: its change is"
                    " mostly lost to rounding. Merge float32 weights or LoRA factors, or use the"
                    ' method "linear".',
                    MergeWarning,
                    stacklevel=2,
                )
