"""JSON files that are there whole or not at all, and the manifest that says what is valid."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gtr_turbo.errors import CheckpointError

MANIFEST_NAME: Final = "manifest.json"


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` to `path`: a reader sees the old file or the new one, never a part."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the renames in directory `path` survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`; CheckpointError when it is missing or not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"there is no merge state in {path.parent}: {path.name} is missing.",
            hint="give the directory that an accumulator was saved to.",
        ) from error
    except json.JSONDecodeError as error:
        raise CheckpointError(
            f"{path} is not JSON: {error}.",
            hint="the file is damaged; merge again from the checkpoints.",
        ) from error
