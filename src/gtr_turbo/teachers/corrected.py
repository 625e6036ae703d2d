"""A corrector as a teacher: GTR, where a model behind an API repairs the agent's thoughts."""

from collections.abc import Sequence
from typing import final

import torch

from gtr_turbo.core.batch import Guidance, Scores, TokenRows
from gtr_turbo.core.turns import ThoughtLabel, Turn
from gtr_turbo.policies.base import AbstractPolicy
from gtr_turbo.teachers.base import AbstractTeacher
from gtr_turbo.teachers.corrector import Corrector


@final
class CorrectedThoughts(AbstractTeacher):
    """Labels for the turns whose thought the corrector found wrong."""

    def __init__(self, corrector: Corrector) -> None:
        """Ask `corrector`, and close it at the end."""
        self._corrector = corrector

    @property
    def is_ready(self) -> bool:
        """True: a corrector needs no past."""
        return True

    @property
    def fingerprint(self) -> str | None:
        """None: nobody knows the weights behind an API."""
        return None

    def guide(
        self, policy: AbstractPolicy, turns: Sequence[Turn], rows: TokenRows, scores: Scores
    ) -> Guidance:
        """Return the corrected thoughts as labels; a thought that was right needs none.

        A turn counts as guided when the corrector gave a verdict on it.
        """
        corrections = self._corrector.correct(turns)
        judged = [c.verdict not in ("unasked", "unanswered") for c in corrections]
        labels = [
            ThoughtLabel.of(turn.observation, policy.written_reply(correction.reply))
            for turn, correction in zip(turns, corrections, strict=True)
            if correction.reply is not None
        ]
        return Guidance(
            is_guided=torch.tensor(judged, dtype=torch.bool),
            thoughts=tuple(labels),
            figures=self._corrector.metrics(),
        )

    def close(self) -> None:
        """End what the corrector started."""
        self._corrector.close()
