"""A running merge whose sums live on disk: one tensor is in memory at a time, whatever the size.

A directory holds one generation of sums and a manifest that names it. Adding a checkpoint reads the
old generation, writes the next one beside it, tensor by tensor, and moves the manifest last: a kill
at any moment leaves the old state or the new one, whole, and the step can be done again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import torch
from jaxtyping import Shaped
from torch import Tensor

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.changes import Change, apply_delta, flat_cpu, measure
from gtr_turbo.merging.formats import find_format
from gtr_turbo.merging.io import MANIFEST_NAME, read_manifest, sync_directory, write_json
from gtr_turbo.merging.kernels import Scratch
from gtr_turbo.merging.ledger import Ledger
from gtr_turbo.merging.naming import check_names, layout_of
from gtr_turbo.merging.rounding import UnchangedShare
from gtr_turbo.merging.safetensors_files import (
    Announced,
    Entry,
    TensorWriter,
    read_entry,
    read_header,
)
from gtr_turbo.merging.settings import MergeSettings
from gtr_turbo.merging.sources import AbstractTensorSource
from gtr_turbo.merging.sums import AbstractSums, PlainSums, SignSums, weight_dtype_after
from gtr_turbo.merging.weights import Real

_MASSES: Final = ("positive_mass", "negative_mass")
_WEIGHTS: Final = ("positive_weight", "negative_weight")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """Everything about one addition that does not depend on the tensor."""

    settings: MergeSettings
    before: dict[str, Entry]
    ledger: Ledger
    raw_weight: Real
    postponed: Real | None
    """Power of two that the old sums are multiplied by first, if a decay is due."""
    raw_total_before: Real
    weight_dtype: torch.dtype


@final
class StreamedMerge:
    """A TIES or linear merge with its sums in a directory."""

    def __init__(self, directory: Path, settings: MergeSettings) -> None:
        """Open the state in `directory`, or start an empty one there.

        Raises:
            MergeError: the state was made with other settings, or the settings ask for a window or
                a global threshold, which need more than one tensor at a time.
        """
        if settings.window is not None or settings.options.scope == "global":
            raise MergeError(
                "a merge on disk has neither a window nor a global threshold.",
                hint="use an accumulator in memory for those.",
            )
        self._directory = directory
        self._settings = settings
        self._ledger = Ledger()
        self._file: str | None = None
        self._generation = 0
        if (directory / MANIFEST_NAME).is_file():
            self._open(read_manifest(directory / MANIFEST_NAME))

    @property
    def names_inside(self) -> tuple[str, ...]:
        """Names of the checkpoints inside, oldest first."""
        return tuple(self._ledger.names)

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
        label = self._ledger.name_next(name)
        layout = layout_of(checkpoint if base is None else base)
        check_names(layout, checkpoint)
        step = self._step(label, weight)
        announced = _announced(step, {name: layout.shapes[name] for name in layout.merged_names})
        if step.before and step.before.keys() != announced.keys():
            raise CheckpointError(
                f"the sums in {self._directory} belong to other tensors than {checkpoint.label}"
                " has.",
                hint="keep one directory per run and base.",
            )
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"sums-{self._generation + 1:06d}.safetensors"
        unchanged = UnchangedShare()
        rooms = {kind: Scratch() for kind in ("measure", *_MASSES, *_WEIGHTS, "mass")}
        with TensorWriter(path, announced) as writer:
            for key in layout.merged_names:
                change = Change(
                    name=key,
                    label=checkpoint.label,
                    checkpoint=flat_cpu(checkpoint.read(key)),
                    base=None if base is None else flat_cpu(base.read(key)),
                )
                density = 1.0 if self._settings.keeps_all else self._settings.density
                found = measure(change, density, rooms["measure"])
                unchanged.include(change, found.num_zero)
                sums = _sums(step, key, change.num_entries, rooms)
                sums.check_room(found.largest * step.raw_weight)
                sums.add(change, step.raw_weight, found.threshold)
                for kind, value in sums.tensors().items():
                    writer.write(f"{kind}/{key}", value)
                merged = self._finished(step, sums, change, layout.dtypes[key])
                yield key, merged.reshape(layout.shapes[key])
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

    def _step(self, label: str, weight: Real) -> _Step:
        """Return the addition of one checkpoint, worked out on a copy of the ledger."""
        decay = self._settings.decay
        ledger = Ledger.from_json(self._ledger.to_json())
        if decay == 1.0:
            ledger = Ledger(num_seen=ledger.num_seen)
        is_first, postponed = ledger.num_inside == 0, None
        if decay is not None and not is_first:
            ledger.decay(1.0 - decay)
            postponed = ledger.rescale(find_format(self._settings.sum_format).lowest_scale)
        if decay is not None and (not is_first or self._settings.options.ema_init == "corrected"):
            weight = weight * decay
        raw_weight, before = ledger.raw_weight_for(weight, label), ledger.raw_total
        ledger.enter(label, weight)
        has_sums = self._file is not None and decay != 1.0
        entries = read_header(self._directory / str(self._file)) if has_sums else {}
        return _Step(
            settings=self._settings,
            before=entries,
            ledger=ledger,
            raw_weight=raw_weight,
            postponed=postponed,
            raw_total_before=before,
            weight_dtype=self._weight_dtype(entries, raw_weight, postponed),
        )

    def _weight_dtype(
        self, before: Mapping[str, Entry], raw_weight: Real, postponed: Real | None
    ) -> torch.dtype:
        sum_format = find_format(self._settings.sum_format)
        if postponed is not None:
            return sum_format.weight_dtype
        stored = [entry.dtype for key, entry in before.items() if key.startswith(_WEIGHTS[0])]
        dtype = stored[0] if stored else torch.uint8
        return weight_dtype_after(dtype, self._ledger.num_seen + 1, raw_weight, sum_format)

    def _finished(
        self, step: _Step, sums: AbstractSums, change: Change, dtype: torch.dtype
    ) -> Shaped[Tensor, " entry"]:
        """Return the merged tensor as one vector: weights if there is a base, else the change."""
        settings = self._settings
        is_sole = step.ledger.num_inside == 1 and settings.keeps_all and settings.scale == 1.0
        if change.base is not None and is_sole:
            return change.checkpoint.to(dtype, copy=True)
        delta = sums.finish(step.ledger.raw_total, None).mul_(settings.scale)
        return delta if change.base is None else apply_delta(change.base, delta, dtype)

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


def _announced(step: _Step, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Announced]:
    mass_dtype = find_format(step.settings.sum_format).dtype
    kinds: dict[str, torch.dtype] = {"mass": mass_dtype}
    if step.settings.method == "ties":
        masses: dict[str, torch.dtype] = dict.fromkeys(_MASSES, mass_dtype)
        kinds = masses | dict.fromkeys(_WEIGHTS, step.weight_dtype)
    return {
        f"{kind}/{name}": (dtype, (torch.Size(shape).numel(),))
        for name, shape in shapes.items()
        for kind, dtype in kinds.items()
    }


def _sums(step: _Step, name: str, num_entries: int, rooms: Mapping[str, Scratch]) -> AbstractSums:
    """Return the sums of one tensor before the addition, read into the rooms or new and empty."""
    sum_format = find_format(step.settings.sum_format)
    denominator = step.settings.options.denominator
    is_linear = step.settings.method == "linear"
    if not step.before:
        if is_linear:
            return PlainSums(num_entries, sum_format)
        return SignSums(num_entries, sum_format, denominator)
    stored: dict[str, Tensor] = {}
    for kind in ("mass",) if is_linear else (*_MASSES, *_WEIGHTS):
        entry = step.before[f"{kind}/{name}"]
        stored[kind] = read_entry(entry, rooms[kind].bytes(entry.num_bytes))
    num_before = step.ledger.num_seen - 1
    sums: AbstractSums = (
        PlainSums.from_tensors(stored, sum_format)
        if is_linear
        else SignSums.from_tensors(
            stored, sum_format, denominator, num_before, may_have_residue=False
        )
    )
    if step.postponed is not None:
        sums.multiply(step.postponed, step.raw_total_before)
    return sums
