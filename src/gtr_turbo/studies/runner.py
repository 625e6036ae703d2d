"""Runs what a study lacks: every run a process of its own, so many at a time, all resumable."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, final

from gtr_turbo.core.config import Config, to_yaml
from gtr_turbo.core.files import write_text_atomically
from gtr_turbo.core.lock import DirectoryLock
from gtr_turbo.errors import RunLockedError
from gtr_turbo.runstate import LOCK_FILE
from gtr_turbo.studies.child import arguments_of
from gtr_turbo.studies.places import SAMPLES_FILE, StudyPlaces, has_samples, is_finished
from gtr_turbo.studies.progress import AbstractStudyProgress
from gtr_turbo.studies.starts import give_start, is_whole, start_config, start_key
from gtr_turbo.studies.study import StudyRun

START_PREFIX: Final = "start-"
"""Jobs that make a shared start are called like this."""
SAMPLES_PREFIX: Final = "samples-"
"""Jobs that play a finished run's panel several times."""
POLL_SECONDS: Final = 0.1
GRACE_SECONDS: Final = 10.0
"""Time that a child has to end when it is asked to; then it is killed."""
SHOWN_LINES: Final = 12
"""Last lines of a failed run's log that are shown."""
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Busy processes with several threads each slow one another down."""
MEMORY: Final = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000"}
"""glibc gives freed activations back to the kernel and faults them in again otherwise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One process that a study needs."""

    name: str
    config: Config
    directory: Path
    command: tuple[str, ...]
    """Arguments of gtr-turbo."""
    needs: str | None
    """Job that must be finished before."""
    is_done: Callable[[], bool]
    prepare: Callable[[], None]
    """What is done right before it starts."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A job that did not finish."""

    name: str
    reason: str
    log: Path
    last_lines: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Active:
    """A job under way."""

    job: Job
    process: "subprocess.Popen[bytes]"
    log: IO[bytes]


def plan_jobs(places: StudyPlaces, runs: Sequence[StudyRun], num_samples: int = 1) -> list[Job]:
    """Return the jobs that are missing: starts, runs, and panels that are played several times.

    Each job comes after the one that it needs. Raises ResumeError when a run is there that was made
    under other settings.
    """
    jobs: dict[str, Job] = {}
    for run in runs:
        directory = places.run(run.name)
        if not is_finished(directory, run):
            start = start_config(run.config)
            needs = None if start is None else f"{START_PREFIX}{start_key(start)}"
            if start is not None and needs is not None and needs not in jobs:
                jobs[needs] = _start_job(places, needs, start)
            jobs[run.name] = _run_job(places, run, start, needs)
        if num_samples > 1 and (run.name in jobs or not has_samples(directory, num_samples)):
            name = f"{SAMPLES_PREFIX}{run.name}"
            jobs[name] = _samples_job(places, run, name, num_samples)
    return list(jobs.values())


def _start_job(places: StudyPlaces, name: str, start: Config) -> Job:
    directory = places.start(start_key(start))
    file = places.config(name)
    return Job(
        name=name,
        config=start,
        directory=directory,
        command=("sft", "--config", str(file), "--out", str(directory)),
        needs=None,
        is_done=lambda: is_whole(directory),
        prepare=lambda: None,
    )


def _run_job(places: StudyPlaces, run: StudyRun, start: Config | None, needs: str | None) -> Job:
    directory = places.run(run.name)

    def prepare() -> None:
        if start is not None:
            give_start(places.start(start_key(start)), directory)

    named = {
        "--config": places.config(run.name),
        "--run-dir": directory,
        "--seed": run.seed,
        "--updates": run.config.run.num_updates,
    }
    options = [str(word) for pair in named.items() for word in pair]
    return Job(
        name=run.name,
        config=run.config,
        directory=directory,
        command=("train", "--resume", *options),
        needs=needs,
        is_done=lambda: is_finished(directory, run),
        prepare=prepare,
    )


def _samples_job(places: StudyPlaces, run: StudyRun, name: str, count: int) -> Job:
    directory = places.run(run.name)
    named = {"--samples": count, "--json": directory / SAMPLES_FILE}
    options = [str(word) for pair in named.items() for word in pair]
    return Job(
        name=name,
        config=run.config,
        directory=directory,
        command=("eval", str(directory), *options),
        needs=run.name,
        is_done=lambda: has_samples(directory, count),
        prepare=lambda: None,
    )


@final
class Runner:
    """Runs jobs, `slots` at a time. Each slot may have environment variables of its own."""

    def __init__(
        self,
        places: StudyPlaces,
        slots: Sequence[Mapping[str, str]],
        progress: AbstractStudyProgress,
        *,
        one_thread: bool,
    ) -> None:
        """Take the study's directory, one mapping of variables per slot, and who is told."""
        self.places, self.slots, self.progress = places, list(slots), progress
        self._common = MEMORY | os.environ | (ONE_THREAD if one_thread else {})
        self._active: dict[int, _Active] = {}
        self._failures: dict[str, Failure] = {}

    def run(self, jobs: Sequence[Job]) -> list[Failure]:
        """Run the jobs and return those that failed; the others are not held up by them.

        Whatever ends this process ends the children too, and all of them can be resumed.
        """
        waiting = list(jobs)
        with _terminate_is_interrupt():
            try:
                while waiting or self._active:
                    self._settle()
                    waiting = self._start(waiting)
                    self.progress.show([(a.job.name, a.job.directory, a.job.config)
                                        for a in self._active.values()])  # fmt: skip
                    time.sleep(POLL_SECONDS)
            finally:
                self._end_all()
        return list(self._failures.values())

    def _start(self, waiting: Sequence[Job]) -> list[Job]:
        """Start what can be started, and return the jobs that still wait."""
        unsettled = {job.name for job in waiting} | {a.job.name for a in self._active.values()}
        left: list[Job] = []
        for job in waiting:
            if job.needs in self._failures:
                self._fail(job, f"it needs {job.needs}, which failed")
            elif self._is_free(job, unsettled):
                if job.is_done():  # somebody else has finished it
                    self.progress.finished(job.name)
                else:
                    self._launch(job)
            else:
                left.append(job)
        return left

    def _is_free(self, job: Job, unsettled: set[str]) -> bool:
        """Return whether a slot is free, what the job needs is there and nobody else has it."""
        if len(self._active) == len(self.slots) or job.needs in unsettled:
            return False
        try:
            DirectoryLock.take(job.directory, LOCK_FILE, create=False).release()
        except RunLockedError:
            return False
        return True

    def _launch(self, job: Job) -> None:
        slot = next(number for number in range(len(self.slots)) if number not in self._active)
        file, path = self.places.config(job.name), self.places.log(job.name)
        for parent in (file.parent, path.parent):
            parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(file, to_yaml(job.config))
        job.prepare()
        log = path.open("ab")
        process = subprocess.Popen(
            arguments_of(job.command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**self._common, **self.slots[slot]},
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends them
        )
        self._active[slot] = _Active(job=job, process=process, log=log)
        self.progress.started(job.name)

    def _settle(self) -> None:
        """Take note of the processes that have ended."""
        for slot, active in list(self._active.items()):
            code = active.process.poll()
            if code is None:
                continue
            del self._active[slot]
            active.log.close()
            if code == 0 and active.job.is_done():
                self.progress.finished(active.job.name)
            else:
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                self._fail(active.job, f"it ended with {how}")

    def _fail(self, job: Job, reason: str) -> None:
        log = self.places.log(job.name)
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        failure = Failure(
            name=job.name,
            reason=reason,
            log=log,
            last_lines=tuple(text.splitlines()[-SHOWN_LINES:]),
        )
        self._failures[job.name] = failure
        self.progress.failed(job.name, reason)

    def _end_all(self) -> None:
        """End the children that are left, gently first."""
        children = [active.process for active in self._active.values()]
        for child in children:
            _signal(child, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        for child in children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(deadline - time.monotonic(), 0.0))
            _signal(child, signal.SIGKILL)  # the group: whatever the child has left behind
            child.wait()
        for active in self._active.values():
            active.log.close()
        self._active.clear()


def _signal(child: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


@contextmanager
def _terminate_is_interrupt() -> Iterator[None]:
    """Make SIGTERM end this process the way Ctrl-C does, and put the old handler back."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)
