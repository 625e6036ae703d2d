"""What can come of one request to an endpoint, as values."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from gtr_turbo.teachers.corrector.questions import Message


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The endpoint answered with a text."""

    text: str
    usage: tuple[int, int] | None
    """Tokens of question and answer; None when the endpoint did not say both."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The endpoint gave no text that can be used."""

    reason: str
    """What happened, in one line that never holds the key."""
    may_retry: bool
    for_good: bool = False
    """No other request will succeed either: the key is not accepted."""
    at_once: bool = False
    """The next request will be another one: it is sent at once, and this one was no attempt."""
    wait: float | None = None
    """Seconds that the endpoint asked us to wait."""
    is_unreadable: bool = False
    """An answer came, and it cannot be used."""
    may_cost: bool = False
    """An answer had begun, which may be charged for, and nobody says how much."""


class AbstractEndpoint(ABC):
    """Whoever completes a chat."""

    @abstractmethod
    def complete(self, messages: Sequence[Message], seconds: float) -> Answered | Failed:
        """Return the answer to a question, or what went wrong, after `seconds` at most."""

    @abstractmethod
    def abort(self) -> None:
        """End all requests that are under way."""

    @abstractmethod
    def close(self) -> None:
        """Let go of all connections."""
