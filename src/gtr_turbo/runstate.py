"""The run directory: who owns it, what is in it, and that each part is whole or absent.

    config.yaml               resolved; a resume under another one is refused
    LOCK                      held by the process that owns the run
    checkpoints/update-0007/  MANIFEST.json names every file with its size and sha256
    teacher/update-0007/      the same form
    latest                    name of the newest checkpoint, moved last; a convenience

A directory is filled under a temporary name, synced, described by its manifest, synced, renamed. A
directory without a manifest that fits is not there, whatever else it holds.
"""

import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, final

from gtr_turbo.core.config import Config, config_hash, differences, parse_config, read_yaml, to_yaml
from gtr_turbo.core.faultline import fault_point
from gtr_turbo.core.files import (
    JSON,
    TEMPORARY_PREFIX,
    disk_full_error,
    dump_json,
    is_disk_full,
    sync_directory,
    temporary_path,
    write_text_atomically,
)
from gtr_turbo.core.lock import DirectoryLock
from gtr_turbo.core.manifest import (
    MANIFEST_FILE,
    REPLACED_PREFIX,
    damage,
    move_into_place,
    remove_directory,
    write_manifest,
)
from gtr_turbo.errors import CheckpointError, ResumeError

logger = logging.getLogger(__name__)

CONFIG_FILE = "config.yaml"
LATEST_FILE = "latest"
LOCK_FILE = "LOCK"
CHECKPOINTS = "checkpoints"
TEACHERS = "teacher"
RECORDED_PACKAGES = ("gtr-turbo", "torch", "transformers", "peft", "numpy")
_UPDATE_NAME = re.compile(r"update-(\d{4,})")


def newest_checkpoint(run: Path, *, with_teacher: bool = False) -> str | None:
    """Return the name of the newest checkpoint that is whole, None when there is none.

    `with_teacher` asks for a whole teacher of the same update too. Damaged newer ones are reported
    through `logging` and passed over.
    """
    for name in sorted(_update_names(run / CHECKPOINTS), key=_update_number, reverse=True):
        problem = damage(run / CHECKPOINTS / name)
        if problem is None and with_teacher:
            problem = damage(run / TEACHERS / name)
            problem = None if problem is None else f"its teacher is unusable: {problem}"
        if problem is None:
            return f"{CHECKPOINTS}/{name}"
        logger.warning("checkpoint %s is damaged and passed over: %s.", name, problem)
    return None


def _update_names(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return [path.name for path in folder.iterdir() if _UPDATE_NAME.fullmatch(path.name)]


def _update_number(name: str) -> int:
    return int(name.removeprefix("update-"))


def _sweep(run: Path) -> None:
    """Remove what a killed process left under temporary names; give back what it had set aside."""
    for folder, folders, files in os.walk(run):
        for name in [name for name in folders if name.startswith(TEMPORARY_PREFIX)]:
            folders.remove(name)
            target = Path(folder, name.removeprefix(REPLACED_PREFIX))
            if name.startswith(REPLACED_PREFIX) and not target.exists():
                os.rename(Path(folder, name), target)
            else:
                shutil.rmtree(Path(folder, name))
        for name in files:
            if name.startswith(TEMPORARY_PREFIX):
                Path(folder, name).unlink()


# ------------------------------------------------------------------------------ the run directory
@final
class RunDirectory:
    """A run on disk, owned by this process until it is closed."""

    def __init__(self, path: Path, lock: DirectoryLock) -> None:
        """Take an open lock; `RunDirectory.open` is the way to get one."""
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path, config: Config, *, resume: bool) -> "RunDirectory":
        """Return the run at `path`, started or continued, and locked for this process.

        Raises RunLockedError when another process owns it, ResumeError when it exists and `resume`
        is false, holds no readable configuration, or was made under another one. A refusal changes
        nothing on the disk.
        """
        is_run = (path / CONFIG_FILE).is_file()
        if not is_run:
            _refuse_remains(path)
        lock = DirectoryLock.take(path, LOCK_FILE, create=resume or not is_run)
        with ExitStack() as undo:
            undo.callback(lock.release)
            if is_run and not resume:
                raise ResumeError(
                    f"{path} already holds a run.",
                    hint="continue it with --resume, or choose another --run-dir.",
                )
            lock.sign()
            _sweep(path)
            if is_run:
                _check_config(path, config)
            else:
                if resume:
                    logger.warning("there is no run at %s to resume: starting it.", path)
                sync_directory(path.parent)
                _write_config(path, config)
            undo.pop_all()
        return cls(path, lock)

    def __enter__(self) -> "RunDirectory":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the run up for other processes."""
        self._lock.release()

    def write_directory(
        self, name: str, fill: Callable[[Path], None], extra: Mapping[str, JSON] = {}
    ) -> Path:
        """Return the path of the directory `name`, made whole by `fill` and a manifest.

        `fill` gets an empty directory and writes safetensors, JSON and plain text into it; `extra`
        joins the manifest. A directory of that name is replaced.

        Raises CheckpointError when the disk is full or `fill` wrote another format, NonFiniteError
        when `extra` holds a NaN. On any failure the run is as it was before.
        """
        target = self._inside(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        sync_directory(target.parent.parent)
        temporary = temporary_path(target)
        temporary.mkdir()
        fault_point("write.started")
        try:
            fill(temporary)
            fault_point("write.filled")
            write_manifest(temporary, extra)
            move_into_place(temporary, target)
        except Exception as error:  # a full disk: tokenizers has no class of its own for it
            if not is_disk_full(error):
                raise
            raise disk_full_error(target, _bytes_needed(temporary, target.parent)) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)  # there is none once it is in its place
        return target

    def verify_directory(self, name: str) -> bool:
        """Return whether every file of a written directory is there and has its sha256."""
        return damage(self._inside(name)) is None

    def read_manifest(self, name: str) -> dict[str, Any]:
        """Return a whole directory's manifest; raises CheckpointError when it is damaged."""
        directory = self._inside(name)
        problem = damage(directory)
        if problem is not None:
            raise CheckpointError(f"{directory} cannot be used: {problem}.")
        return json.loads((directory / MANIFEST_FILE).read_bytes())

    def newest_checkpoint(self, *, with_teacher: bool = False) -> str | None:
        """Return the name of the newest whole checkpoint, e.g. `checkpoints/update-0007`."""
        return newest_checkpoint(self.path, with_teacher=with_teacher)

    def set_latest(self, name: str) -> None:
        """Point the file `latest` at a written directory."""
        if not (self._inside(name) / MANIFEST_FILE).is_file():
            raise CheckpointError(f"`latest` cannot name {name}: it has no {MANIFEST_FILE}.")
        self.write_text(LATEST_FILE, f"{name}\n")

    def latest(self) -> str | None:
        """Return what the file `latest` names, None before the first checkpoint."""
        file = self.path / LATEST_FILE
        return file.read_text(encoding="utf-8").strip() if file.is_file() else None

    def prune(self, folder: str, keep: set[str] | int) -> None:
        """Delete the update directories of `folder` that are not kept.

        `keep` names them (`update-0007`), or says how many of the newest stay. Leftovers without a
        manifest go too; what `latest` names always stays.
        """
        home = self._inside(folder)
        whole = [n for n in _update_names(home) if (home / n / MANIFEST_FILE).is_file()]
        if isinstance(keep, int):
            if keep < 1:
                raise CheckpointError(f"at least one directory must stay, got keep = {keep}.")
            kept = set(sorted(whole, key=_update_number)[-keep:])
        else:
            kept = {PurePosixPath(name).name for name in keep} & set(whole)
        latest = PurePosixPath(self.latest() or "")
        if latest.parent == PurePosixPath(folder):
            kept.add(latest.name)
        for name in sorted(set(_update_names(home)) - kept, key=_update_number):
            remove_directory(home / name)
        if home.is_dir():
            sync_directory(home)

    def write_json(self, name: str, value: JSON) -> None:
        """Replace a JSON file as a whole; raises NonFiniteError for a NaN or an infinity."""
        self.write_text(name, dump_json(value, indent=2) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Replace a text file as a whole; raises CheckpointError when the disk is full."""
        target = self._inside(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(target, text)

    def _inside(self, name: str) -> Path:
        """Return the path of a name inside the run; refuses names that lead out of it."""
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or any(part.startswith(".") for part in parts):
            raise CheckpointError(
                f"`{name}` is not a name inside a run directory.",
                hint="use a relative name such as checkpoints/update-0007, without dots in front.",
            )
        return self.path.joinpath(*parts)


# ------------------------------------------------------------------------------------ their steps
def _refuse_remains(path: Path) -> None:
    """Refuse a directory that holds parts of a run but not its configuration."""
    remains = [name for name in (CHECKPOINTS, "metrics.jsonl") if (path / name).exists()]
    if remains:
        raise ResumeError(
            f"{path} holds {' and '.join(remains)}, but no {CONFIG_FILE}: it is not a whole run.",
            hint=f"put {CONFIG_FILE} back, or choose another --run-dir.",
        )


def _check_config(path: Path, config: Config) -> None:
    """Refuse another configuration; write down the changes that a resume may make."""
    old = parse_config(read_yaml(path / CONFIG_FILE))
    changed = differences(old, config)
    if changed:
        lines = "\n".join(f"  {line}" for line in changed)
        raise ResumeError(
            f"{path} was started under another configuration:\n{lines}",
            hint="leave these fields as they were, or choose another --run-dir for a new run.",
        )
    if old != config:
        _write_config(path, config)


def _write_config(path: Path, config: Config) -> None:
    versions = " · ".join(f"{name} {_version(name)}" for name in RECORDED_PACKAGES)
    header = f"# {versions}\n# sha256 of what decides the numbers: {config_hash(config)}\n"
    write_text_atomically(path / CONFIG_FILE, header + to_yaml(config))
    fault_point("config.written")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _bytes_needed(temporary: Path, folder: Path) -> int:
    """Return the size that a failed write was heading for: what it holds, or what siblings have."""
    directories = [temporary, *(folder / name for name in _update_names(folder))]
    return max(
        sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
        for directory in directories
    )
