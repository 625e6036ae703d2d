"""A running merge over named tensors: the part that every accumulator shares."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.changes import Measure
from gtr_turbo.merging.arrays.kernels import Scratch
from gtr_turbo.merging.changes import Change, apply_delta, measure, measure_globally
from gtr_turbo.merging.formats import find_format
from gtr_turbo.merging.io import fingerprint
from gtr_turbo.merging.ledger import Ledger
from gtr_turbo.merging.naming import Layout, check_fixed, check_names, layout_of
from gtr_turbo.merging.rounding import UnchangedShare
from gtr_turbo.merging.settings import MergeSettings
from gtr_turbo.merging.sources import AbstractTensorSource, InMemory, checkpoint_label
from gtr_turbo.merging.sums import AbstractSums, MergeStatistics, PlainSums, SignSums
from gtr_turbo.merging.tensors import flat_cpu, rounded
from gtr_turbo.merging.weights import Real


@final
@dataclass(frozen=True, slots=True)
class _Stored:
    """A checkpoint of the window, kept so that it can be taken out again."""

    name: str
    thresholds: dict[str, float]
    changes: dict[str, Tensor]


@final
class RunningMerge:
    """Sums over the checkpoints inside, the ledger of who they are, and the way back to weights."""

    def __init__(
        self,
        settings: MergeSettings,
        base: Mapping[str, Tensor] | None,
        tied: Sequence[Sequence[str]] = (),
    ) -> None:
        """Start empty. `base` is copied, so that training cannot move it; None: merge changes."""
        self.settings = settings
        self.ledger = Ledger()
        self.layout: Layout | None = None
        self.statistics: dict[str, float] = {}
        self._tied = tied
        self._base: dict[str, Tensor] | None = None
        self._base_fingerprint: str | None = None
        self._fixed: dict[str, Tensor] = {}
        self._sums: dict[str, AbstractSums] = {}
        self._window: deque[_Stored] = deque()
        self._sole: dict[str, Tensor] | None = None
        if base is not None:
            self._open(layout_of(InMemory(base, "the base"), tied), base)
            self._base = {name: flat_cpu(base[name]).clone() for name in self._names}

    @property
    def _names(self) -> tuple[str, ...]:
        return () if self.layout is None else self.layout.merged_names

    def _open(self, layout: Layout, tensors: Mapping[str, Tensor]) -> None:
        self.layout = layout
        self._fixed = {
            name: tensors[name].detach().cpu().clone() for name in self.layout.fixed_names
        }
        self._sums = {name: self._new_sums(tensors[name].numel()) for name in self._names}

    def _new_sums(self, num_entries: int) -> AbstractSums:
        sum_format = find_format(self.settings.sum_format)
        if self.settings.method == "linear":
            return PlainSums(num_entries, sum_format)
        return SignSums(num_entries, sum_format, self.settings.options.denominator)

    # ---- going in and out ----

    def add(self, checkpoint: Mapping[str, Tensor], weight: Real, name: str | None) -> None:
        """Take in a checkpoint. Everything is checked first: a refused one leaves no trace."""
        label = self.ledger.name_next(name)
        decay = self.settings.decay if self.ledger.num_inside else None
        if decay is None and self.settings.options.ema_init == "corrected":
            decay_of_first = self.settings.decay
        else:
            decay_of_first = None
        self.ledger.raw_weight_for(weight, label)
        source = InMemory(checkpoint, checkpoint_label(label))
        layout = self.layout or layout_of(source, self._tied)
        changes = self._changes(layout, source)
        measures = self._measures(changes)
        if self.layout is None:
            self._open(layout, checkpoint)
        for key, own in measures.items():
            self._sums[key].check_room(own.largest * self.ledger.raw_weight_for(weight, label))
        if decay is not None:
            self.decay(1.0 - decay)
        entering = weight * (decay or decay_of_first or 1.0)
        was_empty = self.ledger.num_inside == 0
        raw = self.ledger.raw_weight_for(entering, label)
        for key, change in changes.items():
            self._sums[key].add(change, raw, measures[key].threshold)
        self.ledger.enter(label, entering)
        keep_whole = was_empty and self._base is not None and self.settings.keeps_all
        self._sole = {k: c.checkpoint.clone() for k, c in changes.items()} if keep_whole else None
        if self.settings.window is not None:
            self._remember(label, changes, measures)

    def remove(self, checkpoint: Mapping[str, Tensor], weight: Real, name: str | None) -> None:
        """Take a checkpoint out again; sums over nothing are set to exactly 0."""
        index = self.ledger.find(weight, name)
        label = self.ledger.names[index]
        source = InMemory(checkpoint, checkpoint_label(label))
        changes = self._changes(self.layout or layout_of(source), source)
        thresholds = {key: m.threshold for key, m in self._measures(changes).items()}
        for key, change in changes.items():
            self._sums[key].check_contains(change, self.ledger.raw_weights[index], thresholds[key])
        self._take_out(index, changes, thresholds)
        self._window = deque(stored for stored in self._window if stored.name != label)

    def decay(self, factor: Real) -> None:
        """Multiply the weight of everything inside by `factor`, postponed where it can be."""
        if factor == 0.0:
            self._empty()
            return
        self.ledger.decay(factor)
        due = self.ledger.rescale(find_format(self.settings.sum_format).lowest_scale)
        if due is not None:
            for sums in self._sums.values():
                sums.multiply(due, self.ledger.raw_total)

    def _empty(self) -> None:
        for sums in self._sums.values():
            sums.clear()
        self.ledger = Ledger(num_seen=self.ledger.num_seen)
        self._window.clear()
        self._sole = None

    def _take_out(
        self, index: int, changes: Mapping[str, Change], thresholds: Mapping[str, Real]
    ) -> None:
        if self.ledger.num_inside == 1:
            self._empty()
            return
        raw = self.ledger.raw_weights[index]
        for key, change in changes.items():
            self._sums[key].subtract(change, raw, thresholds[key])
        self.ledger.leave(index)
        self._sole = None

    def _remember(
        self, label: str, changes: Mapping[str, Change], measures: Mapping[str, Measure]
    ) -> None:
        self._window.append(
            _Stored(
                label,
                {key: measures[key].threshold for key in changes},
                {key: change.whole() for key, change in changes.items()},
            )
        )
        if len(self._window) > (self.settings.window or 0):
            oldest = self._window.popleft()
            leaving = {
                key: Change(name=key, label=oldest.name, checkpoint=values, base=None)
                for key, values in oldest.changes.items()
            }
            self._take_out(self.ledger.names.index(oldest.name), leaving, oldest.thresholds)

    # ---- checking ----

    def _changes(self, layout: Layout, source: AbstractTensorSource) -> dict[str, Change]:
        check_names(layout, source)
        for name, expected in self._fixed.items():
            check_fixed(name, expected, source.read(name), source.label)
        return {
            name: Change(
                name=name,
                label=source.label,
                checkpoint=flat_cpu(source.read(name)),
                base=None if self._base is None else self._base[name],
            )
            for name in layout.merged_names
        }

    def _measures(self, changes: Mapping[str, Change]) -> dict[str, Measure]:
        density = 1.0 if self.settings.method == "linear" else self.settings.density
        if self.settings.options.scope == "global" and density < 1.0:
            measures = measure_globally(changes, density)
        else:
            scratch = Scratch()
            measures = {name: measure(own, density, scratch) for name, own in changes.items()}
        if self.settings.method == "ties":
            unchanged = UnchangedShare()
            for name, change in changes.items():
                unchanged.include(change.arrays(), measures[name].num_zero)
            unchanged.warn()
        return measures

    # ---- coming out ----

    def merged_delta(self) -> dict[str, Tensor]:
        """Return scale times the merged change of every floating-point tensor, float32."""
        assert self.layout is not None or self.ledger.num_inside == 0
        total = self.ledger.raw_total
        if self.layout is None or not total > 0.0:
            raise MergeError(
                f"there is nothing to merge: {self.ledger.num_inside} checkpoints of total weight"
                f" {total} are inside.",
                hint="add a checkpoint with a weight above 0 first.",
            )
        statistics = MergeStatistics()
        flat = {name: sums.finish(total, statistics) for name, sums in self._sums.items()}
        self.statistics = statistics.summary() | {"num_checkpoints": float(self.ledger.num_inside)}
        if self.settings.scale != 1.0:
            flat = {name: delta.mul_(self.settings.scale) for name, delta in flat.items()}
        return self._named(flat)

    def merged(self) -> dict[str, Tensor]:
        """Return base + scale times the merged change, rounded once; without a base, the change."""
        deltas = self.merged_delta()
        assert self.layout is not None
        if self._base is None:
            return deltas | {name: tensor.clone() for name, tensor in self._fixed.items()}
        flat: dict[str, Tensor] = {}
        for name in self._names:
            dtype = self.layout.dtypes[name]
            if self._sole is not None and self.settings.scale == 1.0:
                flat[name] = rounded(self._sole[name], dtype, name)
            else:
                flat[name] = apply_delta(self._base[name], deltas[name].reshape(-1), dtype, name)
        merged = self._named(flat)
        fixed = {name: tensor.clone() for name, tensor in self._fixed.items()}
        both = merged | fixed
        return {name: both[name] for name in self.layout.shapes}

    def _named(self, flat: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors in their shapes, tied names as one tensor."""
        assert self.layout is not None
        shaped = {name: flat[name].reshape(self.layout.shapes[name]) for name in self._names}
        leaders = self.layout.leaders
        return {name: shaped[leader] for name, leader in leaders.items() if leader in shaped}

    # ---- to disk and back ----

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all tensors (they share memory with this object) and the JSON-able rest."""
        tensors: dict[str, Tensor] = {}
        for name, sums in self._sums.items():
            tensors |= {f"{kind}/{name}": value for kind, value in sums.tensors().items()}
        tensors |= {f"fixed/{name}": value for name, value in self._fixed.items()}
        tensors |= {f"sole/{name}": value for name, value in (self._sole or {}).items()}
        for index, stored in enumerate(self._window):
            tensors |= {f"window-{index}/{name}": v for name, v in stored.changes.items()}
        if self._base is not None and self._base_fingerprint is None:
            self._base_fingerprint = fingerprint(self._base)
        return tensors, {
            "settings": self.settings.to_json(),
            "ledger": self.ledger.to_json(),
            "layout": None if self.layout is None else self.layout.to_json(),
            "window": [[stored.name, dict(stored.thresholds)] for stored in self._window],
            "base_fingerprint": self._base_fingerprint,
        }

    @staticmethod
    def restore(
        tensors: Mapping[str, Tensor],
        manifest: Mapping[str, Any],
        base: Mapping[str, Tensor] | None,
    ) -> "RunningMerge":
        """Return the running merge that `state` described; it takes over `tensors` without a copy.

        Raises:
            MergeError: `base` is not the base that the sums are relative to.
        """
        stored_layout = manifest["layout"]
        layout = None if stored_layout is None else Layout.from_json(stored_layout)
        tied = () if layout is None else tuple((a, b) for b, a in layout.leaders.items())
        running = RunningMerge(MergeSettings.from_json(manifest["settings"]), base, tied)
        running.ledger = Ledger.from_json(manifest["ledger"])
        running._check_base(manifest["base_fingerprint"])
        if layout is None:
            return running
        running.layout = layout
        kinds: dict[str, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            kind, _, name = key.partition("/")
            kinds.setdefault(kind, {})[name] = tensor
        running._fixed = kinds.get("fixed", {})
        running._sole = kinds.get("sole")
        running._sums = {name: running._restored_sums(kinds, name) for name in running._names}
        running._window.extend(
            _Stored(name, thresholds, kinds[f"window-{index}"])
            for index, (name, thresholds) in enumerate(manifest["window"])
        )
        return running

    def _restored_sums(self, kinds: Mapping[str, Mapping[str, Tensor]], name: str) -> AbstractSums:
        sum_format = find_format(self.settings.sum_format)
        stored = {kind: named[name] for kind, named in kinds.items() if name in named}
        if self.settings.method == "linear":
            return PlainSums.from_tensors(stored, sum_format)
        denominator = self.settings.options.denominator
        return SignSums.from_tensors(
            stored,
            sum_format,
            denominator,
            self.ledger.num_seen,
            may_have_residue=self.ledger.num_seen != self.ledger.num_inside,
        )

    def _check_base(self, expected: str | None) -> None:
        found = None if self._base is None else fingerprint(self._base)
        self._base_fingerprint = found
        if found != expected:
            raise MergeError(
                f"the stored sums are relative to base {expected}, the base given is {found}.",
                hint="give the base that the merge was started with; it is fixed for a whole run.",
            )
