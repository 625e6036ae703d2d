"""What a teacher is made of the merged change: itself, or a control that only looks like it.

A control keeps something of the merge and destroys the rest, so that it tells what the guidance
owes to it. It is made anew from the run's seed and the number of the merge, so a resume finds it.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from gtr_turbo.core.seeding import stream_seed

View = Callable[[Mapping[str, Tensor], int], dict[str, Tensor]]
"""(merged change, number of the merge from 0) → the change that the teacher wears."""


def shuffled_signs(seed: int) -> View:
    """Return a view with every tensor's signs permuted: the same magnitudes at the same places."""

    def view(change: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(stream_seed(seed, "shuffled", number))
        return {name: _permuted(tensor, generator) for name, tensor in change.items()}

    return view


def noise(seed: int) -> View:
    """Return a view of Gaussian noise: each tensor as large (in its norm) as the merged one."""

    def view(change: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(stream_seed(seed, "random", number))
        return {name: _noise(tensor, generator) for name, tensor in change.items()}

    return view


def unchanged(change: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
    """Return the merged change itself."""
    return dict(change)


def view_of(teacher: str, seed: int) -> View:
    """Return the view that `guidance.teacher` asks for."""
    views = {"shuffled": shuffled_signs, "random": noise}
    return views[teacher](seed) if teacher in views else unchanged


def _permuted(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Permute the signs of what is not 0: with the zeros in, those would turn up as plus signs."""
    shuffled = tensor.detach().cpu().clone()
    is_changed = shuffled != 0
    signs = shuffled[is_changed].sign()
    order = torch.randperm(len(signs), generator=generator)
    shuffled[is_changed] = shuffled[is_changed].abs() * signs[order]
    return shuffled.to(tensor.device)


def _noise(tensor: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.randn(tensor.shape, generator=generator).to(tensor.device)
    return drawn * (tensor.norm() / drawn.norm().clamp(min=torch.finfo(torch.float32).tiny))
