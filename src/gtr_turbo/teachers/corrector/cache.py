"""Answers that were paid for, kept in a directory of the run: a resume pays nothing twice.

One JSON object per line, appended as answers come in. A line that a crash cut is dropped; what it
held is asked again.
"""

import json
import logging
import math
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from gtr_turbo.core.files import disk_full_error, dump_json, is_disk_full

CACHE_FILE: Final = "answers.jsonl"

logger = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """One request that was, or may have been, paid for."""

    key: str
    """Names the question (`Question.key`)."""
    text: str | None
    """The answer; None when it could not be read."""
    input_tokens: int
    output_tokens: int
    cost: float
    given_up: bool = False
    """True when the question got nothing but unreadable answers, and is not asked again."""


@final
class AnswerCache:
    """The answers of a run. One process owns it, as it owns the run."""

    def __init__(self, folder: Path) -> None:
        """Open the cache in `folder`, which is made where it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / CACHE_FILE
        self._texts: dict[str, str | None] = {}
        self._costs: list[float] = []
        self._lock = threading.Lock()
        self._read()
        self._file = self.path.open("ab", buffering=0)

    @property
    def total_cost(self) -> float:
        """What everything cost, whatever order it came in."""
        with self._lock:
            return math.fsum(self._costs)

    def find(self, key: str) -> tuple[bool, str | None]:
        """Return (whether the question is settled, its answer: None when it was given up)."""
        with self._lock:
            return key in self._texts, self._texts.get(key)

    def add(self, paid: Paid) -> None:
        """Keep what a request brought. Raises CheckpointError when the disk is full."""
        values = {
            "key": paid.key,
            "text": paid.text,
            "input_tokens": paid.input_tokens,
            "output_tokens": paid.output_tokens,
            "cost": paid.cost,
            "given_up": paid.given_up,
        }
        line = (dump_json(values) + "\n").encode("utf-8")
        with self._lock:
            size = os.fstat(self._file.fileno()).st_size
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError as error:
                os.ftruncate(self._file.fileno(), size)
                if is_disk_full(error):
                    raise disk_full_error(self.path, len(line)) from error
                raise
            self._remember(paid)

    def sync(self) -> None:
        """Force what was added to the disk."""
        if not self._file.closed:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _remember(self, paid: Paid) -> None:
        self._costs.append(paid.cost)
        if paid.text is not None or paid.given_up:
            self._texts[paid.key] = paid.text

    def _read(self) -> None:
        """Read what is there, and cut a torn last line off the file."""
        if not self.path.is_file():
            return
        *lines, rest = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, start=1):
            paid = _parse(line)
            if paid is None:
                logger.warning("line %d of %s is damaged: its answer is lost.", number, self.path)
            else:
                self._remember(paid)
        if rest:
            os.truncate(self.path, self.path.stat().st_size - len(rest))


def _parse(line: bytes) -> Paid | None:
    """Return what a line holds, None when it is damaged."""
    try:
        values: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or not isinstance(values.get("key"), str):
        return None
    text: Any = values.get("text")
    cost: Any = values.get("cost")
    if not isinstance(text, str | None) or not _is_amount(cost):
        return None
    return Paid(
        key=values["key"],
        text=text,
        input_tokens=0,
        output_tokens=0,
        cost=float(cost),
        given_up=values.get("given_up") is True,
    )


def _is_amount(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0
