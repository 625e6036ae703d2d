"""GTR's corrector: asks a model about each turn's thoughts and returns what they should have been.

    corrector = Corrector(config.corrector, run / "corrector")
    corrections = corrector.correct(turns)      # one per turn, in order
    corrector.close()

A correction is a whole reply with the agent's own action, so that only thoughts are imitated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, final

from gtr_turbo.core.teaching import CorrectorConfig
from gtr_turbo.core.turns import Turn
from gtr_turbo.teachers.corrector.answers import (
    Verdict,
    corrected_reply,
    read_verdict,
    reply_fields,
)
from gtr_turbo.teachers.corrector.asking import Asker, Counts
from gtr_turbo.teachers.corrector.questions import Question, thought_question


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What the corrector says of a turn."""

    verdict: Literal["right", "wrong", "hopeless", "unanswered", "unasked"]
    """`hopeless`: nothing can be won from this state; `unanswered`: the endpoint failed;
    `unasked`: the reply was malformed."""
    reply: str | None = None
    """Where the thoughts were wrong: the reply with right ones, and the agent's own action last."""


@final
class Corrector:
    """Judges thoughts over an OpenAI-compatible API."""

    def __init__(self, config: CorrectorConfig, cache: Path) -> None:
        """Keep answers in the folder `cache`. Under `scripted` a local server is started.

        Raises ConfigError when the client is not installed, the key is missing or the URL is none.
        """
        self._config = config
        self._asker = Asker(config, cache)
        self._verdicts: list[str] = []

    def correct(self, turns: Sequence[Turn]) -> list[Correction]:
        """Return a correction for each turn, in order.

        Raises CorrectorError when the endpoint is down, or its budget spent, and the configuration
        says to stop then; the answers so far are kept and cost nothing the next time.
        """
        fields = [_fields(turn) for turn in turns]
        asked = [(turn, own) for turn, own in zip(turns, fields, strict=True) if own is not None]
        texts = iter(self._asker.ask([self._question(turn, own) for turn, own in asked]))
        corrections = [
            Correction(verdict="unasked") if own is None else _correction(turn, own, next(texts))
            for turn, own in zip(turns, fields, strict=True)
        ]
        self._verdicts = [correction.verdict for correction in corrections]
        return corrections

    def metrics(self) -> dict[str, float | int | None]:
        """Return the numbers of the last `correct` (docs/metrics.md); a rate of nothing is None."""
        counts: Counts = self._asker.counts
        answered = [v for v in self._verdicts if v not in ("unasked", "unanswered")]

        def rate(verdict: str) -> float | None:
            return answered.count(verdict) / len(answered) if answered else None

        return {
            "corrector_requests": counts.requests,
            "corrector_cached": counts.cached,
            "corrector_failures": counts.failures,
            "corrector_input_tokens": counts.input_tokens,
            "corrector_output_tokens": counts.output_tokens,
            "corrector_cost": self._asker.total_cost,
            "corrector_right_rate": rate("right"),
            "corrector_hopeless_rate": rate("hopeless"),
        }

    def close(self) -> None:
        """End the local server, if there is one, and let go of connections and files."""
        self._asker.close()

    def _question(self, turn: Turn, fields: Mapping[str, Any]) -> Question:
        return thought_question(
            turn,
            model=self._config.model,
            temperature=self._config.temperature,
            tell_solution=self._config.tell_solution,
            is_readable=partial(_is_verdict, fields=fields),
        )


def _fields(turn: Turn) -> Mapping[str, Any] | None:
    """Return what a reply of valid format holds; None for another, which is not asked about."""
    return reply_fields(turn.reply.text) if turn.parsed.valid_format else None


def _is_verdict(text: str, fields: Mapping[str, Any]) -> bool:
    return read_verdict(text, fields) is not None


def _correction(turn: Turn, fields: Mapping[str, Any], text: str | None) -> Correction:
    verdict: Verdict | None = None if text is None else read_verdict(text, fields)
    if verdict is None:
        return Correction(verdict="unanswered")
    if verdict.thought is None:
        return Correction(verdict=verdict.verdict)
    reply = corrected_reply(turn.reply.text, fields, verdict.thought)
    return Correction(verdict="wrong", reply=reply)
