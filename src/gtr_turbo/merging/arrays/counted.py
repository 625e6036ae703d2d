"""Sums of equally weighted changes: two float32 masses and two counts per entry."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, final

import numpy as np

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.changes import ArrayChange
from gtr_turbo.merging.arrays.kernels import CHUNK, Pair, add_kept, finish_matched, spans
from gtr_turbo.merging.settings import MergeSettings
from gtr_turbo.merging.weights import Real

MASSES: Final[tuple[str, str]] = ("positive_mass", "negative_mass")
WEIGHTS: Final[tuple[str, str]] = ("positive_weight", "negative_weight")
_COUNT_KINDS: Final = (("U8", np.uint8), ("I16", np.int16), ("I32", np.int32))


class AbstractStoredSums(ABC):
    """The sums of one tensor while a checkpoint is added to them."""

    @abstractmethod
    def check_room(self, step: Real) -> None:
        """Raise MergeError when a sum could leave its range by adding up to `step`."""

    @abstractmethod
    def add(self, change: ArrayChange, raw_weight: Real, threshold: float) -> None:
        """Add raw_weight times the entries of `change` whose magnitude reaches `threshold`."""

    @abstractmethod
    def finish(self, raw_total: Real, out: np.ndarray) -> np.ndarray:
        """Write the merged change into `out`; `raw_total` is the weight of all checkpoints."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Return the sums by name."""


class AbstractSumsMaker(ABC):
    """Which sums a merge keeps on disk, and how they are read back."""

    @abstractmethod
    def lowest_scale(self) -> float:
        """Return how far a decay may be postponed."""

    @abstractmethod
    def kinds(
        self, before: Mapping[str, str], count: int, raw_weight: Real, *, is_rescaled: bool
    ) -> dict[str, str]:
        """Return the kind of each sum on disk once checkpoint number `count` has been added.

        `before` are the kinds so far, empty at first; `is_rescaled` says that the sums are
        multiplied for a decay before the addition.
        """

    @abstractmethod
    def empty(self, num_entries: int) -> AbstractStoredSums:
        """Return sums over nothing."""

    @abstractmethod
    def restored(
        self, stored: Mapping[str, np.ndarray], num_seen: int, rescaled: tuple[Real, Real] | None
    ) -> AbstractStoredSums:
        """Return the sums in `stored`, which are changed in place, after `num_seen` checkpoints.

        `rescaled` is (a factor to multiply them by first, the total weight after that).
        """


@final
class CountedSums(AbstractStoredSums):
    """The sums while all weights are 1."""

    def __init__(self, masses: Pair, counts: Pair) -> None:
        """Take over arrays of equal length; additions change them in place."""
        self._masses, self._counts = masses, counts

    def check_room(self, step: Real) -> None:
        """Do nothing: float32 has room for every sum of weights."""

    def add(self, change: ArrayChange, raw_weight: Real, threshold: float) -> None:
        """Add the entries of `change` whose magnitude reaches `threshold`; the weight is 1."""
        assert raw_weight == 1.0
        buffer = np.empty(min(CHUNK, change.num_entries), np.float32)
        for start, stop in spans(change.num_entries):
            piece = slice(start, stop)
            add_kept(
                change.look(start, stop, buffer),
                threshold,
                (self._masses[0][piece], self._masses[1][piece]),
                (self._counts[0][piece], self._counts[1][piece]),
            )

    def finish(self, raw_total: Real, out: np.ndarray) -> np.ndarray:
        """Write the mean over the kept changes of the elected sign into `out`."""
        finish_matched(self._masses, self._counts, out)
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the four sums by name."""
        return dict(zip((*MASSES, *WEIGHTS), (*self._masses, *self._counts), strict=True))


@final
class CountedMaker(AbstractSumsMaker):
    """Sums for TIES with equal weights, which need no torch."""

    def __init__(self, settings: MergeSettings) -> None:
        """Check that the settings are among those that counts are enough for.

        Raises:
            MergeError: a linear mean, a decay, another denominator or another format.
        """
        own = (settings.method, settings.decay, settings.options.denominator, settings.sum_format)
        if own != ("ties", None, "matched", "fp32"):
            raise MergeError(
                f"merges without torch are TIES with equal weights in float32, not {settings}.",
                hint="use `gtr_turbo.merging.streamed.StreamedMerge`, which does all others.",
            )

    def lowest_scale(self) -> float:
        """Return 0: there is no decay."""
        return 0.0

    def kinds(
        self, before: Mapping[str, str], count: int, raw_weight: Real, *, is_rescaled: bool
    ) -> dict[str, str]:
        """Return float32 for masses, and the narrowest whole numbers that hold `count`."""
        stored = before.get(WEIGHTS[0], "U8")
        if raw_weight != 1.0 or stored.startswith("F"):
            raise MergeError(
                f"merges without torch have equal weights, but this checkpoint weighs {raw_weight}"
                f" and the sums of weights so far are of type {stored}.",
                hint="use `gtr_turbo.merging.streamed.StreamedMerge` for weights that differ.",
            )
        kind = next(kind for kind, dtype in _COUNT_KINDS if count <= np.iinfo(dtype).max)
        masses: dict[str, str] = dict.fromkeys(MASSES, "F32")
        return masses | dict.fromkeys(WEIGHTS, kind)

    def empty(self, num_entries: int) -> AbstractStoredSums:
        """Return sums over nothing."""
        masses = (np.zeros(num_entries, np.float32), np.zeros(num_entries, np.float32))
        return CountedSums(
            masses, (np.zeros(num_entries, np.uint8), np.zeros(num_entries, np.uint8))
        )

    def restored(
        self, stored: Mapping[str, np.ndarray], num_seen: int, rescaled: tuple[Real, Real] | None
    ) -> AbstractStoredSums:
        """Return the sums in `stored`, with counts that hold one more checkpoint."""
        dtype = next(dtype for _, dtype in _COUNT_KINDS if num_seen < np.iinfo(dtype).max)
        positive, negative = (stored[name].astype(dtype, copy=False) for name in WEIGHTS)
        return CountedSums((stored[MASSES[0]], stored[MASSES[1]]), (positive, negative))
