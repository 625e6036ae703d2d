"""Where the weights of a model directory are: in one safetensors file or in shards."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.arrays.files import Entry, read_header

SINGLE_FILE: Final = "model.safetensors"
INDEX_FILE: Final = "model.safetensors.index.json"
_UNREADABLE: Final = ("pytorch_model.bin", "pytorch_model.bin.index.json")


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


def entries_of(path: Path) -> dict[str, Entry]:
    """Return the tensors of a model directory or of one safetensors file by name.

    Raises:
        CheckpointError: there is no model, or a shard is missing or damaged.
        MergeError: the model is stored as pickle.
    """
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


def refuse_quantised(path: Path) -> None:
    """Raise MergeError when the configuration of a model says that it is quantised."""
    config = path / "config.json"
    if not config.is_file():
        return
    quantisation = read_json(config).get("quantization_config")
    if quantisation is not None:
        raise MergeError(
            f"{config} says that the model is quantised; merging would round twice.",
            hint="give the model in float32 or bfloat16, before quantisation.",
        )
