"""The control without a teacher: the same small disadvantage for every thought token.

arXiv 2608.31046 finds that one fixed negative advantage can match what on-policy distillation
gains, so a teacher has to be measured against it.
"""

from collections.abc import Sequence
from typing import final

import torch

from gtr_turbo.core.batch import Guidance, Scores, TokenRows
from gtr_turbo.core.turns import Turn
from gtr_turbo.policies.base import AbstractPolicy
from gtr_turbo.teachers.base import AbstractTeacher


@final
class ConstantTeacher(AbstractTeacher):
    """Knows nothing: −`coef` for each thought token of a well-formed reply."""

    def __init__(self, coef: float) -> None:
        """Disapprove by `coef`, in units of a standardised advantage."""
        self._coef = coef

    @property
    def is_ready(self) -> bool:
        """True: there is nothing to wait for."""
        return True

    @property
    def fingerprint(self) -> str | None:
        """None: there is nobody."""
        return None

    def guide(
        self, policy: AbstractPolicy, turns: Sequence[Turn], rows: TokenRows, scores: Scores
    ) -> Guidance:
        """Return the same advantage for every thought token."""
        is_valid = torch.tensor([turn.parsed.valid_format for turn in turns])
        is_guided = is_valid & rows.is_thought.any(dim=1)
        return Guidance(
            is_guided=is_guided,
            token_advantage=-self._coef * (rows.is_thought & is_guided[:, None]).float(),
        )

    def close(self) -> None:
        """Do nothing: nothing was started."""
