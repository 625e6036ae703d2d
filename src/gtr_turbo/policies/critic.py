"""The value head: a small network on the hidden state of the last prompt token."""

from collections.abc import Sequence
from itertools import pairwise
from typing import final

import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn


@final
class ValueHead(nn.Module):
    """Hidden state → value, float32: the lineage's 1024 → 512 → 1 with ReLU (`docs/paper.md`).

    The last layer starts at zero, so that a new critic says 0 instead of noise.
    """

    def __init__(self, width: int, hidden_sizes: Sequence[int]) -> None:
        """Make the layers from torch's global generator, which the caller has seeded."""
        super().__init__()
        sizes = [width, *hidden_sizes]
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        last = nn.Linear(sizes[-1], 1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.layers = nn.Sequential(*layers, last)

    def forward(self, hidden: Float[Tensor, "turn model"]) -> Float32[Tensor, " turn"]:
        """Return the value of each hidden state."""
        return self.layers(hidden.to(torch.float32)).squeeze(-1)
