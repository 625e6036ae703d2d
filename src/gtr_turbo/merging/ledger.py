"""Which checkpoints are inside a running merge, and what each weighs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.weights import Real, check_weight

_SAME_WEIGHT_RELATIVE = 1e-9


@final
@dataclass(slots=True, kw_only=True)
class Ledger:
    """The checkpoints inside a merge, oldest first.

    A checkpoint's weight is its raw weight times `scale`. Decaying all weights only multiplies
    `scale`, so that sums need not be rewritten: the next checkpoint enters with a larger raw
    weight. The first one enters with raw weight 1 whatever its weight is, since only ratios matter;
    so equal weights are plain counts and one checkpoint comes back unrounded.
    """

    names: list[str] = field(default_factory=list)
    raw_weights: list[float] = field(default_factory=list)
    scale: Real = 1.0
    pending: Real = 1.0
    """The part of `scale` that comes from decays which the sums have not been multiplied by."""
    num_seen: int = 0
    """Checkpoints ever added, those that left included."""

    @property
    def num_inside(self) -> int:
        """Number of checkpoints inside."""
        return len(self.names)

    @property
    def raw_total(self) -> float:
        """Sum of the raw weights, exactly rounded."""
        return math.fsum(self.raw_weights)

    def weights(self) -> dict[str, float]:
        """Return each checkpoint's share of the total weight, by name, oldest first."""
        total = self.raw_total
        pairs = zip(self.names, self.raw_weights, strict=True)
        return {name: raw / total for name, raw in pairs}

    def name_next(self, name: str | None) -> str:
        """Return the name for the next checkpoint; MergeError when it is taken."""
        chosen = f"checkpoint-{self.num_seen}" if name is None else name
        if chosen in self.names:
            raise MergeError(
                f'a checkpoint named "{chosen}" is already part of this merge.',
                hint="give every checkpoint a name of its own, such as its update number.",
            )
        return chosen

    def raw_weight_for(self, weight: Real, label: str) -> float:
        """Return the raw weight of a checkpoint that is to enter with `weight`."""
        checked = check_weight(weight, label)
        if not any(self.raw_weights):
            return 1.0 if checked > 0.0 else 0.0
        return checked / self.scale

    def enter(self, name: str, weight: Real) -> None:
        """Write down that the checkpoint `name` has entered with `weight`."""
        raw = self.raw_weight_for(weight, name)
        if raw > 0.0 and not any(self.raw_weights):
            self.scale, self.pending = weight, 1.0
        self.names.append(name)
        self.raw_weights.append(raw)
        self.num_seen += 1

    def find(self, weight: Real, name: str | None) -> int:
        """Return the position of the checkpoint `name`, or of the newest that weighs `weight`."""
        if name is not None:
            if name not in self.names:
                raise MergeError(
                    f'no checkpoint named "{name}" is part of this merge.',
                    hint=f"inside are: {', '.join(self.names) or 'none'}.",
                )
            return self.names.index(name)
        for index in reversed(range(self.num_inside)):
            current = self.raw_weights[index] * self.scale
            if math.isclose(current, weight, rel_tol=_SAME_WEIGHT_RELATIVE):
                return index
        raise MergeError(
            f"no checkpoint of weight {weight} is part of this merge.",
            hint="name the checkpoint, or give the weight that it has after any decay.",
        )

    def leave(self, index: int) -> None:
        """Forget the checkpoint at `index`."""
        del self.names[index]
        del self.raw_weights[index]
        if not any(self.raw_weights):
            self.scale = self.pending = 1.0

    def decay(self, factor: Real) -> None:
        """Multiply the weight of every checkpoint inside by `factor`."""
        if any(self.raw_weights):
            self.scale *= factor
            self.pending *= factor

    def rescale(self, lowest_scale: Real) -> float | None:
        """Return the power of two that the sums must be multiplied by now, or None.

        A postponed decay is carried out once it falls below `lowest_scale`; the raw weights have
        been multiplied when this returns a factor.
        """
        if self.pending >= lowest_scale:
            return None
        factor = 2.0 ** math.floor(math.log2(self.pending))
        self.scale /= factor
        self.pending /= factor
        self.raw_weights = [raw * factor for raw in self.raw_weights]
        return factor

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values; floats survive exactly."""
        return {
            "names": list(self.names),
            "raw_weights": list(self.raw_weights),
            "scale": self.scale,
            "pending": self.pending,
            "num_seen": self.num_seen,
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> "Ledger":
        """Return the ledger that `to_json` described."""
        return Ledger(
            names=list(stored["names"]),
            raw_weights=[float(raw) for raw in stored["raw_weights"]],
            scale=float(stored["scale"]),
            pending=float(stored["pending"]),
            num_seen=int(stored["num_seen"]),
        )
