"""Whole models on disk, in one safetensors file or in shards, as sources of named tensors."""

import json
from collections.abc import Collection, Hashable, Mapping
from pathlib import Path
from typing import Any, Final, final

import torch
from jaxtyping import Shaped
from torch import Tensor

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.safetensors_files import Entry, read_entry, read_header
from gtr_turbo.merging.sources import AbstractTensorSource

SINGLE_FILE: Final = "model.safetensors"
INDEX_FILE: Final = "model.safetensors.index.json"
_UNREADABLE: Final = ("pytorch_model.bin", "pytorch_model.bin.index.json")


@final
class ModelFiles(AbstractTensorSource):
    """The tensors of a model directory (or of one safetensors file), read one at a time."""

    def __init__(
        self, path: Path, label: str | None = None, named_like: Collection[str] = ()
    ) -> None:
        """Read the headers below `path`.

        Args:
            path: Model directory or safetensors file.
            label: What messages call it; None: the path.
            named_like: Names of the base; weights that were stored under their module names get the
                base's names where those can be told.

        Raises:
            CheckpointError: there is no model, or a shard is missing or damaged.
            MergeError: the model is quantised, or stored as pickle.
        """
        self._path = path
        self._label = label or str(path)
        entries = _entries_of(path)
        self._entries = {
            find_stored_name(name, named_like) or name: entry for name, entry in entries.items()
        }
        _refuse_quantised(path)

    @property
    def label(self) -> str:
        """What messages call this model."""
        return self._label

    @property
    def path(self) -> Path:
        """Directory or file of the model."""
        return self._path

    def names(self) -> tuple[str, ...]:
        """Return the names of all tensors, file by file, in the order of their bytes."""
        return tuple(self._entries)

    def file_of(self, name: str) -> str:
        """Return the name of the file that holds a tensor."""
        return self._entries[name].path.name

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor, from the header."""
        return self._entries[name].shape

    def dtype(self, name: str) -> torch.dtype:
        """Return the type of a tensor, from the header."""
        return self._entries[name].dtype

    def storage(self, name: str) -> Hashable:
        """Return the name: a file holds each tensor once, and tied ones are left out of it."""
        return name

    def read(self, name: str) -> Shaped[Tensor, "..."]:
        """Return a tensor in memory of its own."""
        return read_entry(self._entries[name])


def find_stored_name(name: str, known: Collection[str]) -> str | None:
    """Return what a weight of the network is called in the files of its model, None if nowhere.

    Vision-language models are saved under older names than their modules have.
    """
    candidates = (
        name,
        name.replace("model.language_model.", "model.", 1),
        name.replace("model.language_model.", "language_model.model.", 1),
        name.replace("model.visual.", "visual.", 1),
        name.removeprefix("model."),
    )
    return next((candidate for candidate in candidates if candidate in known), None)


def is_model(path: Path) -> bool:
    """Return whether `path` is a model directory with safetensors weights, or such a file."""
    if path.is_file():
        return path.suffix == ".safetensors"
    return (path / SINGLE_FILE).is_file() or (path / INDEX_FILE).is_file()


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`; CheckpointError when there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"there is no file {path}.", hint="the directory is incomplete; fetch it again."
        ) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{path} is not JSON: {error}.", hint="the file is damaged; fetch it again."
        ) from error
    if not isinstance(found, dict):
        raise CheckpointError(
            f"{path} holds {type(found).__name__}, not a JSON object.",
            hint="the file is damaged; fetch it again.",
        )
    return found  # pyright: ignore[reportUnknownVariableType]


def _entries_of(path: Path) -> dict[str, Entry]:
    if path.is_file():
        return read_header(path)
    if (path / INDEX_FILE).is_file():
        return _sharded(path)
    if (path / SINGLE_FILE).is_file():
        return read_header(path / SINGLE_FILE)
    for name in _UNREADABLE:
        if (path / name).is_file():
            raise MergeError(
                f"{path} holds {name}, a pickle; merges read safetensors only.",
                hint="load it once with transformers and save it again.",
            )
    raise CheckpointError(
        f"there is no model in {path}: neither {SINGLE_FILE} nor {INDEX_FILE}.",
        hint="give a model directory, an adapter directory or a run directory.",
    )


def _sharded(path: Path) -> dict[str, Entry]:
    weight_map = read_json(path / INDEX_FILE).get("weight_map")
    if not isinstance(weight_map, Mapping) or not weight_map:
        raise CheckpointError(
            f"{path / INDEX_FILE} has no weight map.", hint="the file is damaged; fetch it again."
        )
    files = {str(name): str(file) for name, file in weight_map.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    entries: dict[str, Entry] = {}
    for file in sorted(set(files.values())):
        if Path(file).name != file:
            raise CheckpointError(
                f'{path / INDEX_FILE} points to "{file}", outside of the directory.',
                hint="an index names files beside itself.",
            )
        entries |= read_header(path / file)
    if entries.keys() != files.keys():
        odd = min(entries.keys() ^ files.keys())
        raise CheckpointError(
            f'tensor "{odd}" stands either in the index of {path} or in a shard, but not in both.',
            hint="the shards belong to different models; fetch the directory again.",
        )
    return entries


def _refuse_quantised(path: Path) -> None:
    config = path / "config.json"
    if not config.is_file():
        return
    quantisation = read_json(config).get("quantization_config")
    if quantisation is not None:
        raise MergeError(
            f"{config} says that the model is quantised; merging would round twice.",
            hint="give the model in float32 or bfloat16, before quantisation.",
        )
