"""One request to an OpenAI-compatible endpoint, and everything that can come of it, as values.

Nothing here tries again: what to do about a failure is decided where all of them are seen
(`asking.py`). This module needs the extra `corrector`; it is imported when somebody is asked.
"""

import logging
import os
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Annotated, Any, Final, final

import httpx2
import openai
from pydantic import BaseModel, Field, ValidationError

from gtr_turbo.errors import ConfigError
from gtr_turbo.teachers.corrector.guards import BodyError, Watch, bound
from gtr_turbo.teachers.corrector.outcomes import AbstractEndpoint, Answered, Failed
from gtr_turbo.teachers.corrector.questions import Message

_UNAUTHORISED: Final = (401, 403)
_RETRIED: Final = (408, 409, 425, 429)
_BAD_REQUEST: Final = 400
_SERVER_ERROR: Final = 500
_MIN_SECRET_LENGTH: Final = 8
"""Shorter keys are words such as EMPTY that local servers take; they are no secrets."""
_REFUSABLE: Final = {
    "max_completion_tokens": "max_tokens",
    "response_format": "response_format",
    "temperature": "temperature",
}
"""What an endpoint names when it refuses a setting → the setting of ours that it refuses."""
_MAX_DETAIL: Final = 200
_MAX_TOKENS_COUNTED: Final = 100_000_000
"""A larger count of tokens is no count."""

logger = logging.getLogger(__name__)

_Count = Annotated[int, Field(ge=0, le=_MAX_TOKENS_COUNTED)]


@final
class _Usage(BaseModel):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None

    def counts(self) -> tuple[int, int] | None:
        """Return the tokens of question and answer, None where one of them is not told."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens, self.completion_tokens


@final
class _Message(BaseModel):
    content: str | None = None


@final
class _Choice(BaseModel):
    message: _Message


@final
class _Completion(BaseModel):
    """What is read of a chat completion."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


@final
class EndpointClient(AbstractEndpoint):
    """Sends one chat completion after the other, from any number of threads."""

    def __init__(
        self, *, url: str, model: str, key_variable: str | None, temperature: float, max_tokens: int
    ) -> None:
        """`key_variable` names the environment variable with the key; None: no key is needed.

        Raises ConfigError when the variable is not set.
        """
        self._key_variable = key_variable
        self._key()
        self._model = model
        self._settings = {"temperature": temperature, "max_tokens": max_tokens}
        self._refused_settings: set[str] = set()
        self._here = threading.local()
        self._watches: set[Watch] = set()
        self._lock = threading.Lock()
        _quiet()
        self._http = httpx2.Client(
            verify=_certificates(),
            event_hooks={"request": [self._follow], "response": [self._bound]},
            follow_redirects=False,  # the key goes where it was meant to go
            trust_env=key_variable is not None,  # no proxy between this process and itself
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        )
        self._sdk = openai.OpenAI(
            api_key=self._key,
            base_url=url,
            http_client=self._http,
            max_retries=0,
            default_headers={"Accept-Encoding": "identity"},
        )
        # Settings vary with the endpoint, which the SDK's overloads have no words for.
        self._create: Any = self._sdk.chat.completions.with_raw_response.create

    def complete(self, messages: Sequence[Message], seconds: float) -> Answered | Failed:
        """Return the answer to a question, or what went wrong, after `seconds` at most."""
        options = self._options()
        with self._watched(seconds) as watch:
            try:
                raw = self._create(
                    model=self._model, messages=list(messages), timeout=seconds, **options
                )
                found = _read_completion(raw.content)
            except openai.APIStatusError as error:
                found = self._refused(error.response, options)
            except (openai.OpenAIError, httpx2.HTTPError, BodyError, OSError) as error:
                found = self._lost(error, watch)
        if isinstance(found, Answered) and self._is_told(found.text):
            return _unreadable("the answer holds the key")
        return found

    def abort(self) -> None:
        """End all requests that are under way."""
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.expire()

    def close(self) -> None:
        """Let go of all connections."""
        self._http.close()

    def _key(self) -> str:
        """Return the key as the environment has it now."""
        if self._key_variable is None:
            return "none"
        key = os.environ.get(self._key_variable, "").strip()
        if not key:
            raise ConfigError(
                f"the environment variable {self._key_variable}, which is to hold the key of the"
                " API, is not set.",
                hint="export it; a server that needs no key takes any word, such as EMPTY.",
            )
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise ConfigError(
                f"the environment variable {self._key_variable} holds characters that no key has.",
                hint="was more than the key copied into it?",
            )
        return key

    def _options(self) -> dict[str, Any]:
        """Return the request's settings, in the words that the endpoint understands."""
        options: dict[str, Any] = {
            **self._settings,
            "response_format": {"type": "json_object"},
        }
        with self._lock:
            refused = set(self._refused_settings)
        if "max_tokens" in refused:
            options["max_completion_tokens"] = options["max_tokens"]
        return {name: value for name, value in options.items() if name not in refused}

    # ------------------------------------------------------------------------------- one request

    @contextmanager
    def _watched(self, seconds: float) -> Iterator[Watch]:
        watch = Watch(seconds)
        self._here.watch = watch
        with self._lock:
            self._watches.add(watch)
        watch.start()
        try:
            yield watch
        finally:
            watch.stop()
            with self._lock:
                self._watches.discard(watch)

    def _follow(self, request: httpx2.Request) -> None:
        """Let this thread's watch see the connection of a request."""
        request.extensions = {**request.extensions, "trace": self._here.watch.trace}

    def _bound(self, response: httpx2.Response) -> None:
        """Bound the body of a response."""
        self._here.watch.has_headers = response.is_success
        bound(response)

    # ---------------------------------------------------------------------------------- failures

    def _lost(self, error: Exception, watch: Watch) -> Failed:
        """Return what an error says that came instead of a whole answer."""
        if watch.has_expired:
            reason = "no answer within the deadline"
        elif isinstance(error, BodyError):
            reason = str(error)
        else:
            reason = f"{type(error).__name__}: {error}; {error.__cause__ or 'no more is known'}"
        return Failed(
            reason=self._clean(reason),
            may_retry=True,
            is_unreadable=isinstance(error, BodyError) and watch.has_headers,
            may_cost=watch.has_headers,
        )

    def _refused(self, response: httpx2.Response, sent: Mapping[str, Any]) -> Failed:
        """Return what an answer with an error's status says of a request with these settings."""
        status = response.status_code
        if status in _UNAUTHORISED:
            return Failed(
                reason=f"HTTP {status}: the key in {self._key_variable} is not accepted",
                may_retry=False,
                for_good=True,
            )
        reason = self._clean(f"HTTP {status}: {response.text}")
        if status == _BAD_REQUEST and self._learn(response.text, sent):
            return Failed(reason=reason, may_retry=True, at_once=True)
        may_retry = status in _RETRIED or status >= _SERVER_ERROR
        return Failed(reason=reason, may_retry=may_retry, wait=_retry_after(response.headers))

    def _learn(self, body: str, sent: Mapping[str, Any]) -> bool:
        """Leave a setting out from here on that the endpoint refuses and that was sent.

        Return whether there is one. Requests that were under way together all learn the same.
        """
        for name, setting in _REFUSABLE.items():
            if name not in body or setting not in sent:
                continue
            with self._lock:
                is_new = setting not in self._refused_settings
                self._refused_settings.add(setting)
            if is_new:
                then = "is left out" if name == setting else f"takes the place of `{setting}`"
                logger.warning(
                    "the endpoint refuses a setting and names `%s`: it %s from here on.", name, then
                )
            return True
        return False

    def _is_told(self, text: str) -> bool:
        """Return whether a text holds the key."""
        key = self._key()
        return len(key) >= _MIN_SECRET_LENGTH and key in text

    def _clean(self, text: str) -> str:
        """Return a text as one short line of printable characters without the key."""
        key = self._key()
        if len(key) >= _MIN_SECRET_LENGTH:
            text = text.replace(key, "[key]")
        line = "".join(character if character.isprintable() else " " for character in text)
        return " ".join(line.split())[:_MAX_DETAIL]


@cache
def _certificates() -> ssl.SSLContext:
    """Return what servers are verified with; it takes a while to load."""
    return httpx2.create_ssl_context()


def _quiet() -> None:
    """Keep the HTTP client from logging a line per request, unless somebody asked for it."""
    for name in ("httpx2", "httpcore2", "openai"):
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.WARNING)


def _read_completion(body: bytes) -> Answered | Failed:
    """Return the text of a chat completion's body."""
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        return _unreadable("the body is no chat completion")
    text, usage = completion.choices[0].message.content, completion.usage
    if not text:
        return _unreadable("the answer is empty")
    return Answered(text=text, usage=None if usage is None else usage.counts())


def _unreadable(reason: str) -> Failed:
    return Failed(reason=reason, may_retry=True, is_unreadable=True, may_cost=True)


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Return the seconds of a Retry-After header: a number, or a date; None without one."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value)
    return None if seconds is None or not 0 <= seconds < float("inf") else seconds


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
