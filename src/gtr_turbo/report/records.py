"""What a run leaves for its report: sampled episodes, evaluations; and how they are read back."""

import base64
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from gtr_turbo.core.files import dump_json, temporary_path, write_text_atomically
from gtr_turbo.errors import CheckpointError
from gtr_turbo.metrics import METRICS_FILE, read_metrics

EPISODES_FOLDER = "episodes"
EVALUATIONS_FILE = "evaluations.jsonl"
SUMMARY_FILE = "summary.json"
CONFIG_FILE = "config.yaml"
MAX_PICTURE_BYTES = 1_000_000
"""A larger file is not one that `save_episodes` wrote."""
PICTURE_NAME = re.compile(r"[\w.-]+\.png")
EPISODE_FILE_NAME = re.compile(r"update-(\d{4,})\.jsonl")

Picture = UInt8[np.ndarray, "height width channel"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Everything that a report shows; parts that are not there yet are empty."""

    metrics: Sequence[Mapping[str, Any]]
    evaluations: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any] | None
    """None while the run is under way."""
    config: str
    episodes: Mapping[int, Sequence[Mapping[str, Any]]]
    """Update → its saved episodes."""


def save_episodes(
    run: Path,
    update: int,
    episodes: Sequence[Mapping[str, Any]],
    pictures: Mapping[str, Picture],
) -> None:
    """Write an update's sampled episodes and their pictures into `episodes/`.

    The pictures go first, so that a file of episodes never names one that is not there. Raises
    CheckpointError when an episode names a picture that was not given, or a name is not plain.
    """
    folder = run / EPISODES_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    named = {turn["picture"] for episode in episodes for turn in episode["turns"]}
    wrong = sorted(name for name in named | set(pictures) if not _is_picture_name(name))
    if wrong or named - set(pictures):
        raise CheckpointError(
            f"episodes of update {update} name pictures that cannot be written:"
            f" {', '.join(wrong or sorted(named - set(pictures)))}.",
            hint="give each picture under a name such as update-0007-e0-t0.png.",
        )
    for name, picture in pictures.items():
        _write_picture(folder / name, picture)
    lines = "".join(dump_json(episode) + "\n" for episode in episodes)
    write_text_atomically(folder / f"update-{update:04d}.jsonl", lines)


def _is_picture_name(name: str) -> bool:
    return PICTURE_NAME.fullmatch(name) is not None and not name.startswith(".")


def _write_picture(path: Path, picture: Picture) -> None:
    """Write a PNG under its name as a whole; not synced, for a picture is only looked at."""
    temporary = temporary_path(path)
    Image.fromarray(picture).save(temporary, format="PNG")
    os.replace(temporary, path)


def record_evaluation(run: Path, update: int, who: str, result: Mapping[str, Any]) -> None:
    """Add an evaluation to `evaluations.jsonl`; the same one, redone after a crash, is replaced.

    `who` is `initial`, `agent` or `teacher`; `result` holds `success_rate`, `ci95`, `return` and
    `episodes`, as in `summary.json`.
    """
    path = run / EVALUATIONS_FILE
    kept = [e for e in read_lines(path) if (e.get("update"), e.get("who")) != (update, who)]
    lines = [*kept, {"update": update, "who": who, **result}]
    write_text_atomically(path, "".join(dump_json(line) + "\n" for line in lines))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects of a file with one a line; unreadable lines are left out."""
    if not path.is_file():
        return []
    values: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            values.append(value)
    return values


def read_run(run: Path) -> RunRecord:
    """Return what a run directory holds for its report, finished or not."""
    metrics, config, summary = (run / n for n in (METRICS_FILE, CONFIG_FILE, SUMMARY_FILE))
    folder = run / EPISODES_FOLDER
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    found = [match for name in names if (match := EPISODE_FILE_NAME.fullmatch(name))]
    return RunRecord(
        metrics=read_metrics(metrics) if metrics.is_file() else [],
        evaluations=read_lines(run / EVALUATIONS_FILE),
        summary=json.loads(summary.read_bytes()) if summary.is_file() else None,
        config=config.read_text(encoding="utf-8") if config.is_file() else "",
        episodes={int(match[1]): read_lines(folder / match[0]) for match in found},
    )


def picture_url(run: Path, name: object) -> str | None:
    """Return a saved picture as a `data:` URL; None when it is missing or is no PNG of ours."""
    if not (isinstance(name, str) and _is_picture_name(name)):
        return None
    path = run / EPISODES_FOLDER / name
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_PICTURE_BYTES:
        return None
    data = path.read_bytes()
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            picture.verify()
    except (OSError, SyntaxError, ValueError):
        return None
    return f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"
