"""What the run has been: running sums over its checkpoints, and the teacher that they make."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from safetensors.torch import load_file
from torch import Tensor

from gtr_turbo.core.config import MergeConfig
from gtr_turbo.errors import CheckpointError
from gtr_turbo.merging import fingerprint, load_accumulator, make_accumulator
from gtr_turbo.merging.io import write_tensors

_STATE = "history.json"
_TEACHER = "teacher.safetensors"


@final
class CheckpointHistory:
    """π^(1) … π^(k−1) as weight changes, merged in running sums at a cost that does not grow.

    The merged teacher is kept beside the sums, since with `merge.interval` or `merge.freeze_after`
    it is older than they are.
    """

    def __init__(self, config: MergeConfig) -> None:
        """Begin empty."""
        self._config = config
        self._sums = make_accumulator(
            config.method,
            density=config.density,
            ema_alpha=config.ema_alpha if config.weights == "ema" else None,
            scale=config.scale,
        )
        self._updates: list[int] = []
        self._num_merges = 0
        self._merged_updates: list[int] = []
        self._diagnostics: dict[str, float] = {}
        self._teacher: dict[str, Tensor] | None = None

    @property
    def updates(self) -> tuple[int, ...]:
        """Updates whose checkpoints are in the sums."""
        return tuple(self._updates)

    @property
    def merged_updates(self) -> tuple[int, ...]:
        """Updates whose checkpoints are in the teacher."""
        return tuple(self._merged_updates)

    @property
    def teacher(self) -> dict[str, Tensor] | None:
        """The merged change of the last merge; None before the first."""
        return self._teacher

    def is_due(self) -> bool:
        """Return whether a merge is due: something new, at the interval, not frozen."""
        config = self._config
        if config.freeze_after is not None and self._num_merges >= config.freeze_after:
            return False
        return len(self._updates) - len(self._merged_updates) >= (
            config.interval if self._num_merges else 1
        )

    def merge(self) -> dict[str, Tensor]:
        """Return the merge of all checkpoints so far, and keep it as the teacher."""
        self._teacher = self._sums.merged_delta()
        self._merged_updates = list(self._updates)
        self._diagnostics = self._sums.diagnostics()
        self._num_merges += 1
        return self._teacher

    def next_teacher(self) -> dict[str, Tensor]:
        """Return the teacher of the next update: a fresh merge if one is due, else the last one.

        Nothing is changed. Raises MergeError when there is nothing to merge.
        """
        if self._teacher is None or self.is_due():
            return self._sums.merged_delta()
        return self._teacher

    def diagnostics(self) -> dict[str, float]:
        """Return what the accumulator said of the merge that is the teacher; empty before it."""
        return dict(self._diagnostics)

    def add(self, update: int, change: Mapping[str, Tensor]) -> None:
        """Take in the weights after `update`."""
        self._sums.add(change, name=f"update-{update:04d}")
        self._updates.append(update)

    def save(self, directory: Path) -> None:
        """Write sums, teacher and which updates are in them."""
        sums = directory / "sums"
        sums.mkdir()
        self._sums.save(sums)
        if self._teacher is not None:
            write_tensors(directory / _TEACHER, self._teacher)
        state: dict[str, Any] = {
            "updates": self._updates,
            "merged_updates": self._merged_updates,
            "num_merges": self._num_merges,
            "diagnostics": self._diagnostics,
            "teacher": None if self._teacher is None else fingerprint(self._teacher),
        }
        (directory / _STATE).write_text(json.dumps(state, indent=2) + "\n")

    def load(self, directory: Path) -> None:
        """Read what `save` wrote; CheckpointError when the teacher is not the recorded one."""
        state = json.loads((directory / _STATE).read_text())
        self._sums = load_accumulator(directory / "sums")
        self._updates, self._merged_updates = state["updates"], state["merged_updates"]
        self._num_merges, self._diagnostics = state["num_merges"], state["diagnostics"]
        self._teacher = None
        if state["teacher"] is not None:
            self._teacher = load_file(directory / _TEACHER)
            found = fingerprint(self._teacher)
            if found != state["teacher"]:
                raise CheckpointError(
                    f"{directory / _TEACHER} has fingerprint {found[:12]},"
                    f" {_STATE} says {state['teacher'][:12]}."
                )
