"""Supervised starts that several runs share: made once, then given to each.

Arms of one seed that differ after the supervised start alone would all repeat it, to the same bits.
A shared start is made under a configuration that holds what a start depends on and defaults for
everything else, so it cannot depend on an arm's other fields.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

from gtr_turbo.core.config import Config, flatten, parse_config
from gtr_turbo.core.files import temporary_path
from gtr_turbo.core.manifest import damage
from gtr_turbo.core.overrides import put

SECTIONS: Final = ("task", "model", "lora", "critic", "sft")
FIELDS: Final = ("ppo.micro_batch_size", "run.seed", "run.num_threads")
"""What a start depends on: these sections but for `model.finetuning`, which `sft.finetuning`
stands in for, and these fields. The critic counts for the random numbers that it draws."""
FOLDERS: Final = ("model", "sft")
"""The directories of a run that hold its start; the first is there for tiny models alone."""
KEY_DIGITS: Final = 12


def start_config(config: Config) -> Config | None:
    """Return the configuration of a run's supervised start, None when it has none."""
    if not config.sft.num_steps:
        return None
    values: dict[str, Any] = {}
    for key, value in _flat(config).items():
        put(values, key, value)
    return parse_config(values)


def start_key(start: Config) -> str:
    """Return a short name of a start: equal for starts that are equal."""
    text = json.dumps(_flat(start), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]


def is_whole(directory: Path) -> bool:
    """Return whether a shared start is finished and undamaged."""
    folders = [directory / name for name in FOLDERS if (directory / name).is_dir()]
    return (directory / FOLDERS[-1]).is_dir() and all(damage(f) is None for f in folders)


def give_start(directory: Path, run: Path) -> None:
    """Put a shared start into a run directory that has none.

    Files are linked where the disk can, else copied; nobody writes into them. The run verifies
    them by their manifests, and makes what it misses itself.
    """
    run.mkdir(parents=True, exist_ok=True)
    for name in FOLDERS:
        if (directory / name).is_dir() and not (run / name).exists():
            temporary = temporary_path(run / name)
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.copytree(directory / name, temporary, copy_function=_link)
            os.rename(temporary, run / name)


def _flat(config: Config) -> dict[str, Any]:
    values = config.model_dump(mode="json")
    kept = {key: value for key, value in values.items() if key in SECTIONS}
    kept["model"] = {key: value for key, value in kept["model"].items() if key != "finetuning"}
    flat = flatten(values)
    return flatten(kept) | {key: flat[key] for key in FIELDS}


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
