"""Named hook points at which a test can make a run die, fail or wait. Off unless asked for.

    GTR_TURBO_FAULT="write.renamed:3:kill"      die at the third passing of `write.renamed`
    GTR_TURBO_FAULT="*:17:enospc"               a full disk at the 17th point of any name
    GTR_TURBO_FAULT="phase.act:2:delay=0.5,write.filled:4:raise"
    GTR_TURBO_FAULT_TRACE=points.txt            append the name of each point that is passed

Recovery that nobody exercises stops working; shipping the injector keeps it working.
"""

import errno
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import final

from gtr_turbo.errors import ConfigError

FAULT_VARIABLE = "GTR_TURBO_FAULT"
TRACE_VARIABLE = "GTR_TURBO_FAULT_TRACE"
ANY_POINT = "*"
FORM_HINT = f"write {FAULT_VARIABLE}=NAME:K:ACTION[,…] with ACTION kill, raise, enospc or delay=S."

_passed: Counter[str] = Counter()


@final
class InjectedFaultError(RuntimeError):
    """What the action `raise` raises."""


@final
@dataclass(frozen=True, slots=True)
class Fault:
    """One planned failure."""

    name: str
    """Point that it waits for, or `*` for any."""
    passing: int
    """It strikes at this passing, counted from 1."""
    action: str
    """`kill`, `raise`, `enospc` or `delay`."""
    delay_seconds: float = 0.0

    def strike(self, point: str) -> None:
        """Do what was planned, at `point`."""
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.action == "enospc":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), point)
        if self.action == "raise":
            raise InjectedFaultError(f"fault injected at `{point}`.")
        time.sleep(self.delay_seconds)


def parse_faults(text: str) -> tuple[Fault, ...]:
    """Return the faults that a `GTR_TURBO_FAULT` value plans.

    Raises ConfigError for anything that is not of the form `NAME:K:ACTION`.

    >>> parse_faults("a.b:2:delay=0.5")
    (Fault(name='a.b', passing=2, action='delay', delay_seconds=0.5),)
    """
    return tuple(_parse_fault(part) for part in text.split(","))


def _parse_fault(text: str) -> Fault:
    name, _, rest = text.strip().partition(":")
    passing, _, action = rest.partition(":")
    action, equals, seconds = action.partition("=")
    if not (name and passing.isdecimal() and int(passing) >= 1):
        raise ConfigError(
            f"`{text}` is not a fault: it needs a name and a count ≥ 1.", hint=FORM_HINT
        )
    if action in ("kill", "raise", "enospc") and not equals:
        return Fault(name, int(passing), action)
    if action == "delay" and seconds.replace(".", "", 1).isdecimal():
        return Fault(name, int(passing), action, float(seconds))
    raise ConfigError(f"`{text}` has no action that can be injected.", hint=FORM_HINT)


def fault_point(name: str) -> None:
    """Count this passing of `name`, and fail here if that was asked for."""
    if FAULT_VARIABLE not in os.environ and TRACE_VARIABLE not in os.environ:
        return
    trace = os.environ.get(TRACE_VARIABLE)
    if trace:
        with Path(trace).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")
    _passed[name] += 1
    _passed[ANY_POINT] += 1
    plan = os.environ.get(FAULT_VARIABLE)
    for fault in parse_faults(plan) if plan else ():
        if fault.name in (name, ANY_POINT) and _passed[fault.name] == fault.passing:
            fault.strike(name)


def forget_passings() -> None:
    """Set every count back to zero."""
    _passed.clear()
