"""Writing of merged models and changes, and the check of what was written."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import torch
from jaxtyping import Shaped
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.arrays.directories import INDEX_FILE, read_json
from gtr_turbo.merging.arrays.manifests import write_json
from gtr_turbo.merging.changes import apply_delta
from gtr_turbo.merging.io import fingerprint_head
from gtr_turbo.merging.model_files import ModelFiles
from gtr_turbo.merging.problem import MergeProblem
from gtr_turbo.merging.safetensors_files import TensorWriter, read_entry, read_header
from gtr_turbo.merging.sources import AbstractTensorSource

CHANGE_FILE: Final = "merged_change.safetensors"
_COMPANIONS: Final = (".json", ".txt", ".jinja", ".model", ".tiktoken")
_NOT_COPIED: Final = (INDEX_FILE, "adapter_config.json", "manifest.json")
_TYPE_FIELDS: Final = ("dtype", "torch_dtype")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What is on disk after a merge."""

    num_tensors: int
    num_parameters: int
    num_changed_tensors: int
    fingerprint: str
    residual: float


def apply_changes(
    base: ModelFiles, changes: Iterator[tuple[str, Tensor]], dtype: torch.dtype | None
) -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor of `base`: base + change where there is one, else a copy."""
    done: set[str] = set()
    for name, change in changes:
        done.add(name)
        own = base.read(name)
        if tuple(own.shape) != tuple(change.shape):
            raise MergeError(
                f'the adapters change "{name}" by a tensor of shape {tuple(change.shape)}, the base'
                f" has {tuple(own.shape)}.",
                hint="give the base that the adapters were trained on.",
            )
        flat = apply_delta(own.reshape(-1), change.reshape(-1), dtype or own.dtype, name)
        yield name, flat.reshape(own.shape)
    for name in base.names():
        if name not in done:
            yield name, base.read(name)


def write_model(
    like: ModelFiles,
    merged: Iterator[tuple[str, Tensor]],
    out: Path,
    dtype: torch.dtype | None,
    progress: Callable[[str, int, int], None],
) -> int:
    """Write the tensors into the same files as `like` has, in any order of arrival.

    Returns the number of tensors that differ from those of `like`.
    """
    plans: dict[str, dict[str, tuple[torch.dtype, tuple[int, ...]]]] = {}
    for name in like.names():
        target = target_dtype(like.dtype(name), dtype)
        plans.setdefault(like.file_of(name), {})[name] = (target, like.shape(name))
    num_changed = 0
    with ExitStack() as stack:
        writers = {
            file: stack.enter_context(TensorWriter(out / file, plan))
            for file, plan in plans.items()
        }
        for count, (name, tensor) in enumerate(merged, start=1):
            original = like.read(name)
            own = tensor.to(target_dtype(original.dtype, dtype))
            writers[like.file_of(name)].write(name, own)
            num_changed += not torch.equal(own, original.to(own.dtype))
            progress("merge", count, len(like.names()))
        for writer in writers.values():
            writer.finish()
    if len(plans) > 1:
        total = sum(
            dt.itemsize * torch.Size(shape).numel()
            for plan in plans.values()
            for dt, shape in plan.values()
        )
        weight_map = {name: like.file_of(name) for name in like.names()}
        write_json(out / INDEX_FILE, {"metadata": {"total_size": total}, "weight_map": weight_map})
    return num_changed


def write_change(
    problem: MergeProblem,
    merged: Iterator[tuple[str, Tensor]],
    out: Path,
    progress: Callable[[str, int, int], None],
) -> Written:
    """Write the dense merged change as one safetensors file."""
    shapes = problem.layout.shapes
    path = out / CHANGE_FILE
    num_changed = 0
    announced = {name: (torch.float32, shape) for name, shape in shapes.items()}
    with TensorWriter(path, announced) as writer:
        for count, (name, tensor) in enumerate(merged, start=1):
            writer.write(name, tensor)
            num_changed += bool(tensor.any())
            progress("merge", count, len(shapes))
        writer.finish()
    return written_file(path, num_changed, 0.0)


def written_file(path: Path, num_changed: int, residual: float) -> Written:
    """Return counts and fingerprint of one written safetensors file, read back from disk."""
    entries = read_header(path)
    digest = hashlib.sha256()
    for name in sorted(entries):
        _include(digest, name, read_entry(entries[name]))
    return Written(
        num_tensors=len(entries),
        num_parameters=sum(torch.Size(entry.shape).numel() for entry in entries.values()),
        num_changed_tensors=num_changed,
        fingerprint=digest.hexdigest(),
        residual=residual,
    )


def copy_companions(source: Path, out: Path, dtype: torch.dtype | None) -> None:
    """Copy configuration, tokenizer and processor files, with `dtype` written where it is named."""
    if source.is_file():
        return
    for path in sorted(source.iterdir()):
        if path.suffix not in _COMPANIONS or path.name in _NOT_COPIED:
            continue
        if path.name == "config.json" and dtype is not None:
            config = _with_dtype(read_json(path), str(dtype).removeprefix("torch."))
            (out / path.name).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        else:
            shutil.copyfile(path, out / path.name)


def verify(
    like: ModelFiles,
    out: Path,
    dtype: torch.dtype | None,
    num_changed: int,
    progress: Callable[[str, int, int], None],
) -> Written:
    """Return what was written, read back from disk and held against `like`.

    Raises:
        MergeError: a tensor is missing, new, of another shape or type, or not finite; so vision
            towers and tied weights are as they were.
    """
    found = ModelFiles(out, "the merged model")
    odd = set(like.names()) ^ set(found.names())
    if odd:
        raise MergeError(
            f'tensor "{min(odd)}" stands in the base or in the merged model, but not in both.',
            hint="this is a fault of the merge itself; please report it.",
        )
    digest = hashlib.sha256()
    for count, name in enumerate(sorted(found.names()), start=1):
        _check_written(like, found, name, dtype)
        tensor = found.read(name)
        if tensor.dtype.is_floating_point and not bool(torch.isfinite(tensor).all()):
            raise MergeError(
                f'the merged tensor "{name}" is not finite in {tensor.dtype}.',
                hint="write float32 or bfloat16, or lower the scale.",
            )
        _include(digest, name, tensor)
        progress("verify", count, len(found.names()))
    return Written(
        num_tensors=len(found.names()),
        num_parameters=num_parameters(found),
        num_changed_tensors=num_changed,
        fingerprint=digest.hexdigest(),
        residual=0.0,
    )


def num_parameters(source: AbstractTensorSource) -> int:
    """Return the number of entries of all tensors."""
    return sum(torch.Size(source.shape(name)).numel() for name in source.names())


def target_dtype(original: torch.dtype, dtype: torch.dtype | None) -> torch.dtype:
    """Return the type that a tensor is written in: `dtype` for floating-point ones, if given."""
    return dtype if dtype is not None and original.is_floating_point else original


def _check_written(
    like: ModelFiles, found: ModelFiles, name: str, dtype: torch.dtype | None
) -> None:
    expected = (target_dtype(like.dtype(name), dtype), like.shape(name))
    actual = (found.dtype(name), found.shape(name))
    if actual != expected:
        raise MergeError(
            f'tensor "{name}" was written as {actual}, expected {expected}.',
            hint="this is a fault of the merge itself; please report it.",
        )


def _include(digest: Any, name: str, tensor: Shaped[Tensor, "..."]) -> None:
    digest.update(fingerprint_head(name, tensor))
    digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)


def _with_dtype(config: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            changed[key] = _with_dtype(value, dtype)  # pyright: ignore[reportUnknownArgumentType]
        else:
            changed[key] = dtype if key in _TYPE_FIELDS and value is not None else value
    return changed
