"""A dense change that a policy with adapters carries beside them, once it was put onto a merge.

A merge of adapters is not of their rank, so no adapter can hold it. It is kept as it is: a second
product beside each frozen weight, never added to it, so that a bfloat16 base rounds nothing away.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import final

import torch
from jaxtyping import Float32
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.hooks import RemovableHandle

from gtr_turbo.merging import fingerprint
from gtr_turbo.merging.lora import AdapterChange
from gtr_turbo.policies.base import WeightChange


@final
class ShiftedChange(Mapping[str, Tensor]):
    """offset + scaling · B A by name, each made when it is asked for."""

    def __init__(self, offset: WeightChange, adapter: AdapterChange) -> None:
        """Wrap both; neither is copied."""
        self._offset, self._adapter = offset, adapter

    def __getitem__(self, name: str) -> Float32[Tensor, "row column"]:
        """Return the change of a weight, on the CPU."""
        return self._adapter[name].add_(self._offset[name])

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the changed weights."""
        return iter(self._adapter)

    def __len__(self) -> int:
        """Return the number of changed weights."""
        return len(self._adapter)


@final
class Offset:
    """The dense change itself, where there is one, acting through hooks on the frozen layers."""

    def __init__(self, layers: Mapping[str, nn.Module]) -> None:
        """Begin without one; `layers` are the frozen layers by the names of their weights."""
        self._layers = dict(layers)
        self._change: dict[str, Tensor] | None = None
        self._fingerprint: str | None = None
        self._placed: dict[str, Tensor] = {}
        self._handles: list[RemovableHandle] = []

    @property
    def change(self) -> WeightChange | None:
        """The change in float32 on the CPU; None where there is none."""
        return self._change

    @property
    def fingerprint(self) -> str | None:
        """Hash of the change; None where there is none."""
        return self._fingerprint

    def put(self, change: WeightChange) -> None:
        """Act with a copy of `change` from here on."""
        self.clear()
        self._change = {
            name: change[name].to("cpu", torch.float32, copy=True) for name in self._layers
        }
        self._fingerprint = fingerprint(self._change)
        self._placed = placed(self._layers, self._change)
        self._handles = add_beside(self._layers, self._placed)

    def clear(self) -> None:
        """Be without a change again."""
        _remove(self._handles)
        self._change, self._fingerprint, self._placed, self._handles = None, None, {}, []

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Act without the change for a while."""
        _remove(self._handles)
        try:
            yield
        finally:
            self._handles = add_beside(self._layers, self._placed)

    @torch.no_grad()
    def fold(self) -> None:
        """Add the change to the frozen weights, rounded once to their type, and be without it."""
        for name, delta in (self._change or {}).items():
            weight = self._layers[name].get_parameter("weight")
            weight.copy_(weight.float() + delta.to(weight.device))
        self.clear()


def placed(layers: Mapping[str, nn.Module], change: WeightChange) -> dict[str, Tensor]:
    """Return a change where its layers are, in their type."""
    found: dict[str, Tensor] = {}
    for name, layer in layers.items():
        weight = layer.get_parameter("weight")
        found[name] = change[name].to(weight.device, weight.dtype)
    return found


def add_beside(
    layers: Mapping[str, nn.Module], deltas: Mapping[str, Tensor]
) -> list[RemovableHandle]:
    """Let each layer add x Δᵀ to its output; return the handles that end it."""
    handles: list[RemovableHandle] = []
    for name, delta in deltas.items():

        def add(
            _: nn.Module, args: tuple[Tensor, ...], out: Tensor, delta: Tensor = delta
        ) -> Tensor:
            return out + functional.linear(args[0], delta)

        handles.append(layers[name].register_forward_hook(add))
    return handles


def _remove(handles: list[RemovableHandle]) -> None:
    for handle in handles:
        handle.remove()
