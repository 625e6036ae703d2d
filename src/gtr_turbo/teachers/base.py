"""Who guides: a teacher turns the turns of an update into a penalty per turn."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from gtr_turbo.core.batch import Guidance, Scores, TokenRows
from gtr_turbo.core.turns import Turn
from gtr_turbo.policies.base import AbstractPolicy


class AbstractTeacher(ABC):
    """A source of guidance."""

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """False while there is nobody to ask, as in the first update."""

    @property
    @abstractmethod
    def fingerprint(self) -> str | None:
        """Hash of what the teacher knows; None while there is nobody."""

    @abstractmethod
    def guide(
        self, policy: AbstractPolicy, turns: Sequence[Turn], rows: TokenRows, scores: Scores
    ) -> Guidance:
        """Return how differently the teacher would have thought in each turn."""

    @abstractmethod
    def close(self) -> None:
        """End what the teacher has started, if anything."""
