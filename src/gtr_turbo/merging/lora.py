"""LoRA adapters as changes: scaling * B @ A per module, never the factors one by one.

B @ A is bilinear, so a merge of the A's and of the B's is not a merge of what they do. Axes: rank,
row = output of a module, column = its input.
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import torch
from jaxtyping import Float, Float32, Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.api import merge, merge_stream
from gtr_turbo.merging.problem import make_problem
from gtr_turbo.merging.sources import AbstractTensorSource
from gtr_turbo.merging.weights import Real, check_weights

TILE_ROWS: Final = 256
"""Rows of a change that are made at a time. Fixed, because other blocks round B @ A otherwise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoraFactors:
    """The adapter of one linear module; its change is scaling * B @ A."""

    a: Float[Tensor, "rank column"]
    b: Float[Tensor, "row rank"]
    scaling: Real
    """alpha / r, or alpha / sqrt(r) with rsLoRA: the module's own, after rank or alpha patterns."""

    @property
    def rank(self) -> int:
        """Rank of the adapter."""
        return self.a.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the change: (outputs, inputs)."""
        return (self.b.shape[0], self.a.shape[1])


Adapter = Mapping[str, LoraFactors]
"""The adapted modules of a model, by name."""


def lora_scaling(rank: int, alpha: Real, *, use_rslora: bool = False) -> float:
    """Return alpha / rank, or alpha / sqrt(rank) with rank-stabilised LoRA (arXiv 2312.03732).

    >>> lora_scaling(128, 256)
    2.0
    """
    if rank < 1:
        raise MergeError(
            f"the rank of an adapter must be at least 1, got {rank}.",
            hint="check `r` and `rank_pattern` in adapter_config.json.",
        )
    return alpha / math.sqrt(rank) if use_rslora else alpha / rank


def lora_delta(
    a: Float[Tensor, "rank column"], b: Float[Tensor, "row rank"], scaling: Real
) -> Float32[Tensor, "row column"]:
    """Return scaling * B @ A in float32."""
    result = torch.empty((b.shape[0], a.shape[1]), dtype=torch.float32, device=b.device)
    inner = a.detach().to(torch.float32)
    for start in range(0, b.shape[0], TILE_ROWS):
        rows = b[start : start + TILE_ROWS].detach().to(torch.float32)
        torch.mul(rows @ inner, scaling, out=result[start : start + TILE_ROWS])
    return result


@final
class AdapterChange(Mapping[str, Tensor]):
    """The dense changes of an adapter by name, each made when it is asked for.

    The factors are copied, so that training on does not move them; a 7B model's dense changes
    together are many times its adapter.
    """

    def __init__(self, adapter: Adapter) -> None:
        """Copy the factors in float32, on the device where they are."""
        self.adapter = {
            name: LoraFactors(
                a=own.a.detach().to(torch.float32, copy=True),
                b=own.b.detach().to(torch.float32, copy=True),
                scaling=own.scaling,
            )
            for name, own in adapter.items()
        }

    def __getitem__(self, name: str) -> Float32[Tensor, "row column"]:
        """Return scaling * B @ A of a module, on the CPU."""
        own = self.adapter[name]
        return lora_delta(own.a, own.b, own.scaling).cpu()

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the adapted modules."""
        return iter(self.adapter)

    def __len__(self) -> int:
        """Return the number of adapted modules."""
        return len(self.adapter)


@final
class AdapterChanges(AbstractTensorSource):
    """The dense changes of an adapter, made one module at a time when they are read."""

    def __init__(self, adapter: Adapter, label: str) -> None:
        """Wrap `adapter`, which is not copied."""
        self._adapter = adapter
        self._label = label

    @property
    def label(self) -> str:
        """What messages call this adapter."""
        return self._label

    def names(self) -> tuple[str, ...]:
        """Return the names of the adapted modules."""
        return tuple(self._adapter)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of the change of a module."""
        return self._adapter[name].shape

    def dtype(self, name: str) -> torch.dtype:
        """Return float32: changes are made in it whatever the factors are stored in."""
        del name
        return torch.float32

    def storage(self, name: str) -> Hashable:
        """Return the name: changes share nothing."""
        return name

    def read(self, name: str) -> Shaped[Tensor, "..."]:
        """Return scaling * B @ A of a module."""
        factors = self._adapter[name]
        return lora_delta(factors.a, factors.b, factors.scaling)


def merge_adapters(
    adapters: Sequence[Adapter],
    *,
    method: str = "ties",
    weights: Sequence[Real] | None = None,
    scale: Real = 1.0,
    reference: Adapter | None = None,
    **options: Any,
) -> dict[str, Tensor]:
    """Return the merged dense change by module, float32. Ranks and scalings may differ.

    Args:
        adapters: Adapters of the same modules, oldest first.
        method: A name in `METHODS`.
        weights: One per adapter; None: all count the same.
        scale: Factor of the merged change.
        reference: The adapter that training started from, if that was not zero; changes are then
            relative to its change, and the result contains it.
        **options: Options of the method, `density` included.

    Raises:
        MergeError: the adapters have different modules or shapes, or the method refuses them.
    """
    return dict(
        stream_adapters(
            adapters,
            method=method,
            weights=weights,
            scale=scale,
            reference=reference,
            options=options,
        )
    )


def stream_adapters(
    adapters: Sequence[Adapter],
    *,
    method: str,
    weights: Sequence[Real] | None = None,
    scale: Real = 1.0,
    reference: Adapter | None = None,
    options: Mapping[str, Any],
) -> Iterator[tuple[str, Tensor]]:
    """Yield (module, merged dense change), with one module's changes in memory at a time."""
    sources = [AdapterChanges(own, f"checkpoint-{at}") for at, own in enumerate(adapters)]
    base = None if reference is None else AdapterChanges(reference, "the reference adapter")
    problem = make_problem(base, sources, weights=weights, scale=scale)
    return merge_stream(problem, method, options)


def concatenate_adapters(
    adapters: Sequence[Adapter], weights: Sequence[Real] | None = None
) -> dict[str, LoraFactors]:
    """Return the linear mean of the changes as one adapter, exactly.

    B = [w_1 s_1 B_1 | … | w_K s_K B_K] / sum w, A = [A_1; …; A_K], scaling 1: the ranks add up.
    """
    checked = check_weights(weights, len(adapters))
    total = sum(checked)
    _check_modules(adapters)
    merged: dict[str, LoraFactors] = {}
    for name in adapters[0]:
        own = [adapter[name] for adapter in adapters]
        left = [
            factors.b.detach().to(torch.float32) * (weight * factors.scaling / total)
            for factors, weight in zip(own, checked, strict=True)
        ]
        right = [factors.a.detach().to(torch.float32) for factors in own]
        merged[name] = LoraFactors(a=torch.cat(right), b=torch.cat(left, dim=1), scaling=1.0)
    return merged


def imitate_factor_merge(
    adapters: Sequence[Adapter], *, method: str = "ties", **options: Any
) -> dict[str, LoraFactors]:
    """Return adapters merged factor by factor, as some released code does. An imitation only.

    This is not a merge of the changes: it misses them by more than TIES differs from a plain mean.
    Use it to reproduce such code, never as the teacher of a new run.

    Raises:
        MergeError: modules, shapes, ranks or scalings differ between the adapters.
    """
    _check_modules(adapters)
    check_factors(adapters, [f"checkpoint-{index}" for index in range(len(adapters))])
    merged_a = merge(None, [_only(adapter, "a") for adapter in adapters], method=method, **options)
    merged_b = merge(None, [_only(adapter, "b") for adapter in adapters], method=method, **options)
    return {
        name: LoraFactors(a=merged_a[name], b=merged_b[name], scaling=first.scaling)
        for name, first in adapters[0].items()
    }


def check_factors(adapters: Sequence[Adapter], labels: Sequence[str]) -> None:
    """Raise MergeError unless each module has one rank and one scaling in all adapters."""
    for name, first in adapters[0].items():
        for label, adapter in zip(labels, adapters, strict=True):
            own = adapter[name]
            if (own.rank, own.scaling) != (first.rank, first.scaling):
                raise MergeError(
                    f'module "{name}" has rank {own.rank} and scaling {own.scaling} in {label}, but'
                    f" {first.rank} and {first.scaling} in {labels[0]}.",
                    hint="factors of different rank cannot be merged; merge the changes instead.",
                )


def _only(adapter: Adapter, factor: str) -> dict[str, Tensor]:
    pairs = {name: {"a": own.a, "b": own.b} for name, own in adapter.items()}
    return {name: pair[factor].detach().to(torch.float32) for name, pair in pairs.items()}


def _check_modules(adapters: Sequence[Adapter]) -> None:
    """Raise MergeError unless all adapters have the same modules with the same outer shapes."""
    shapes = {name: own.shape for name, own in adapters[0].items()}
    for index, adapter in enumerate(adapters):
        found = {name: own.shape for name, own in adapter.items()}
        differing = sorted(name for name in shapes.keys() | found.keys()
                           if shapes.get(name) != found.get(name))  # fmt: skip
        if differing:
            name = differing[0]
            raise MergeError(
                f'module "{name}" has shape {found.get(name)} in checkpoint-{index}, but'
                f" {shapes.get(name)} in checkpoint-0; None means that it is not adapted.",
                hint="merge adapters of one run only: the same target modules, the same model.",
            )
