"""The thoughts that a run's teachers have written, all of them: what DAgger aggregates over."""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Int32
from safetensors import safe_open
from safetensors.numpy import save_file

from gtr_turbo.core.turns import Observation, ThoughtLabel, picture_hash
from gtr_turbo.runstate import RunDirectory

FOLDER = "thoughts"
_LABELS, _PICTURES = "labels.json", "pictures.safetensors"
NUM_CACHED_PICTURES = 4096
"""Pictures that stay decoded in memory: a few megabytes of small ones, 1 GB of 300 × 300."""


LabelKey = tuple[str, str, bytes]
"""Prompt, hash of the picture, token ids of the thought."""


@final
class ThoughtStore:
    """Labels of every update, in a directory of the run per update; the newest may be all.

    Texts and token ids stay in memory, equal texts once and ids as arrays (some tens of megabytes
    for a whole run of the paper's size), pictures on the disk, each of them once per update.
    """

    def __init__(self, run: RunDirectory, max_stored: int | None) -> None:
        """Begin empty; `restore` finds what a run has written before."""
        self._run = run
        self._max_stored = max_stored
        self._updates: list[int] = []
        self._on_disk: list[int] = []
        self._first_needed = 0
        self._labels: list[tuple[int, dict[str, Any]]] = []
        self._picture = lru_cache(maxsize=NUM_CACHED_PICTURES)(self._read_picture)

    def __len__(self) -> int:
        """Return the number of labels that can be drawn."""
        return len(self._labels)

    def add(self, update: int, labels: Sequence[ThoughtLabel]) -> None:
        """Write the labels of an update, whole or not at all.

        The oldest beyond the limit are not drawn any more; on the disk they stay until `settle`.
        """
        hashes = [picture_hash(label.observation.picture) for label in labels]
        lines = [
            {
                "prompt": label.observation.prompt,
                "state_key": label.observation.state_key,
                "picture": sha256,
                "token_ids": list(label.token_ids),
                "num_thought_tokens": label.num_thought_tokens,
            }
            for label, sha256 in zip(labels, hashes, strict=True)
        ]
        pictures = {
            sha256: np.ascontiguousarray(label.observation.picture)
            for label, sha256 in zip(labels, hashes, strict=True)
        }

        def fill(directory: Path) -> None:
            (directory / _LABELS).write_text(json.dumps(lines) + "\n", encoding="utf-8")
            save_file(pictures, directory / _PICTURES)

        self._run.write_directory(_name(update), fill, extra={"labels": len(lines)})
        self._updates.append(update)
        self._on_disk.append(update)
        self._labels += [(update, _packed(line)) for line in lines]
        self._forget()

    def settle(self) -> None:
        """Delete what neither the checkpoint just written nor the one before it can draw from.

        A resume goes back to either of them, and has to find the thoughts that it drew from.
        """
        if self._max_stored is None:
            return
        kept = [number for number in self._on_disk if number >= self._first_needed]
        if len(kept) < len(self._on_disk):
            self._run.prune(FOLDER, {_name(number) for number in kept})
        self._on_disk = kept
        self._first_needed = self._updates[0] if self._updates else 0

    def restore(self, update: int) -> None:
        """Read what was written up to `update`; anything later is deleted."""
        home = self._run.path / FOLDER
        known = sorted(int(path.name.rpartition("-")[2]) for path in home.glob("update-*"))
        kept = [number for number in known if number <= update]
        self._updates, self._on_disk, self._labels = kept, list(kept), []
        for number in kept:
            self._run.read_manifest(_name(number))
            lines = json.loads((self._run.path / _name(number) / _LABELS).read_text("utf-8"))
            self._labels += [(number, _packed(line)) for line in lines]
        if known:
            self._run.prune(FOLDER, {_name(number) for number in kept})
        self._forget()

    def key(self, index: int) -> LabelKey:
        """Return what two labels share exactly when state and thought are the same."""
        line = self._labels[index][1]
        thought: Int32[np.ndarray, " token"] = line["token_ids"][: line["num_thought_tokens"]]
        return line["prompt"], line["picture"], thought.tobytes()

    def get(self, index: int) -> ThoughtLabel:
        """Return one label, its picture included."""
        update, line = self._labels[index]
        return ThoughtLabel(
            observation=Observation(
                picture=self._picture(update, line["picture"]),
                prompt=line["prompt"],
                state_key=line["state_key"],
            ),
            token_ids=tuple(line["token_ids"].tolist()),
            num_thought_tokens=line["num_thought_tokens"],
        )

    def _forget(self) -> None:
        """Leave out the oldest updates that the limit can do without."""
        if self._max_stored is None:
            return
        counts = dict.fromkeys(self._updates, 0)
        for number, _ in self._labels:
            counts[number] += 1
        while self._updates and len(self._labels) - counts[self._updates[0]] >= self._max_stored:
            oldest = self._updates.pop(0)
            self._labels = [entry for entry in self._labels if entry[0] != oldest]

    def _read_picture(self, update: int, sha256: str) -> np.ndarray:
        with safe_open(self._run.path / _name(update) / _PICTURES, framework="numpy") as file:
            return file.get_tensor(sha256)


def _packed(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a label as it stays in memory: ids as an array, a text that comes again only once."""
    texts = {key: sys.intern(line[key]) for key in ("prompt", "state_key", "picture")}
    return {**line, **texts, "token_ids": np.array(line["token_ids"], np.int32)}


def _name(update: int) -> str:
    return f"{FOLDER}/update-{update:04d}"
