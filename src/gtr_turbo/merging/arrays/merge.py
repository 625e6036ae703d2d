"""A running merge whose sums live on disk: one tensor is in memory at a time, whatever the size.

A directory holds one generation of sums and a manifest that names it. Adding a checkpoint reads the
old generation, writes the next one beside it, tensor by tensor, and moves the manifest last: a kill
at any moment leaves the old state or the new one, whole, and the step can be done again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.arrays.changes import ArrayChange, apply_delta, measure
from gtr_turbo.merging.arrays.counted import AbstractStoredSums, AbstractSumsMaker, CountedMaker
from gtr_turbo.merging.arrays.files import (
    KINDS,
    Announced,
    ArrayWriter,
    Entry,
    read_entry_direct,
    read_header,
)
from gtr_turbo.merging.arrays.kernels import Scratch
from gtr_turbo.merging.arrays.manifests import (
    MANIFEST_NAME,
    read_manifest,
    sync_directory,
    write_json,
)
from gtr_turbo.merging.arrays.numbers import converted
from gtr_turbo.merging.arrays.sources import AbstractArraySource, check_alike
from gtr_turbo.merging.ledger import Ledger
from gtr_turbo.merging.rounding import UnchangedShare
from gtr_turbo.merging.settings import MergeSettings
from gtr_turbo.merging.weights import Real


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """Everything about one addition that does not depend on the tensor."""

    before: dict[str, Entry]
    ledger: Ledger
    raw_weight: Real
    rescaled: tuple[Real, Real] | None
    """Power of two that the old sums are multiplied by first, if a decay is due; their weight."""
    kinds: dict[str, str]


@final
class ArrayMerge:
    """A TIES merge of arrays, with its sums in a directory."""

    def __init__(
        self, directory: Path, settings: MergeSettings, maker: AbstractSumsMaker | None = None
    ) -> None:
        """Open the state in `directory`, or start an empty one there.

        `maker` decides which sums are kept; None: counts, which do for equal weights.

        Raises:
            MergeError: the state was made with other settings, or the settings ask for a window or
                a global threshold, which need more than one tensor at a time, or for more than
                `maker` can do.
        """
        if settings.window is not None or settings.options.scope == "global":
            raise MergeError(
                "a merge on disk has neither a window nor a global threshold.",
                hint="use an accumulator in memory for those.",
            )
        self._maker = maker or CountedMaker(settings)
        self._directory = directory
        self._settings = settings
        self._ledger = Ledger()
        self._file: str | None = None
        self._generation = 0
        self._rooms: dict[str, Scratch] = {}
        if (directory / MANIFEST_NAME).is_file():
            self._open(read_manifest(directory / MANIFEST_NAME))

    @property
    def names_inside(self) -> tuple[str, ...]:
        """Names of the checkpoints inside, oldest first."""
        return tuple(self._ledger.names)

    def add(
        self,
        base: AbstractArraySource | None,
        checkpoint: AbstractArraySource,
        *,
        weight: Real = 1.0,
        name: str | None = None,
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (name, merged array) with `checkpoint` inside; the new state counts at the end.

        A caller that stops early leaves the state as it was. Without a base, checkpoints are
        changes and so is what is yielded. An array is good until the next one is asked for.

        Raises:
            MergeError: the checkpoint must not be merged.
            CheckpointError: the sums on disk do not fit the checkpoint.
        """
        label = self._ledger.name_next(name)
        if base is not None:
            check_alike(base, checkpoint)
        step = self._step(label, weight)
        announced = _announced(step, checkpoint)
        if step.before and step.before.keys() != announced.keys():
            raise CheckpointError(
                f"the sums in {self._directory} belong to other tensors than {checkpoint.label}"
                " has.",
                hint="keep one directory per run and base.",
            )
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"sums-{self._generation + 1:06d}.safetensors"
        unchanged = UnchangedShare()
        with ArrayWriter(path, announced) as writer:
            for key in checkpoint.names():
                change = ArrayChange(
                    name=key,
                    label=checkpoint.label,
                    checkpoint=checkpoint.read(key, self._room("checkpoint")),
                    base=None if base is None else base.read(key, self._room("base")),
                )
                sums = self._added(step, change, unchanged)
                for kind, value in sums.arrays().items():
                    writer.write(f"{kind}/{key}", value)
                first = checkpoint if base is None else base
                merged = self._finished(step, sums, change, KINDS[first.kind(key)])
                yield key, merged.reshape(checkpoint.shape(key))
            writer.finish()
        unchanged.warn()
        self._commit(path, step.ledger)

    def _open(self, stored: Mapping[str, Any]) -> None:
        found = MergeSettings.from_json(stored["settings"])
        if found != self._settings:
            raise MergeError(
                f"the merge in {self._directory} was made with {found}, not {self._settings}.",
                hint="give the same settings, or another directory.",
            )
        self._ledger = Ledger.from_json(stored["ledger"])
        self._file, self._generation = stored["file"], stored["generation"]

    def _room(self, kind: str) -> Scratch:
        return self._rooms.setdefault(kind, Scratch())

    def _step(self, label: str, weight: Real) -> _Step:
        """Return the addition of one checkpoint, worked out on a copy of the ledger."""
        decay = self._settings.decay
        ledger = Ledger.from_json(self._ledger.to_json())
        if decay == 1.0:
            ledger = Ledger(num_seen=ledger.num_seen)
        is_first, factor = ledger.num_inside == 0, None
        if decay is not None and not is_first:
            ledger.decay(1.0 - decay)
            factor = ledger.rescale(self._maker.lowest_scale())
        if decay is not None and (not is_first or self._settings.options.ema_init == "corrected"):
            weight = weight * decay
        raw_weight, total_before = ledger.raw_weight_for(weight, label), ledger.raw_total
        ledger.enter(label, weight)
        has_sums = self._file is not None and decay != 1.0
        before = read_header(self._directory / str(self._file)) if has_sums else {}
        return _Step(
            before=before,
            ledger=ledger,
            raw_weight=raw_weight,
            rescaled=None if factor is None else (factor, total_before),
            kinds=self._maker.kinds(
                {key.partition("/")[0]: entry.kind for key, entry in before.items()},
                self._ledger.num_seen + 1,
                raw_weight,
                is_rescaled=factor is not None,
            ),
        )

    def _added(
        self, step: _Step, change: ArrayChange, unchanged: UnchangedShare
    ) -> AbstractStoredSums:
        """Return the sums of one tensor with its change inside."""
        density = 1.0 if self._settings.keeps_all else self._settings.density
        found = measure(change, density, self._room("measure"))
        unchanged.include(change, found.num_zero)
        sums = self._sums(step, change)
        sums.check_room(found.largest * step.raw_weight)
        sums.add(change, step.raw_weight, float(found.threshold))
        return sums

    def _sums(self, step: _Step, change: ArrayChange) -> AbstractStoredSums:
        """Return the sums of one tensor before the addition, read into the rooms or empty."""
        if not step.before:
            return self._maker.empty(change.num_entries)
        stored: dict[str, np.ndarray] = {}
        for kind in step.kinds:
            entry = step.before[f"{kind}/{change.name}"]
            stored[kind] = read_entry_direct(entry, self._room(kind))
        return self._maker.restored(stored, step.ledger.num_seen - 1, step.rescaled)

    def _finished(
        self, step: _Step, sums: AbstractStoredSums, change: ArrayChange, dtype: np.dtype
    ) -> np.ndarray:
        """Return the merged tensor as one vector: weights if there is a base, else the change."""
        settings = self._settings
        is_sole = step.ledger.num_inside == 1 and settings.keeps_all and settings.scale == 1.0
        if change.base is not None and is_sole:
            return converted(change.checkpoint, dtype, change.name)
        delta = sums.finish(step.ledger.raw_total, self._room("measure").floats(change.num_entries))
        if settings.scale != 1.0:
            delta *= np.float32(settings.scale)
        return delta if change.base is None else apply_delta(change.base, delta, dtype, change.name)

    def _commit(self, path: Path, ledger: Ledger) -> None:
        sync_directory(self._directory)
        write_json(
            self._directory / MANIFEST_NAME,
            {
                "settings": self._settings.to_json(),
                "ledger": ledger.to_json(),
                "file": path.name,
                "generation": self._generation + 1,
            },
        )
        self._ledger, self._file, self._generation = ledger, path.name, self._generation + 1
        for stale in self._directory.glob("sums-*.safetensors"):
            if stale.name != path.name:
                stale.unlink()


def _announced(step: _Step, checkpoint: AbstractArraySource) -> dict[str, Announced]:
    return {
        f"{name}/{key}": (kind, (int(np.prod(checkpoint.shape(key), dtype=np.int64)),))
        for key in checkpoint.names()
        for name, kind in step.kinds.items()
    }
