"""Fisher merging: entries count by their diagonal Fisher information (arXiv 2111.09832)."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.kernels import CHUNK, spans
from gtr_turbo.merging.changes import Change, measure
from gtr_turbo.merging.problem import MergeProblem
from gtr_turbo.merging.tensors import flat_cpu


def fisher(
    problem: MergeProblem, *, fishers: Sequence[Mapping[str, Tensor]]
) -> Iterator[tuple[str, Tensor]]:
    """Yield base + scale * sum_i w_i F_i d_i / sum_i w_i F_i, entry by entry (equation 3).

    Args:
        problem: What to merge.
        fishers: One mapping per checkpoint, with the tensors' names and shapes, finite and not
            negative: squared gradients from rollouts, or Adam's second moment as a free stand-in.
            Entries where all are 0 get the weighted mean.
    """
    if len(fishers) != len(problem.checkpoints):
        raise MergeError(
            f"{len(fishers)} Fisher estimates were given for {len(problem.checkpoints)}"
            " checkpoints.",
            hint="give one per checkpoint, in the same order.",
        )
    total = sum(problem.weights)
    for part in problem.parts():
        weighted = torch.zeros(part.num_entries, dtype=torch.float64)
        information = torch.zeros_like(weighted)
        plain = torch.zeros_like(weighted)
        for position, (weight, change) in enumerate(part.changes()):
            measure(change, 1.0)
            importance = _importance(fishers[position], change)
            buffer = torch.empty(min(CHUNK, change.num_entries), dtype=torch.float32)
            for start, stop in spans(change.num_entries):
                piece = change.chunk(start, stop, buffer).to(torch.float64)
                scaled = importance[start:stop].to(torch.float64).mul_(weight)
                weighted[start:stop].addcmul_(piece, scaled)
                information[start:stop].add_(scaled)
                plain[start:stop].add_(piece, alpha=weight / total)
        merged = torch.where(information > 0.0, weighted / information, plain)
        yield part.finish(merged.to(torch.float32))


def _importance(fisher_of: Mapping[str, Tensor], change: Change) -> Float[Tensor, " entry"]:
    found = fisher_of.get(change.name)
    if found is None or found.numel() != change.num_entries:
        size = "none" if found is None else f"{found.numel()} entries"
        raise MergeError(
            f'the Fisher estimate of tensor "{change.name}" of {change.label} must have'
            f" {change.num_entries} entries, got {size}.",
            hint="estimate it for every tensor that is merged.",
        )
    values = flat_cpu(found)
    if not bool((torch.isfinite(values) & (values >= 0.0)).all()):
        raise MergeError(
            f'the Fisher estimate of tensor "{change.name}" of {change.label} has entries that are'
            " negative or not finite.",
            hint="it is a mean of squared gradients; check how it was collected.",
        )
    return values
