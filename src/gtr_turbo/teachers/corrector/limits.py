"""What keeps requests within bounds: a rate, a budget, and a breaker for an endpoint that is down.

All three are shared by the threads that ask.
"""

import threading
import time
from typing import Final, final

_SECONDS_PER_MINUTE: Final = 60.0


@final
class RateLimiter:
    """Lets requests through at a steady rate, and at none while an endpoint asked for a pause."""

    def __init__(self, per_minute: float | None, halt: threading.Event) -> None:
        """`halt` ends all waiting."""
        self._interval = 0.0 if per_minute is None else _SECONDS_PER_MINUTE / per_minute
        self._halt = halt
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self, deadline: float | None) -> bool:
        """Wait for a place in the row and return True.

        Return False, at once, when it would come after `deadline` (monotonic seconds; None: there
        is no deadline yet), and when waiting was ended.
        """
        with self._lock:
            now = time.monotonic()
            place = max(now, self._next)
            if deadline is not None and place >= deadline:
                return False
            self._next = place + self._interval
        return not (self._halt.wait(place - now) if place > now else self._halt.is_set())

    def hold(self, seconds: float) -> None:
        """Let nobody through for so long."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


@final
class Budget:
    """Money that may be spent. What a request may cost at most is set aside before it is sent."""

    def __init__(self, limit: float | None, spent: float) -> None:
        """None sets no limit; `spent` is what the run has paid before."""
        self._limit = limit
        self._spent = spent
        self._reserved = 0.0
        self._num_reserved = 0
        self._changed = threading.Condition()
        self.is_spent = False
        """Whether a request was refused for want of money."""

    def reserve(self, amount: float) -> bool:
        """Set `amount` aside and return True; return False when that would exceed the limit.

        While other requests are under way, which may turn out cheaper than feared, it waits.
        """
        with self._changed:
            while self._limit is not None and self._spent + self._reserved + amount > self._limit:
                if self._num_reserved == 0:
                    self.is_spent = True
                    return False
                self._changed.wait()
            self._reserved += amount
            self._num_reserved += 1
            return True

    def settle(self, reserved: float, cost: float) -> None:
        """Replace what was set aside by what it did cost."""
        with self._changed:
            self._num_reserved -= 1
            self._reserved = self._reserved - reserved if self._num_reserved else 0.0
            self._spent += cost
            self._changed.notify_all()


@final
class Breaker:
    """Opens after failures in a row; then lets one trial through after each pause.

    A thread says how its question went before it asks for the next one.
    """

    def __init__(self, max_failures: int, pause: float) -> None:
        """`pause` is in seconds."""
        self._max_failures = max_failures
        self._pause = pause
        self._failures = 0
        self._opened_at: float | None = None
        self._trial: int | None = None
        """The thread that is on trial."""
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether the endpoint counts as down."""
        return self._opened_at is not None

    def allow(self) -> bool:
        """Return whether to ask now; where that is a trial, nobody else may until it is over."""
        with self._lock:
            if self._opened_at is None:
                return True
            if self._trial is not None or time.monotonic() - self._opened_at < self._pause:
                return False
            self._trial = threading.get_ident()
            return True

    def succeed(self) -> None:
        """Count an answer: the endpoint is up, unless this one was under way when it went down."""
        with self._lock:
            if self._end_trial() or self._opened_at is None:
                self._failures, self._opened_at = 0, None

    def fail(self, *, for_good: bool = False) -> bool:
        """Count a state without an answer, and return whether this one opened the breaker.

        `for_good` opens it at once: the endpoint said that asking again is no use.
        """
        with self._lock:
            was_open, was_trial = self._opened_at is not None, self._end_trial()
            self._failures += 1
            if was_open and not was_trial and not for_good:
                return False  # it was under way when others opened the breaker
            if was_open or for_good or self._failures >= self._max_failures:
                self._opened_at = time.monotonic()
            return not was_open and self._opened_at is not None

    def abandon(self) -> None:
        """End a trial that came to no result."""
        with self._lock:
            self._end_trial()

    def _end_trial(self) -> bool:
        """Return whether this thread was on trial; it no longer is."""
        was_trial = self._trial == threading.get_ident()
        if was_trial:
            self._trial = None
        return was_trial
