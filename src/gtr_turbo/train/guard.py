"""Watches a run for a collapse of the thoughts, and says when to put the agent onto its teacher.

What an alarm means, what a reset does, and what both cost: docs/guard.md.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from gtr_turbo.core.config import GuardConfig

logger = logging.getLogger(__name__)

MIN_EPISODES: Final = 30
"""Episodes of an update from which on its success counts: of fewer, the best update of a run is
mostly luck, and a fall below it says nothing."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """One number that is watched."""

    metric: str
    field: str
    """Field of `guard` that holds the limit."""
    limit: Callable[["Guard", float], float | None]
    """Returns the metric's limit for the value of the field; None while there is none."""
    is_ceiling: bool = False
    """Whether the alarm fires above the limit, and not below it."""


@final
class Guard:
    """Alarms about an update's numbers, and resets when enough updates in a row raised some.

    An alarm that the teacher itself raises, in the update right after a reset, leads to no further
    reset until it has been silent once: the same teacher would only raise it again, and an agent
    that is put back every time never learns.
    """

    def __init__(self, config: GuardConfig) -> None:
        """Begin as at the start of a run."""
        self._config = config
        self._first_thought_tokens: float | None = None
        self._best_success: float | None = None
        self._streak = 0
        self._standing: set[str] = set()
        self._is_after_reset = False
        self._num_resets = 0

    @property
    def num_resets(self) -> int:
        """How often the agent was put onto its teacher."""
        return self._num_resets

    def observe(self, update: int, values: Mapping[str, Any]) -> list[str]:
        """Take in the metrics of an update; return its alarms, which are logged as warnings.

        A metric that is None or absent raises no alarm. Under `guard.action` "none" nothing does.
        """
        if self._config.action == "none":
            return []
        if self._first_thought_tokens is None:
            self._first_thought_tokens = values.get("thought_tokens")
        success = self._success(values)
        if success is not None:
            self._best_success = max(success, self._best_success or 0.0)
        alarms = {
            limit.metric: text
            for limit in _LIMITS
            if (text := self._alarm(limit, values)) is not None
        }
        for text in alarms.values():
            logger.warning("update %d: %s.", update, text)
        if self._is_after_reset:
            self._standing, self._is_after_reset = set(alarms), False
        self._standing &= alarms.keys()
        self._streak = self._streak + 1 if alarms.keys() - self._standing else 0
        return list(alarms.values())

    def is_reset_due(self, update: int) -> bool:
        """Return whether the agent should go back to its teacher at the end of this update."""
        config = self._config
        if config.action != "reset_to_teacher":
            return False
        is_scheduled = config.interval is not None and update % config.interval == 0
        return is_scheduled or self._streak >= config.patience

    def note_reset(self, update: int) -> None:
        """Count a reset that was carried out."""
        self._num_resets += 1
        self._streak, self._is_after_reset = 0, True
        logger.warning(
            "update %d: the agent was put onto its teacher (reset %d); the optimiser begins anew.",
            update, self._num_resets,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return what a resume needs, as JSON values."""
        return {
            "first_thought_tokens": self._first_thought_tokens,
            "best_success": self._best_success,
            "streak": self._streak,
            "standing": sorted(self._standing),
            "is_after_reset": self._is_after_reset,
            "num_resets": self._num_resets,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        self._first_thought_tokens = state["first_thought_tokens"]
        self._best_success = state["best_success"]
        self._streak = state["streak"]
        self._standing = set(state["standing"])
        self._is_after_reset = state["is_after_reset"]
        self._num_resets = state["num_resets"]

    def least_thought_tokens(self, ratio: float) -> float | None:
        """Return the shortest mean thought that is no alarm, tokens."""
        first = self._first_thought_tokens
        return None if first is None else ratio * first

    def least_success(self, drop: float) -> float | None:
        """Return the lowest success that is no alarm."""
        best = self._best_success
        return None if best is None else best - drop

    @staticmethod
    def _success(values: Mapping[str, Any]) -> float | None:
        """Return an update's success, None when too few episodes ended in it."""
        is_enough = (values.get("episodes") or 0) >= MIN_EPISODES
        return values.get("success_rate") if is_enough else None

    def _alarm(self, limit: _Limit, values: Mapping[str, Any]) -> str | None:
        value = values.get(limit.metric)
        if limit.metric == "success_rate":
            value = self._success(values)
        bound = limit.limit(self, getattr(self._config, limit.field))
        if value is None or bound is None:
            return None
        if not (value > bound if limit.is_ceiling else value < bound):
            return None
        side = "above" if limit.is_ceiling else "below"
        return f"{limit.metric} is {value:.4g}, {side} {bound:.4g} (guard.{limit.field})"


def _as_given(_: Guard, value: float) -> float:
    return value


_LIMITS: Final = (
    _Limit(metric="valid_format_rate", field="min_valid_format_rate", limit=_as_given),
    _Limit(metric="unfinished_rate", field="max_unfinished_rate", limit=_as_given, is_ceiling=True),
    _Limit(metric="legal_rate", field="min_legal_rate", limit=_as_given),
    _Limit(metric="distinct_thought_share", field="min_distinct_thought_share", limit=_as_given),
    _Limit(metric="self_bleu", field="max_self_bleu", limit=_as_given, is_ceiling=True),
    _Limit(
        metric="shared_thought_rate",
        field="max_shared_thought_rate",
        limit=_as_given,
        is_ceiling=True,
    ),
    _Limit(metric="thought_state_effect", field="min_thought_state_effect", limit=_as_given),
    _Limit(
        metric="thought_tokens",
        field="min_thought_length_ratio",
        limit=Guard.least_thought_tokens,
    ),
    _Limit(metric="entropy", field="min_entropy", limit=_as_given),
    _Limit(metric="success_rate", field="max_success_drop", limit=Guard.least_success),
)
"""Every number that can raise an alarm."""
