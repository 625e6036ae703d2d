"""What the run has been: a merge in progress over its checkpoints, and the teacher it makes."""

import json
from pathlib import Path
from typing import Any, final

from safetensors.torch import load_file
from torch import Tensor

from gtr_turbo.core.config import Config, MergeConfig
from gtr_turbo.errors import CheckpointError
from gtr_turbo.merging import AbstractAccumulator, fingerprint, load_accumulator, make_accumulator
from gtr_turbo.merging.io import write_tensors
from gtr_turbo.merging.lora import AdapterChange
from gtr_turbo.merging.replay import AdapterReplay, LoraMode, choose_lora_mode
from gtr_turbo.merging.settings import MergeSettings, TiesOptions
from gtr_turbo.policies.base import WeightChange
from gtr_turbo.teachers.views import View, unchanged, view_of

_STATE = "history.json"
_TEACHER = "teacher.safetensors"
_SUMS = "sums"
_WAITING = "waiting"


@final
class CheckpointHistory:
    """π^(1) … π^(k−1) as weight changes, merged in running sums at a cost that does not grow.

    Adapters on an accelerator are replayed instead where that needs less memory
    (`merge.lora_mode`, see `choose_lora_mode`). The merged teacher is kept beside the sums, since
    with `merge.interval` or `merge.freeze_after` it is older than they are.
    """

    def __init__(self, config: MergeConfig, num_checkpoints: int, view: View = unchanged) -> None:
        """Begin empty.

        Args:
            config: The merge rule.
            num_checkpoints: How many checkpoints the run will add at most.
            view: Makes the teacher of the merged change.
        """
        self._config, self._view = config, view
        self._num_checkpoints = min(num_checkpoints, config.window or num_checkpoints)
        self._sums: AbstractAccumulator | AdapterReplay = _make_accumulator(config)
        self._waiting: list[tuple[int, dict[str, Tensor], bool]] = []
        self._updates: list[int] = []
        self._num_merges = 0
        self._merged_updates: list[int] = []
        self._must_differ = False
        self._diagnostics: dict[str, float] = {}
        self._teacher: dict[str, Tensor] | None = None

    @property
    def updates(self) -> tuple[int, ...]:
        """Updates whose checkpoints are in the merge: those within `merge.lag` are not yet."""
        return tuple(self._updates)

    @property
    def merged_updates(self) -> tuple[int, ...]:
        """Updates that had been added when the teacher was merged."""
        return tuple(self._merged_updates)

    @property
    def teacher(self) -> dict[str, Tensor] | None:
        """The merged change of the last merge; None before the first."""
        return self._teacher

    @property
    def must_differ(self) -> bool:
        """Whether the newest merge must differ from the one before: a step lies between them."""
        return self._must_differ

    @property
    def lora_mode(self) -> LoraMode:
        """How checkpoints are kept: as sums, or as adapters."""
        return "replay" if isinstance(self._sums, AdapterReplay) else "accumulate"

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
        self._teacher = self._merged()
        self._merged_updates = list(self._updates)
        self._diagnostics = self._sums.diagnostics()
        self._num_merges += 1
        return self._teacher

    def next_teacher(self) -> dict[str, Tensor]:
        """Return the teacher of the next update: a fresh merge if one is due, else the last one.

        Nothing is changed. Raises MergeError when there is nothing to merge.
        """
        if self._teacher is None or self.is_due():
            return self._merged()
        return self._teacher

    def diagnostics(self) -> dict[str, float]:
        """Return what was found of the merge that is the teacher; empty before it."""
        return dict(self._diagnostics)

    def add(self, update: int, change: WeightChange, *, is_stepped: bool = True) -> None:
        """Take in the weights after `update`; with a lag they wait until newer ones have come.

        `is_stepped` says whether a gradient moved them, so that they must differ from those before.
        Raises MergeError for weights that don't fit.
        """
        if not self._config.lag:
            self._include(update, change, is_stepped)
            return
        self._waiting.append((update, {name: change[name] for name in change}, is_stepped))
        if len(self._waiting) > self._config.lag:
            self._include(*self._waiting.pop(0))

    def drop_waiting(self) -> None:
        """Forget the checkpoints that wait: those that `merge.lag` has kept out of the merge."""
        self._waiting.clear()

    def _include(self, update: int, change: WeightChange, is_stepped: bool) -> None:
        is_first_of_merge = len(self._updates) == len(self._merged_updates)
        self._must_differ = is_stepped or (self._must_differ and not is_first_of_merge)
        if not self._updates and self._choose_mode(change) == "replay":
            self._sums = AdapterReplay(
                _settings(self._config), in_factors=self._config.lora_space == "factors"
            )
        if isinstance(self._sums, AdapterReplay):
            assert isinstance(change, AdapterChange)
            self._sums.add(change.adapter)
        else:
            self._sums.add(change, name=f"update-{update:04d}")
        self._updates.append(update)

    def save(self, directory: Path) -> None:
        """Write sums or adapters, the teacher, and which updates are in them."""
        sums = directory / _SUMS
        sums.mkdir()
        self._sums.save(sums)
        if self._teacher is not None:
            write_tensors(directory / _TEACHER, self._teacher)
        for update, change, _ in self._waiting:
            write_tensors(directory / f"{_WAITING}-{update:04d}.safetensors", change)
        state: dict[str, Any] = {
            "waiting": [update for update, _, _ in self._waiting],
            "waiting_stepped": [is_stepped for _, _, is_stepped in self._waiting],
            "must_differ": self._must_differ,
            "lora_mode": self.lora_mode,
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
        load = AdapterReplay.load if state["lora_mode"] == "replay" else load_accumulator
        self._sums = load(directory / _SUMS)
        self._waiting = [
            (update, load_file(directory / f"{_WAITING}-{update:04d}.safetensors"), is_stepped)
            for update, is_stepped in zip(state["waiting"], state["waiting_stepped"], strict=True)
        ]
        self._must_differ = state["must_differ"]
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

    def _merged(self) -> dict[str, Tensor]:
        return self._view(self._sums.merged_delta(), self._num_merges)

    def _choose_mode(self, change: WeightChange) -> LoraMode:
        if not isinstance(change, AdapterChange):
            return "accumulate"
        if self._config.lora_space == "factors":
            return "replay"
        if self._config.lora_mode != "auto":
            return self._config.lora_mode
        factors = list(change.adapter.values())
        return choose_lora_mode(
            num_entries=sum(own.shape[0] * own.shape[1] for own in factors),
            num_factor_values=sum(own.a.numel() + own.b.numel() for own in factors),
            num_checkpoints=self._num_checkpoints,
            device=factors[0].a.device.type,
        )


def make_history(config: Config) -> CheckpointHistory | None:
    """Return the history that a run's configuration asks for, None where nobody needs one.

    `guidance.teacher` "previous" is a merge of one checkpoint, the one before the last. Where the
    guard may put the agent onto the teacher, changes are summed, since they need not be adapters.
    """
    guidance, merge = config.guidance, config.merge
    is_guided = guidance.has_weights and guidance.teacher != "static"
    if not is_guided and config.guard.action != "reset_to_teacher":
        return None
    if guidance.teacher == "previous":
        lagged = {"method": "linear", "weights": "sma", "window": 1, "lag": max(merge.lag, 1)}
        merge = merge.model_copy(update=lagged)
    if config.guard.action == "reset_to_teacher":
        merge = merge.model_copy(update={"lora_mode": "accumulate"})
    view = view_of(guidance.teacher, config.run.seed)
    return CheckpointHistory(merge, config.run.num_updates, view)


def _decay(config: MergeConfig) -> float | None:
    return config.ema_alpha if config.weights == "ema" else None


def _make_accumulator(config: MergeConfig) -> AbstractAccumulator:
    return make_accumulator(
        config.method,
        density=config.density,
        ema_alpha=_decay(config),
        window=config.window,
        scale=config.scale,
    )


def _settings(config: MergeConfig) -> MergeSettings:
    return MergeSettings(
        method=config.method,
        density=config.density,
        scale=config.scale,
        decay=_decay(config),
        window=config.window,
        options=TiesOptions(),
    )
