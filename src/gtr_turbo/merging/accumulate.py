"""Accumulators: a merge that checkpoints are added to one by one, at a cost that does not grow.

Make one with the initial weights, `add` each checkpoint as training makes it, and take `merged` as
often as a teacher is wanted.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

from torch import Tensor

from gtr_turbo.errors import MergeError, nearest_hint
from gtr_turbo.merging.io import load_state, save_state
from gtr_turbo.merging.running import RunningMerge
from gtr_turbo.merging.settings import MergeSettings, TiesOptions
from gtr_turbo.merging.weights import Real

NamedTensors = Mapping[str, Tensor]


class AbstractAccumulator(ABC):
    """A merge in progress over named tensors.

    With a base, checkpoints are full weights and `merged` returns full weights in the base's types.
    Without one (None), checkpoints are changes, such as dense LoRA changes, and so is the result.
    """

    @abstractmethod
    def add(self, checkpoint: NamedTensors, weight: Real = 1.0, name: str | None = None) -> None:
        """Take in a checkpoint; under a decay all earlier ones fade first.

        Raises:
            MergeError: names, shapes, ties or integer tensors differ, a value is NaN or infinite,
                the weight is negative or the name is taken. Nothing has changed then.
        """

    @abstractmethod
    def remove(self, checkpoint: NamedTensors, weight: Real = 1.0, name: str | None = None) -> None:
        """Take a checkpoint out again, by `name` or else the newest that now weighs `weight`."""

    @abstractmethod
    def decay(self, factor: Real) -> None:
        """Multiply the weight of every checkpoint inside by `factor` in [0, 1]."""

    @abstractmethod
    def merged(self) -> dict[str, Tensor]:
        """Return the merged weights as new tensors; without a base, the merged changes."""

    @abstractmethod
    def merged_delta(self) -> dict[str, Tensor]:
        """Return the merged change of every floating-point tensor, scaled, in float32."""

    @abstractmethod
    def weights(self) -> dict[str, float]:
        """Return the share of each checkpoint inside, by name, oldest first."""

    @abstractmethod
    def diagnostics(self) -> dict[str, float]:
        """Return num_checkpoints, zero_fraction, norm_ratio and cosine_to_mean of the last merge.

        The ratio and the cosine compare the merged change with the plain mean of the kept changes.
        """

    @abstractmethod
    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return tensors and a JSON-able manifest for `restore_accumulator`.

        The tensors share memory with the accumulator: store them before the next `add`.
        """

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Write the state to `directory`; a kill leaves the old state or the new one, whole."""


@final
class TiesAccumulator(AbstractAccumulator):
    """Exact TIES over everything that was added (arXiv 2306.01708; 2512.13043, section 3.2)."""

    def __init__(
        self,
        base: NamedTensors | None,
        density: Real = 0.8,
        window: int | None = None,
        decay: Real | None = None,
        scale: Real = 1.0,
        *,
        options: TiesOptions | None = None,
        tied: Sequence[Sequence[str]] = (),
    ) -> None:
        """Start empty.

        Args:
            base: Initial weights, copied; None when checkpoints are changes already.
            density: Share of each change that is kept, in [0, 1].
            window: Merge only the last so many checkpoints (copies of them are kept); None: all.
            decay: Weight of the newest checkpoint in an exponential average, in (0, 1]; None: equal
                weights. The closed-form weights enter one TIES merge, they are not a recursion.
            scale: Factor of the merged change.
            options: What the paper leaves open.
            tied: Groups of names that share one storage, beside those found in `base`.

        Raises:
            MergeError: a value is outside its range, or `window` and `decay` are both given.
        """
        settings = MergeSettings(
            method="ties",
            density=density,
            scale=scale,
            decay=decay,
            window=window,
            options=options or TiesOptions(),
        )
        self._running = RunningMerge(settings, base, tied)

    def add(self, checkpoint: NamedTensors, weight: Real = 1.0, name: str | None = None) -> None:
        """Trim the change of `checkpoint` and add it to the sums."""
        self._running.add(checkpoint, weight, name)

    def remove(self, checkpoint: NamedTensors, weight: Real = 1.0, name: str | None = None) -> None:
        """Subtract the trimmed change of `checkpoint` from the sums."""
        self._running.remove(checkpoint, weight, name)

    def decay(self, factor: Real) -> None:
        """Multiply the weight of every checkpoint inside by `factor` in [0, 1]."""
        _check_factor(factor)
        self._running.decay(factor)

    def merged(self) -> dict[str, Tensor]:
        """Return base + scale times the disjoint mean of the elected signs."""
        return self._running.merged()

    def merged_delta(self) -> dict[str, Tensor]:
        """Return scale times the disjoint mean of the elected signs."""
        return self._running.merged_delta()

    def weights(self) -> dict[str, float]:
        """Return the share of each checkpoint inside, by name, oldest first."""
        return self._running.ledger.weights()

    def diagnostics(self) -> dict[str, float]:
        """Return figures of the last merge, empty before the first."""
        return dict(self._running.statistics)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return tensors, sharing memory with this object, and a JSON-able manifest."""
        return self._running.state()

    def save(self, directory: Path) -> None:
        """Write the state to `directory`, whole or not at all."""
        save_state(Path(directory), *self._running.state())

    @staticmethod
    def from_state(
        tensors: NamedTensors, manifest: Mapping[str, Any], base: NamedTensors | None = None
    ) -> "TiesAccumulator":
        """Return the accumulator that `state` described, with copies of `tensors`.

        Raises:
            MergeError: another method's state, or not the base that the sums are relative to.
        """
        return TiesAccumulator.from_running(_restored(tensors, manifest, base, "ties", copy=True))

    @staticmethod
    def load(directory: Path, base: NamedTensors | None = None) -> "TiesAccumulator":
        """Return the accumulator that `save` wrote; CheckpointError when it is damaged."""
        tensors, manifest = load_state(Path(directory))
        return TiesAccumulator.from_running(_restored(tensors, manifest, base, "ties", copy=False))

    @staticmethod
    def from_running(running: RunningMerge) -> "TiesAccumulator":
        """Return the accumulator around a TIES merge that is under way."""
        accumulator = TiesAccumulator(None)
        accumulator._running = running
        return accumulator


@final
class LinearAccumulator(AbstractAccumulator):
    """The weighted mean of everything that was added: simple, exponential or over a window."""

    def __init__(
        self,
        base: NamedTensors | None,
        window: int | None = None,
        decay: Real | None = None,
        scale: Real = 1.0,
        *,
        options: TiesOptions | None = None,
        tied: Sequence[Sequence[str]] = (),
    ) -> None:
        """Start empty; the arguments are those of `TiesAccumulator`, without a density."""
        settings = MergeSettings(
            method="linear",
            density=1.0,
            scale=scale,
            decay=decay,
            window=window,
            options=options or TiesOptions(),
        )
        self._running = RunningMerge(settings, base, tied)

    def add(self, checkpoint: NamedTensors, weight: Real = 1.0, name: str | None = None) -> None:
        """Add the change of `checkpoint` to the sum."""
        self._running.add(checkpoint, weight, name)

    def remove(self, checkpoint: NamedTensors, weight: Real = 1.0, name: str | None = None) -> None:
        """Subtract the change of `checkpoint` from the sum."""
        self._running.remove(checkpoint, weight, name)

    def decay(self, factor: Real) -> None:
        """Multiply the weight of every checkpoint inside by `factor` in [0, 1]."""
        _check_factor(factor)
        self._running.decay(factor)

    def merged(self) -> dict[str, Tensor]:
        """Return base + scale times the weighted mean of the changes."""
        return self._running.merged()

    def merged_delta(self) -> dict[str, Tensor]:
        """Return scale times the weighted mean of the changes."""
        return self._running.merged_delta()

    def weights(self) -> dict[str, float]:
        """Return the share of each checkpoint inside, by name, oldest first."""
        return self._running.ledger.weights()

    def diagnostics(self) -> dict[str, float]:
        """Return figures of the last merge, empty before the first."""
        return dict(self._running.statistics)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return tensors, sharing memory with this object, and a JSON-able manifest."""
        return self._running.state()

    def save(self, directory: Path) -> None:
        """Write the state to `directory`, whole or not at all."""
        save_state(Path(directory), *self._running.state())

    @staticmethod
    def from_state(
        tensors: NamedTensors, manifest: Mapping[str, Any], base: NamedTensors | None = None
    ) -> "LinearAccumulator":
        """Return the accumulator that `state` described, with copies of `tensors`."""
        return LinearAccumulator.from_running(
            _restored(tensors, manifest, base, "linear", copy=True)
        )

    @staticmethod
    def load(directory: Path, base: NamedTensors | None = None) -> "LinearAccumulator":
        """Return the accumulator that `save` wrote; CheckpointError when it is damaged."""
        tensors, manifest = load_state(Path(directory))
        return LinearAccumulator.from_running(
            _restored(tensors, manifest, base, "linear", copy=False)
        )

    @staticmethod
    def from_running(running: RunningMerge) -> "LinearAccumulator":
        """Return the accumulator around a linear merge that is under way."""
        accumulator = LinearAccumulator(None)
        accumulator._running = running
        return accumulator


ACCUMULATORS: Final[Mapping[str, type[TiesAccumulator] | type[LinearAccumulator]]] = {
    "ties": TiesAccumulator,
    "linear": LinearAccumulator,
}
"""Every accumulator by the name of its method."""


def make_accumulator(
    method: str,
    *,
    base: NamedTensors | None = None,
    density: Real = 0.8,
    ema_alpha: Real | None = None,
    window: int | None = None,
    scale: Real = 1.0,
    options: TiesOptions | None = None,
) -> AbstractAccumulator:
    """Return an empty accumulator.

    Args:
        method: A name in `ACCUMULATORS`.
        base: Initial weights; None when checkpoints are changes.
        density: Share of each change that TIES keeps; the linear mean ignores it.
        ema_alpha: Weight of the newest checkpoint; None: equal weights (SMA).
        window: Merge only the last so many checkpoints; None: all.
        scale: Factor of the merged change.
        options: What the paper leaves open.

    Raises:
        MergeError: no accumulator has that name.
    """
    builders: dict[str, Callable[[], AbstractAccumulator]] = {
        "ties": lambda: TiesAccumulator(base, density, window, ema_alpha, scale, options=options),
        "linear": lambda: LinearAccumulator(base, window, ema_alpha, scale, options=options),
    }
    if method not in builders:
        raise MergeError(
            f'there is no accumulator for the merge method "{method}".',
            hint=nearest_hint(method, builders, "accumulators"),
        )
    return builders[method]()


def restore_accumulator(
    tensors: NamedTensors, manifest: Mapping[str, Any], base: NamedTensors | None = None
) -> AbstractAccumulator:
    """Return the accumulator that `state` described, of whatever method; `tensors` are copied."""
    return ACCUMULATORS[manifest["settings"]["method"]].from_state(tensors, manifest, base)


def load_accumulator(directory: Path, base: NamedTensors | None = None) -> AbstractAccumulator:
    """Return the accumulator that `save` wrote to `directory`, of whatever method."""
    tensors, manifest = load_state(Path(directory))
    running = RunningMerge.restore(tensors, manifest, base)
    return ACCUMULATORS[running.settings.method].from_running(running)


def _restored(
    tensors: NamedTensors,
    manifest: Mapping[str, Any],
    base: NamedTensors | None,
    method: str,
    *,
    copy: bool,
) -> RunningMerge:
    found = manifest["settings"]["method"]
    if found != method:
        raise MergeError(
            f'the stored state is that of a "{found}" merge, not "{method}".',
            hint="`restore_accumulator` and `load_accumulator` take the class from the state.",
        )
    own = {name: tensor.clone() for name, tensor in tensors.items()} if copy else tensors
    return RunningMerge.restore(own, manifest, base)


def _check_factor(factor: Real) -> None:
    if not 0.0 <= factor <= 1.0:
        raise MergeError(
            f"a decay factor must lie in [0, 1], got {factor}.",
            hint="an exponential average of rate alpha decays by 1 - alpha.",
        )
