"""Directories that are whole or absent: a manifest names every file with its size and sha256.

The manifest is written last, and covers itself with a sha256 too: a directory without a manifest
that fits is not there, whatever else it holds. Only formats that cannot run anything are accepted.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gtr_turbo.core.faultline import fault_point
from gtr_turbo.core.files import (
    JSON,
    TEMPORARY_PREFIX,
    dump_json,
    file_sha256,
    sync_directory,
    sync_file,
)
from gtr_turbo.errors import CheckpointError

MANIFEST_FILE = "MANIFEST.json"
MANIFEST_VERSION = 1
REPLACED_PREFIX = f"{TEMPORARY_PREFIX}replaced-"
SAFE_SUFFIXES = frozenset({".safetensors", ".json", ".txt", ".md", ".jinja"})
"""Tensors, JSON and plain text: nothing that a loader could execute."""
HASHING_THREADS = 4
"""hashlib frees the interpreter lock, and one thread hashes slower than a disk reads."""


def damage(directory: Path) -> str | None:
    """Return what is wrong with a directory, None when all of it is as its manifest says."""
    manifest_path = directory / MANIFEST_FILE
    if directory.is_symlink() or not manifest_path.is_file() or manifest_path.is_symlink():
        return f"{MANIFEST_FILE} is missing"
    raw = manifest_path.read_bytes()
    try:
        manifest = json.loads(raw)
    except ValueError:
        return f"{MANIFEST_FILE} is not JSON"
    if not isinstance(manifest, dict) or raw != _manifest_bytes(manifest):
        return f"{MANIFEST_FILE} does not match its own sha256"
    if manifest.get("version") != MANIFEST_VERSION:
        return f"{MANIFEST_FILE} has version {manifest.get('version')}, not {MANIFEST_VERSION}"
    files = manifest.get("files")
    if not isinstance(files, dict):
        return f"{MANIFEST_FILE} lists no files"
    return _damage_of_files(directory, files)


def _damage_of_files(directory: Path, listed: Mapping[str, Any]) -> str | None:
    try:
        present = set(_content(directory))
    except CheckpointError as error:
        return error.message
    if present != set(listed):
        odd = sorted(present ^ set(listed))
        return f"{odd[0]} is {'not in the manifest' if odd[0] in present else 'missing'}"
    sizes = {name: (directory / name).stat().st_size for name in sorted(listed)}
    hashes = _hashes(directory, sorted(listed))
    for name in sizes:
        if [sizes[name], hashes[name]] != listed[name]:
            return f"{name} does not match its size and sha256"
    return None


def _content(directory: Path) -> list[str]:
    """Return the files of a directory as relative names, its manifest left out.

    Raises CheckpointError for links, and for formats that a loader could execute.
    """
    names: list[str] = []
    for folder, folders, files in os.walk(directory):
        for entry in sorted([*folders, *files]):
            path = Path(folder, entry)
            name = path.relative_to(directory).as_posix()
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise CheckpointError(f"{name} is a link or a special file")
            if path.is_file() and path.suffix not in SAFE_SUFFIXES:
                raise CheckpointError(f"{name} is neither safetensors nor JSON nor plain text")
            if path.is_file() and name != MANIFEST_FILE:
                names.append(name)
    return sorted(names)


def _hashes(directory: Path, names: list[str]) -> dict[str, str]:
    with ThreadPoolExecutor(HASHING_THREADS) as threads:
        found = threads.map(file_sha256, [directory / name for name in names])
        return dict(zip(names, found, strict=True))


def _manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """Return a manifest's only valid spelling; `sha256` covers everything else in it."""
    body = {key: manifest[key] for key in manifest if key != "sha256"}
    digest = hashlib.sha256(dump_json(body, indent=1).encode()).hexdigest()
    return (dump_json({**body, "sha256": digest}, indent=1) + "\n").encode()


def remove_directory(directory: Path) -> None:
    """Delete a directory, its manifest first: a kill on the way leaves nothing that looks whole."""
    manifest = directory / MANIFEST_FILE
    if manifest.exists():
        manifest.unlink()
        fault_point("prune.manifest")
        sync_directory(directory)
    for name in sorted(os.listdir(directory)):
        path = directory / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        fault_point("prune.file")
    directory.rmdir()
    fault_point("prune.done")


def write_manifest(directory: Path, extra: Mapping[str, JSON]) -> None:
    """Sync every file of a filled directory, then describe them in its manifest."""
    names = _content(directory)
    for name in names:
        sync_file(directory / name)
        fault_point("write.synced")
    hashes = _hashes(directory, names)
    files = {name: [(directory / name).stat().st_size, hashes[name]] for name in names}
    raw = _manifest_bytes({"version": MANIFEST_VERSION, "files": files, **extra})
    with (directory / MANIFEST_FILE).open("wb") as file:
        file.write(raw)
        file.flush()
        fault_point("write.manifest")
        os.fsync(file.fileno())
    for folder, _, _ in os.walk(directory, topdown=False):
        sync_directory(Path(folder))
    fault_point("write.manifest_synced")


def move_into_place(temporary: Path, target: Path) -> None:
    """Rename; what stood there is set aside first and deleted last, or given back on a failure."""
    replaced = target.parent / f"{REPLACED_PREFIX}{target.name}"

    def give_back() -> None:
        if replaced.exists() and not target.exists():
            os.rename(replaced, target)

    with ExitStack() as undo:
        undo.callback(give_back)
        if target.exists():
            shutil.rmtree(replaced, ignore_errors=True)
            os.rename(target, replaced)
            fault_point("write.set_aside")
        os.rename(temporary, target)
        undo.pop_all()
    fault_point("write.renamed")
    sync_directory(target.parent)
    fault_point("write.parent_synced")
    if replaced.exists():
        shutil.rmtree(replaced)
        fault_point("write.replaced_removed")
