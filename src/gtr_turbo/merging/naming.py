"""What the named tensors of a merge must have in common, and refusals where they have not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError

_NAMES_SHOWN = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Names, shapes and ties of the tensors that a merge runs over."""

    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, torch.dtype]
    """Storage types of the result, by name."""
    leaders: Mapping[str, str]
    """Every name, and the name that stands for its shared storage (itself when it shares none)."""

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


def layout_of(
    tensors: Mapping[str, Tensor], tied: Sequence[Sequence[str]] = (), *, label: str = "the base"
) -> Layout:
    """Return the layout of `tensors`; names are tied by shared storage or by a group of `tied`.

    Raises:
        MergeError: a group of `tied` has an unknown name, or members of different shape or values.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    dtypes = {name: tensor.dtype for name, tensor in tensors.items()}
    leaders: dict[str, str] = {}
    first_with: dict[object, str] = {}
    for name, tensor in tensors.items():
        key = _storage_key(tensor)
        leaders[name] = name if key is None else first_with.setdefault(key, name)
    for group in tied:
        _check_group(tensors, group, label)
        for name in group:
            leaders[name] = leaders[group[0]]
    return Layout(shapes=shapes, dtypes=dtypes, leaders=leaders)


def check_names(layout: Layout, checkpoint: Mapping[str, Tensor], label: str) -> None:
    """Raise MergeError unless `checkpoint` has the names, shapes, kinds and ties of `layout`."""
    missing = [name for name in layout.shapes if name not in checkpoint]
    extra = [name for name in checkpoint if name not in layout.shapes]
    if missing or extra:
        parts = [
            f"{verb} {_shown(names)}"
            for verb, names in (("lacks", missing), ("has in addition", extra))
            if names
        ]
        raise MergeError(
            f"{label} {' and '.join(parts)}; every checkpoint has exactly the base's tensors.",
            hint="a missing tensor is not an unchanged one; check that all come from the same run.",
        )
    for name, shape in layout.shapes.items():
        found = tuple(checkpoint[name].shape)
        if found != shape:
            raise MergeError(
                f'tensor "{name}" of {label} has shape {found}, the base has {shape}.',
                hint="tensors are never cropped or padded; check vocabulary and adapter ranks.",
            )
        is_float = checkpoint[name].dtype.is_floating_point
        if is_float != layout.dtypes[name].is_floating_point:
            raise MergeError(
                f'tensor "{name}" of {label} has type {checkpoint[name].dtype}, the base'
                f" {layout.dtypes[name]}.",
                hint="only floating-point tensors are merged; dequantise before merging.",
            )
    check_ties(layout, checkpoint, label)


def check_ties(layout: Layout, checkpoint: Mapping[str, Tensor], label: str) -> None:
    """Raise MergeError when tensors that are tied in `layout` differ in `checkpoint`."""
    for name, leader in layout.leaders.items():
        if name == leader:
            continue
        ours, first = checkpoint[name], checkpoint[leader]
        if _storage_key(ours) != _storage_key(first) and not torch.equal(ours, first):
            raise MergeError(
                f'tensors "{leader}" and "{name}" share their values in the base but differ in'
                f" {label}.",
                hint="tie the checkpoint's tensors, or merge with an untied base.",
            )


def check_fixed(
    name: str, expected: Shaped[Tensor, "..."], found: Shaped[Tensor, "..."], label: str
) -> None:
    """Raise MergeError unless a tensor that is not floating-point equals the base's."""
    if not torch.equal(expected, found.to(expected.device)):
        raise MergeError(
            f'tensor "{name}" of type {found.dtype} differs between the base and {label}.',
            hint="integer and boolean tensors are copied, not merged, so they must be equal.",
        )


def _storage_key(tensor: Shaped[Tensor, "..."]) -> tuple[object, ...] | None:
    if tensor.numel() == 0 or tensor.device.type == "meta":
        return None
    return (
        str(tensor.device),
        tensor.data_ptr(),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.dtype,
    )


def _check_group(tensors: Mapping[str, Tensor], group: Sequence[str], label: str) -> None:
    for name in group:
        if name not in tensors:
            raise MergeError(
                f'the tied group {list(group)} names "{name}", which {label} does not have.',
                hint="list only names of the base.",
            )
        if not torch.equal(tensors[name], tensors[group[0]]):
            raise MergeError(
                f'tensors "{group[0]}" and "{name}" are to be tied but differ in {label}.',
                hint="tied tensors hold the same values.",
            )


def _shown(names: Sequence[str]) -> str:
    quoted = ", ".join(f'"{name}"' for name in names[:_NAMES_SHOWN])
    rest = len(names) - _NAMES_SHOWN
    return quoted if rest <= 0 else f"{quoted} and {rest} more"
