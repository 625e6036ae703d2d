"""DARE: drop entries of each change at random, rescale the rest (arXiv 2311.03099, 3.2)."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.trimming import SMALLEST_MAGNITUDE, check_density
from gtr_turbo.merging.changes import Change, measure
from gtr_turbo.merging.formats import find_format
from gtr_turbo.merging.problem import MergeProblem
from gtr_turbo.merging.sums import PlainSums, SignSums
from gtr_turbo.merging.weights import Real

Masks = Sequence[Mapping[str, Tensor]]


def drop_seed(seed: int, position: int, name: str) -> int:
    """Return the seed for one tensor of one checkpoint: a hash, so the same everywhere."""
    digest = hashlib.sha256(f"{seed}/{position}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def kept_at_random(num_entries: int, density: Real, seed: int) -> Bool[Tensor, " entry"]:
    """Return True for entries that stay, each with probability `density`; `seed` decides all."""
    generator = np.random.Generator(np.random.PCG64(seed))
    return torch.from_numpy(generator.random(num_entries, dtype=np.float32) < density)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Dropper:
    density: Real
    seeds: tuple[int, ...]
    masks: Masks | None

    def apply(self, change: Change, position: int) -> Change:
        """Return `change` with its dropped entries 0 and the rest divided by the density."""
        values = change.whole()
        values.mul_(self._is_kept(change, position)).div_(self.density)
        return change.replaced_by(values)

    def _is_kept(self, change: Change, position: int) -> Bool[Tensor, " entry"]:
        if self.masks is None:
            seed = drop_seed(self.seeds[position], position, change.name)
            return kept_at_random(change.num_entries, self.density, seed)
        given = self.masks[position].get(change.name)
        if given is None or given.numel() != change.num_entries:
            size = "none" if given is None else f"{given.numel()} entries"
            raise MergeError(
                f'the mask of tensor "{change.name}" of {change.label} must have'
                f" {change.num_entries} entries, got {size}.",
                hint="give one mask per checkpoint, with the names and shapes of the tensors.",
            )
        return given.reshape(-1).to(torch.bool)


def dare_linear(
    problem: MergeProblem,
    *,
    density: Real = 0.8,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    masks: Masks | None = None,
    normalize: bool = False,
) -> Iterator[tuple[str, Tensor]]:
    """Yield base + scale * sum_i w_i drop(d_i) / density; `normalize` divides by the total weight.

    Dropping depends only on `seed` (or one of `seeds` per checkpoint), position and tensor name, or
    on `masks`, which are True or 1 where an entry is kept.
    """
    dropper = _dropper(problem, density, seed, seeds, masks)
    total = sum(problem.weights) if normalize else 1.0
    for part in problem.parts():
        sums = PlainSums(part.num_entries, find_format("fp32"))
        for position, (weight, change) in enumerate(part.changes()):
            measure(change, 1.0)
            sums.add(dropper.apply(change, position), weight, 0.0)
        yield part.finish(sums.finish(total, None))


def dare_ties(
    problem: MergeProblem,
    *,
    density: Real = 0.8,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    masks: Masks | None = None,
    normalize: bool = False,
) -> Iterator[tuple[str, Tensor]]:
    """Yield base + scale * the sum of the elected sign over randomly dropped changes.

    As `dare_linear`, but only entries of the elected sign are added; `normalize` divides by their
    weight.
    """
    dropper = _dropper(problem, density, seed, seeds, masks)
    total = sum(problem.weights)
    for part in problem.parts():
        sums = SignSums(part.num_entries, find_format("fp32"), "matched" if normalize else "none")
        for position, (weight, change) in enumerate(part.changes()):
            measure(change, 1.0)
            sums.add(dropper.apply(change, position), weight, SMALLEST_MAGNITUDE)
        yield part.finish(sums.finish(total, None))


def _dropper(
    problem: MergeProblem,
    density: Real,
    seed: int,
    seeds: Sequence[int] | None,
    masks: Masks | None,
) -> _Dropper:
    if check_density(density) == 0.0:
        raise MergeError(
            "DARE divides by the density, so it must lie in (0, 1], got 0.",
            hint="density is the share of entries that stay; 0.5 keeps half of them.",
        )
    num = len(problem.checkpoints)
    for what, given in (("seeds", seeds), ("masks", masks)):
        if given is not None and len(given) != num:
            raise MergeError(
                f"{len(given)} {what} were given for {num} checkpoints.",
                hint="give one per checkpoint, in the same order.",
            )
    chosen = (seed,) * num if seeds is None else tuple(seeds)
    return _Dropper(density=density, seeds=chosen, masks=masks)
