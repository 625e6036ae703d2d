"""Fingerprints, and whole-or-absent writes of tensors with their manifests."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from jaxtyping import Shaped
from safetensors.torch import load_file, save_file  # pyright: ignore[reportUnknownVariableType]
from torch import Tensor

from gtr_turbo.errors import CheckpointError
from gtr_turbo.merging.arrays.manifests import (
    MANIFEST_NAME,
    read_manifest,
    sync_directory,
    write_json,
)

_READ_BYTES: Final = 1 << 20


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """Return the sha256 of names, types, shapes and bytes of `tensors`, sorted by name."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().to("cpu").contiguous()
        digest.update(fingerprint_head(name, tensor))
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def fingerprint_head(name: str, tensor: Shaped[Tensor, "..."]) -> bytes:
    """Return what a fingerprint takes in before the bytes of a tensor."""
    head = json.dumps([name, str(tensor.dtype), list(tensor.shape)])
    return head.encode("utf-8") + b"\n"


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write `tensors` as safetensors to `path`, whole or not at all; none share storage there."""
    beside = path.with_name(f".{path.name}.new")
    separate = _without_sharing(tensors)
    save_file(separate, beside, metadata=dict(metadata) if metadata else None)
    with beside.open("rb") as file:
        os.fsync(file.fileno())
    beside.replace(path)
    sync_directory(path.parent)


def save_state(directory: Path, tensors: Mapping[str, Tensor], manifest: Mapping[str, Any]) -> None:
    """Replace the state in `directory`; the manifest is moved last and decides what is valid.

    New sums are written beside the old, so that a kill at any moment leaves one whole state.
    """
    directory.mkdir(parents=True, exist_ok=True)
    generation = _next_generation(directory)
    path = directory / f"sums-{generation:06d}.safetensors"
    write_tensors(path, tensors)
    record = {"file": path.name, "sha256": file_sha256(path), "generation": generation}
    write_json(directory / MANIFEST_NAME, {"sums": record, "merge": manifest})
    for stale in directory.glob("sums-*.safetensors"):
        if stale.name != path.name:
            stale.unlink()


def load_state(directory: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the manifest that `save_state` wrote.

    Raises:
        CheckpointError: the directory holds no state, or the sums do not match their sha256.
    """
    manifest_path = directory / MANIFEST_NAME
    record = read_manifest(manifest_path)
    path = directory / record["sums"]["file"]
    if not path.is_file():
        raise CheckpointError(
            f"{manifest_path} names {path.name}, which is not there.",
            hint="the directory was changed by hand; restore it or merge again.",
        )
    found = file_sha256(path)
    if found != record["sums"]["sha256"]:
        raise CheckpointError(
            f"{path} has sha256 {found}, its manifest says {record['sums']['sha256']}.",
            hint="the file is damaged; merge again from the checkpoints.",
        )
    return load_file(path), record["merge"]


def _next_generation(directory: Path) -> int:
    stems = [path.stem for path in directory.glob("sums-*.safetensors")]
    numbers = [int(stem.removeprefix("sums-")) for stem in stems]
    return max(numbers, default=-1) + 1


def _without_sharing(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return contiguous CPU tensors of which no two share memory, as safetensors demands."""
    seen: set[int] = set()
    result: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        own = tensor.detach().to("cpu").contiguous()
        key = own.untyped_storage().data_ptr()
        whole = own.untyped_storage().nbytes() == own.nbytes
        if own.numel() and (key in seen or not whole):
            own = own.clone()
        seen.add(own.untyped_storage().data_ptr())
        result[name] = own
    return result
