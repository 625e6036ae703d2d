"""What the named tensors of a merge must have in common, and refusals where they have not."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.sources import check_same_names, check_same_shape
from gtr_turbo.merging.sources import AbstractTensorSource
from gtr_turbo.merging.tensors import check_type


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Names, shapes and ties of the tensors that a merge runs over."""

    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, torch.dtype]
    """Storage types of the result, by name."""
    leaders: Mapping[str, str]
    """Every name, and the name that stands for its shared storage (itself if it shares none)."""

    @property
    def merged_names(self) -> tuple[str, ...]:
        """Names of the floating-point tensors that are merged, each shared storage once."""
        return tuple(
            name
            for name, leader in self.leaders.items()
            if name == leader and self.dtypes[name].is_floating_point
        )

    @property
    def fixed_names(self) -> tuple[str, ...]:
        """Names of the tensors that are not floating-point and have to be equal everywhere."""
        return tuple(name for name, dtype in self.dtypes.items() if not dtype.is_floating_point)

    def to_json(self) -> dict[str, Any]:
        """Return the layout as JSON values."""
        return {
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
            "dtypes": {name: str(d).removeprefix("torch.") for name, d in self.dtypes.items()},
            "leaders": dict(self.leaders),
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> "Layout":
        """Return the layout that `to_json` described."""
        dtypes = {name: getattr(torch, dtype) for name, dtype in stored["dtypes"].items()}
        return Layout(
            shapes={name: tuple(shape) for name, shape in stored["shapes"].items()},
            dtypes=dtypes,
            leaders=dict(stored["leaders"]),
        )


def layout_of(source: AbstractTensorSource, tied: Sequence[Sequence[str]] = ()) -> Layout:
    """Return the layout of `source`; names are tied by shared storage or by a group of `tied`.

    Raises:
        MergeError: a group of `tied` has an unknown name, or members of different shape or values;
            or a tensor has a type that cannot be merged.
    """
    names = source.names()
    leaders: dict[str, str] = {}
    first_with: dict[Hashable, str] = {}
    for name in names:
        check_type(name, source.label, source.dtype(name))
        leaders[name] = first_with.setdefault(source.storage(name), name)
    for group in tied:
        _check_group(source, group)
        for name in group:
            leaders[name] = leaders[group[0]]
    return Layout(
        shapes={name: source.shape(name) for name in names},
        dtypes={name: source.dtype(name) for name in names},
        leaders=leaders,
    )


def check_names(layout: Layout, checkpoint: AbstractTensorSource) -> None:
    """Raise MergeError unless `checkpoint` has the names, shapes, kinds and ties of `layout`."""
    check_same_names(layout.shapes, checkpoint.names(), checkpoint.label)
    for name in layout.shapes:
        _check_kind(layout, checkpoint, name)
    _check_ties(layout, checkpoint)


def check_fixed(
    name: str, expected: Shaped[Tensor, "..."], found: Shaped[Tensor, "..."], label: str
) -> None:
    """Raise MergeError unless a tensor that is not floating-point equals the base's."""
    if expected.dtype != found.dtype or not torch.equal(expected, found.to(expected.device)):
        raise MergeError(
            f'tensor "{name}" of type {found.dtype} differs between the base and {label}.',
            hint="integer and boolean tensors are copied, not merged, so they must be equal.",
        )


def _check_kind(layout: Layout, checkpoint: AbstractTensorSource, name: str) -> None:
    check_same_shape(name, layout.shapes[name], checkpoint.shape(name), checkpoint.label)
    check_type(name, checkpoint.label, checkpoint.dtype(name))
    is_float = checkpoint.dtype(name).is_floating_point
    if is_float != layout.dtypes[name].is_floating_point:
        raise MergeError(
            f'tensor "{name}" of {checkpoint.label} has type {checkpoint.dtype(name)}, the base'
            f" {layout.dtypes[name]}.",
            hint="only floating-point tensors are merged; dequantise before merging.",
        )


def _check_ties(layout: Layout, checkpoint: AbstractTensorSource) -> None:
    for name, leader in layout.leaders.items():
        if name == leader or checkpoint.storage(name) == checkpoint.storage(leader):
            continue
        if not torch.equal(checkpoint.read(name), checkpoint.read(leader)):
            raise MergeError(
                f'tensors "{leader}" and "{name}" share their values in the base but differ in'
                f" {checkpoint.label}.",
                hint="tie the checkpoint's tensors, or merge with an untied base.",
            )


def _check_group(source: AbstractTensorSource, group: Sequence[str]) -> None:
    names = set(source.names())
    for name in group:
        if name not in names:
            raise MergeError(
                f'the tied group {list(group)} names "{name}", which {source.label} does not have.',
                hint="list only names of the base.",
            )
        if not torch.equal(source.read(name), source.read(group[0])):
            raise MergeError(
                f'tensors "{group[0]}" and "{name}" are to be tied but differ in {source.label}.',
                hint="tied tensors hold the same values.",
            )
