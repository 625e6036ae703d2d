"""A merge to be done: the base, the checkpoints and their weights, read one tensor at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float32, Float64, Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.kernels import spans
from gtr_turbo.merging.changes import Change, apply_delta
from gtr_turbo.merging.naming import Layout, check_fixed, check_names, layout_of
from gtr_turbo.merging.settings import check_scale
from gtr_turbo.merging.sources import AbstractTensorSource
from gtr_turbo.merging.tensors import flat_cpu, rounded
from gtr_turbo.merging.weights import Real, check_weights


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MergeProblem:
    """Checkpoints that fit together, and how much each counts."""

    layout: Layout
    base: AbstractTensorSource | None
    """None when the checkpoints are changes."""
    checkpoints: tuple[AbstractTensorSource, ...]
    weights: tuple[float, ...]
    has_own_weights: bool
    """True when the weights were given, not filled in."""
    scale: Real
    dtype: torch.dtype | None
    """Type of the result; None: that of the base, or of the first checkpoint without one."""

    def parts(self) -> Iterator["Part"]:
        """Yield the floating-point tensors one by one, each shared storage once."""
        for name in self.layout.merged_names:
            base = None if self.base is None else flat_cpu(self.base.read(name))
            yield Part(problem=self, name=name, base=base)

    def reweighted(self, weights: tuple[float, ...]) -> "MergeProblem":
        """Return the problem with other weights."""
        return replace(self, weights=weights)

    def subset(self, positions: Sequence[int]) -> "MergeProblem":
        """Return the problem with only some of the checkpoints."""
        return replace(
            self,
            checkpoints=tuple(self.checkpoints[at] for at in positions),
            weights=tuple(self.weights[at] for at in positions),
        )

    def complete(self, merged: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """Yield every tensor of the result in the order of the layout: merged, tied, then fixed.

        Tied names get one and the same tensor.
        """
        for leader, tensor in merged:
            for name, its_leader in self.layout.leaders.items():
                if its_leader == leader:
                    yield name, tensor
        for name in self.layout.fixed_names:
            first = self.base or self.checkpoints[0]
            yield name, first.read(name).cpu().clone()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One tensor of a merge problem."""

    problem: MergeProblem
    name: str
    base: Shaped[Tensor, " entry"] | None

    @property
    def num_entries(self) -> int:
        """Number of entries of the tensor."""
        return torch.Size(self.problem.layout.shapes[self.name]).numel()

    def change(self, position: int) -> Change:
        """Return the change of the checkpoint at `position`, read now."""
        source = self.problem.checkpoints[position]
        return Change(
            name=self.name,
            label=source.label,
            checkpoint=flat_cpu(source.read(self.name)),
            base=self.base,
        )

    def changes(self) -> Iterator[tuple[float, Change]]:
        """Yield (weight, change) of each checkpoint, read one at a time."""
        for position, weight in enumerate(self.problem.weights):
            yield weight, self.change(position)

    def values(self) -> Iterator[tuple[float, Change]]:
        """Yield (weight, checkpoint itself) of each checkpoint: its change from nothing."""
        for weight, change in self.changes():
            yield weight, change.replaced_by(change.checkpoint)

    def finish_mean(self, mass: Float64[Tensor, " entry"], total: Real) -> tuple[str, Tensor]:
        """Return the name and mass / total, moved away from the base by the scale, rounded once."""
        result = torch.empty(mass.numel(), dtype=self._dtype)
        name = self.name
        for start, stop in spans(mass.numel()):
            mean = mass[start:stop] / total
            if self.base is not None and self.problem.scale != 1.0:
                reference = self.base[start:stop].to(torch.float64)
                mean = reference + self.problem.scale * (mean - reference)
            elif self.problem.scale != 1.0:
                mean = self.problem.scale * mean
            result[start:stop] = rounded(mean, self._dtype, name)
        return name, result.reshape(self.problem.layout.shapes[name])

    def finish(self, delta: Float32[Tensor, " entry"]) -> tuple[str, Tensor]:
        """Return the name and base + scale * delta, rounded once, in its shape."""
        scaled = delta if self.problem.scale == 1.0 else delta * self.problem.scale
        if self.base is None:
            flat = rounded(scaled, self._dtype, self.name)
        else:
            flat = apply_delta(self.base, scaled, self._dtype, self.name)
        return self.name, flat.reshape(self.problem.layout.shapes[self.name])

    def finish_with(self, position: int) -> tuple[str, Tensor]:
        """Return the name and the checkpoint at `position` itself, in the type of the result."""
        own = rounded(self.change(position).checkpoint, self._dtype, self.name)
        return self.name, own.reshape(self.problem.layout.shapes[self.name])

    def sole(self) -> int | None:
        """Return the only checkpoint with a weight if the scale is 1: its mean is itself, exactly.

        base + (checkpoint - base) is not: the difference is rounded where the base is larger.
        """
        weighing = [at for at, weight in enumerate(self.problem.weights) if weight > 0.0]
        is_sole = len(weighing) == 1 and self.problem.scale == 1.0
        return weighing[0] if is_sole else None

    @property
    def _dtype(self) -> torch.dtype:
        return self.problem.dtype or self.problem.layout.dtypes[self.name]


def make_problem(
    base: AbstractTensorSource | None,
    checkpoints: Sequence[AbstractTensorSource],
    *,
    weights: Sequence[Real] | None = None,
    scale: Real = 1.0,
    tied: Sequence[Sequence[str]] = (),
    dtype: torch.dtype | None = None,
) -> MergeProblem:
    """Return the merge problem after checking everything that can be checked without arithmetic.

    Raises:
        MergeError: there is no checkpoint, or names, shapes, ties, integer tensors, weights or the
            scale do not fit.
    """
    check_scale(scale)
    if not checkpoints:
        raise MergeError(
            "there is no checkpoint to merge.", hint="give at least one beside the base."
        )
    checked = check_weights(weights, len(checkpoints))
    layout = layout_of(checkpoints[0] if base is None else base, tied)
    for checkpoint in checkpoints:
        check_names(layout, checkpoint)
    reference = base or checkpoints[0]
    for name in layout.fixed_names:
        for checkpoint in checkpoints:
            check_fixed(name, reference.read(name), checkpoint.read(name), checkpoint.label)
    return MergeProblem(
        layout=layout,
        base=base,
        checkpoints=tuple(checkpoints),
        weights=checked,
        has_own_weights=weights is not None,
        scale=scale,
        dtype=dtype,
    )
