"""Many questions at once: retries, deadline, rate, money, breaker, and answers that are kept.

The answers come in the order of the questions and don't depend on which thread was faster.
"""

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final, final

from gtr_turbo.core.addresses import refuse_address
from gtr_turbo.core.combinations import SCRIPTED_CORRECTOR
from gtr_turbo.core.teaching import CorrectorConfig
from gtr_turbo.errors import ConfigError, CorrectorError
from gtr_turbo.teachers.corrector.cache import AnswerCache, Paid
from gtr_turbo.teachers.corrector.limits import Breaker, Budget, RateLimiter
from gtr_turbo.teachers.corrector.outcomes import AbstractEndpoint, Answered, Failed
from gtr_turbo.teachers.corrector.questions import Question
from gtr_turbo.teachers.corrector.scripted import ScriptedServer

BACKOFF_SECONDS: Final = 0.5
"""Wait after the first failure of a state; it doubles with each further one."""
MAX_BACKOFF_SECONDS: Final = 30.0

_POLL_SECONDS: Final = 0.5
_MILLION: Final = 1_000_000
_LARGEST_DIGIT: Final = 0xFFFF

logger = logging.getLogger(__name__)


@final
class _Miss(Enum):
    """Why a state has no answer."""

    FAILED = auto()
    """The endpoint gave none, or none that could be read, in the time that there was."""
    REFUSED = auto()
    """The endpoint does not accept the key."""
    UNREADABLE = auto()
    """Every attempt was answered, and no answer could be read."""
    WITHDRAWN = auto()
    """There was no money for it, or waiting was ended from outside."""


@final
@dataclass(slots=True, kw_only=True)
class Counts:
    """What was done for a batch of questions."""

    requests: int = 0
    cached: int = 0
    """Questions, repeated ones too, that were answered without a request of their own."""
    failures: int = 0
    """Questions, repeated ones too, without an answer."""
    unreadable: int = 0
    """Answers that could not be used."""
    input_tokens: int = 0
    output_tokens: int = 0


@final
class Asker:
    """Puts questions to the endpoint of a configuration, and keeps the answers in a folder."""

    def __init__(
        self, config: CorrectorConfig, folder: Path, *, who: str = "the corrector"
    ) -> None:
        """Open the folder's answers; start the local server if that is who is asked.

        Messages speak of it as `who`.
        Raises ConfigError when the client is not installed, the key is missing or the URL is none.
        """
        self._config = config
        self._who = who
        self._halt = threading.Event()
        self._lock = threading.Lock()
        self._last_failure = ""
        self._was_down = False
        """Whether the endpoint counted as down while a question of this batch was open."""
        self.counts = Counts()
        """About the last batch."""
        self._server = ScriptedServer() if config.url == SCRIPTED_CORRECTOR else None
        try:
            self._client = _open_client(config, self._server.url if self._server else config.url)
        except ConfigError:
            if self._server is not None:
                self._server.close()
            raise
        self._cache = AnswerCache(folder)
        self._budget = Budget(config.max_cost, self._cache.total_cost)
        self._limiter = RateLimiter(config.max_requests_per_minute, self._halt)
        self._breaker = Breaker(config.max_failures, config.pause)

    @property
    def total_cost(self) -> float:
        """What the run has paid, in the currency of the prices."""
        return self._cache.total_cost

    def ask(self, questions: Sequence[Question]) -> list[str | None]:
        """Return an answer for each question, in order; None where there is none.

        Equal questions are asked once. Raises CorrectorError when the endpoint went down, or the
        money is spent, and the configuration says to stop then; all answers so far are kept.
        """
        self.counts, self._was_down = Counts(), False
        open_questions: dict[str, Question] = {}
        for question in questions:
            if not self._is_settled(question):
                open_questions.setdefault(question.key, question)
        fresh = self._ask_all(list(open_questions.values()))
        answers = [
            fresh.get(q.key) if q.key in open_questions else self._cache.find(q.key)[1]
            for q in questions
        ]
        self.counts.failures = answers.count(None)
        self.counts.cached = len(questions) - self.counts.failures - len(fresh)
        self._refuse_to_go_on()
        return answers

    def close(self) -> None:
        """End everything that was started."""
        self._halt.set()
        self._client.abort()
        self._client.close()
        self._cache.close()
        if self._server is not None:
            self._server.close()

    def _is_settled(self, question: Question) -> bool:
        """Return whether the answer is known, or known not to come."""
        is_known, text = self._cache.find(question.key)
        return is_known and (text is None or question.is_readable(text))

    def _ask_all(self, questions: Sequence[Question]) -> dict[str, str]:
        """Return the answers by key; an interrupt ends what is under way."""
        if not questions:
            return {}
        threads = ThreadPoolExecutor(self._config.num_parallel, thread_name_prefix="corrector")
        try:
            with ExitStack() as interrupt:
                interrupt.callback(self._client.abort)
                interrupt.callback(self._halt.set)
                futures = [threads.submit(self._answer, question) for question in questions]
                answers = [future.result() for future in futures]
                interrupt.pop_all()
        finally:
            threads.shutdown(cancel_futures=True)
        self._cache.sync()
        pairs = zip(questions, answers, strict=True)
        return {question.key: text for question, text in pairs if text is not None}

    def _refuse_to_go_on(self) -> None:
        """Raise CorrectorError where the configuration says to stop."""
        after = "the answers so far are kept, and none of them is paid for again."
        on_failure = self._config.on_failure
        if self._budget.is_spent and on_failure != "skip":
            raise CorrectorError(
                f"{self._who} has cost {self.total_cost:.4g}, and one more request could exceed"
                f" the limit of {self._config.max_cost:g}.",
                hint=f"raise `max_cost`; {after}",
            )
        if self._was_down and on_failure == "stop":
            raise CorrectorError(
                f"{self._who} is down; its last failure: {self._last_failure}.", hint=after
            )

    # --------------------------------------------------------------------------------- one state

    def _answer(self, question: Question) -> str | None:
        """Return the answer to a question; wait for an endpoint that is down if that is asked.

        Runs in a thread of its own.
        """
        while self._may_ask():
            found = self._try(question)
            if isinstance(found, str):
                self._breaker.succeed()
                return found
            if found is _Miss.WITHDRAWN:
                self._breaker.abandon()
                break
            self._note_failure(for_good=found is _Miss.REFUSED)
            if self._breaker.is_open and self._config.on_failure == "pause":
                continue
            if found is _Miss.UNREADABLE:
                self._keep(question, None, (0, 0), cost=0.0, given_up=True)
            break
        return None

    def _may_ask(self) -> bool:
        """Wait until the endpoint may be asked, if waiting is asked for; False: go on without."""
        while not self._breaker.allow():
            self._was_down = True
            if self._config.on_failure != "pause":
                return False
            if self._halt.wait(min(_POLL_SECONDS, self._config.pause)):
                return False
        if self._halt.is_set() or self._budget.is_spent:
            self._breaker.abandon()
            return False
        return True

    def _note_failure(self, *, for_good: bool) -> None:
        """Count a state without an answer, and say so when the endpoint counts as down."""
        opened = self._breaker.fail(for_good=for_good)
        if self._breaker.is_open:
            self._was_down = True
        if opened:
            then = {
                "skip": f"the run goes on without it, and tries again in {self._config.pause:g} s",
                "pause": f"the run waits, and tries again in {self._config.pause:g} s",
                "stop": "the run stops",
            }[self._config.on_failure]
            logger.warning("%s is down (%s): %s.", self._who, self._last_failure, then)

    def _try(self, question: Question) -> str | _Miss:
        """Ask until there is an answer, the attempts are used up, or the deadline has passed."""
        config, deadline, num_unreadable, attempt = self._config, None, 0, 1
        while attempt <= config.max_attempts:
            if not self._limiter.wait(deadline):
                break
            now = time.monotonic()
            deadline = now + config.deadline if deadline is None else deadline
            if now >= deadline:
                break
            found = self._request(question, deadline - now)
            if found is None:
                return _Miss.WITHDRAWN
            if isinstance(found, str):
                return found
            if found.at_once:
                continue
            num_unreadable += found.is_unreadable
            if found.for_good:
                return _Miss.REFUSED
            if not found.may_retry or not self._wait(question, attempt, found.wait, deadline):
                break
            attempt += 1
        if self._halt.is_set():
            return _Miss.WITHDRAWN
        all_unreadable = num_unreadable == config.max_attempts
        return _Miss.UNREADABLE if all_unreadable else _Miss.FAILED

    def _request(self, question: Question, seconds: float) -> str | Failed | None:
        """Send one request within the budget; None: there is no money left for it."""
        most = self._price(question.max_input_tokens, self._config.max_tokens)
        if not self._budget.reserve(most):
            return None
        cost = most
        try:
            with self._lock:
                self.counts.requests += 1
            found = self._client.complete(question.messages, seconds)
            cost, answer = self._book(question, found, most)
        finally:
            self._budget.settle(most, cost)
        if isinstance(answer, Failed):
            with self._lock:
                self._last_failure = answer.reason
                self.counts.unreadable += answer.is_unreadable
        return answer

    def _book(
        self, question: Question, found: Answered | Failed, most: float
    ) -> tuple[float, str | Failed]:
        """Keep what a request brought; return its cost, and the answer if it can be read.

        Where nobody says what an answer cost, it is taken to have cost `most`.
        """
        if isinstance(found, Failed):
            cost = most if found.may_cost else 0.0
            if cost:
                self._keep(question, None, (0, 0), cost=cost)
            return cost, found
        tokens = found.usage or (0, 0)
        cost = most if found.usage is None else self._price(*tokens)
        is_readable = question.is_readable(found.text)
        self._keep(question, found.text if is_readable else None, tokens, cost=cost)
        if is_readable:
            return cost, found.text
        reason = "the answer does not keep to the schema"
        return cost, Failed(reason=reason, may_retry=True, is_unreadable=True)

    def _keep(
        self,
        question: Question,
        text: str | None,
        tokens: tuple[int, int],
        *,
        cost: float,
        given_up: bool = False,
    ) -> None:
        paid = Paid(
            key=question.key,
            text=text,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            cost=cost,
            given_up=given_up,
        )
        self._cache.add(paid)
        with self._lock:
            self.counts.input_tokens += tokens[0]
            self.counts.output_tokens += tokens[1]

    def _price(self, input_tokens: int, output_tokens: int) -> float:
        config = self._config
        price = input_tokens * config.price_per_million_input_tokens
        price += output_tokens * config.price_per_million_output_tokens
        return price / _MILLION

    def _wait(self, question: Question, attempt: int, asked: float | None, deadline: float) -> bool:
        """Wait before the next attempt; return False when the deadline would pass meanwhile.

        What the endpoint asks for is obeyed, by all threads; otherwise the wait doubles with each
        attempt, and differs from state to state, so that not all of them come back at once.
        """
        if asked is None:
            wait = min(BACKOFF_SECONDS * 2 ** (attempt - 1), MAX_BACKOFF_SECONDS)
            wait *= 0.5 + 0.5 * int(question.key[:4], 16) / _LARGEST_DIGIT
        else:
            wait = asked
            self._limiter.hold(min(asked, self._config.deadline))
        if attempt == self._config.max_attempts or time.monotonic() + wait >= deadline:
            return False
        return not self._halt.wait(wait)


def check_client(config: CorrectorConfig) -> None:
    """Raise ConfigError when the client is not installed, the key is missing or the URL is none."""
    _open_client(config, config.url).close()


def _open_client(config: CorrectorConfig, url: str) -> AbstractEndpoint:
    """Return a client of `url`; what it needs is loaded here and nowhere else."""
    refuse_address("corrector.url", config.url, SCRIPTED_CORRECTOR)
    try:
        from gtr_turbo.teachers.corrector.client import EndpointClient
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"a corrector needs the package {error.name}, which is not installed.",
            hint='pip install "gtr-turbo[corrector]"',
        ) from error
    return EndpointClient(
        url=url,
        model=config.model,
        key_variable=None if config.url == SCRIPTED_CORRECTOR else config.api_key_variable,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
    )
