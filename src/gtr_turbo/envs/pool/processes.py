"""Environments in processes of their own: one that dies, hangs or babbles costs its own episode.

Each answer of a worker carries the environment's snapshot. So when a worker is lost, a new one puts
its other environments back to where they were and does the rest of their work, and only the one
that was at fault starts a new episode. Nothing of this shows in the data of the others.
"""

import logging
import selectors
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from gtr_turbo.core.turns import JsonState
from gtr_turbo.envs.pool.base import AbstractPool, Fault, FaultKind, Outcome, Shown
from gtr_turbo.envs.pool.child import WorkerProcess
from gtr_turbo.envs.pool.wire import Answer, Failure, read_message, to_json
from gtr_turbo.envs.pool.worker import REFUSALS
from gtr_turbo.errors import TaskError

FIRST_PAUSE_SECONDS = 0.1
"""Wait before the second restart in a row that an environment causes; it doubles each time."""
LONGEST_PAUSE_SECONDS = 10.0

logger = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """How many workers there are, and how patient their parent is."""

    num_workers: int
    """Processes; the environments are dealt out evenly, and one worker's take turns."""
    step_deadline: float
    """Longest time of one environment's step, seconds."""
    start_deadline: float = 120.0
    """Longest time of a start: interpreter, imports, making a task and its first episode, s."""
    max_restarts: int = 10
    """Faults of one environment without an ended episode between them that are forgiven.

    Of all environments together, so many times their number are forgiven.
    """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSource:
    """How a worker makes its tasks: `factory(name, rules, seed)`."""

    name: str
    rules: Mapping[str, Any]
    factory: str = "gtr_turbo.envs.registry:make_task"
    """Where to import it from, `module:NAME`. Never taken from a configuration or from text."""


@final
@dataclass(frozen=True, slots=True)
class _Job:
    """One thing that a worker does to one environment."""

    index: int
    seconds: float
    """Its deadline."""
    values: dict[str, Any]

    @property
    def is_step(self) -> bool:
        return "reply" in self.values


@final
@dataclass(slots=True)
class _Worker:
    """A place for a process: which environments live there, and what they still have to do."""

    members: tuple[int, ...]
    process: WorkerProcess | None = None
    jobs: deque[_Job] = field(default_factory=deque[_Job])
    """In order; the first one is being done."""
    since: float = 0.0
    """When the first job began; without a process, when one may be started."""


@final
@dataclass(slots=True)
class _Environment:
    """What the parent knows of one environment."""

    seed: int
    last: Answer | None = None
    is_lost: bool = False
    """Its episode was lost and the next one has not begun."""
    num_faults: int = 0
    """Faults since an episode ended."""


@final
class ProcessPool(AbstractPool):
    """Workers that are started, watched and replaced. Make it in a thread that outlives it."""

    def __init__(self, source: TaskSource, seeds: Sequence[int], settings: ProcessSettings) -> None:
        """Start the workers, and an episode in each environment.

        Raises what the factory raises of ConfigError, UnknownNameError and TaskError, and TaskError
        when workers fail too often.
        """
        self._settings = settings
        self._what = {"factory": source.factory, "name": source.name, "rules": dict(source.rules)}
        self._environments = [_Environment(seed) for seed in seeds]
        indices = range(len(seeds))
        count = min(settings.num_workers, len(seeds))
        self._workers = [_Worker(tuple(indices[first::count])) for first in range(count)]
        self._home = {index: worker for worker in self._workers for index in worker.members}
        self._selector = selectors.DefaultSelector()
        self._num_faults = 0
        self._is_closed = False
        self._do([self._opening(index) for index in indices], is_start=True)

    @property
    def task_ids(self) -> list[str]:
        """Name and version of each environment's rules."""
        return [answer.task_id for answer in self._answers()]

    @property
    def shown(self) -> list[Shown]:
        """What each environment shows now."""
        return [answer.shown for answer in self._answers()]

    @property
    def num_faults(self) -> int:
        """Faults since the pool was made."""
        return self._num_faults

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers that are there."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]

    def step(self, replies: Sequence[str]) -> list[Outcome]:
        """Give one reply to each environment and return what came of it, by index."""
        if len(replies) != len(self._environments):
            raise TaskError(f"{len(self._environments)} environments got {len(replies)} replies.")
        seconds = self._settings.step_deadline
        jobs = [
            _Job(index, seconds, {"index": index, "reply": reply})
            for index, reply in enumerate(replies)
        ]
        outcomes = self._do(jobs)
        return [outcomes[index] for index in range(len(replies))]

    def state(self) -> list[JsonState]:
        """Return a snapshot of each environment; it came with its last answer."""
        return [answer.state for answer in self._answers()]

    def restore(self, states: Sequence[JsonState]) -> None:
        """Put each environment back to a snapshot of it."""
        pairs = zip(range(len(self._environments)), states, strict=True)
        self._do([self._opening(index, state) for index, state in pairs], is_start=True)

    def close(self) -> None:
        """Kill the workers; there is nothing in them that is not here."""
        self._is_closed = True
        for worker in self._workers:
            if worker.process is not None:
                worker.process.kill()
                worker.process = None
        self._selector.close()

    # -- jobs ------------------------------------------------------------------------------------

    def _do(self, jobs: Iterable[_Job], *, is_start: bool = False) -> dict[int, Outcome]:
        """Let the workers do the jobs, and return what came of the steps."""
        if self._is_closed:
            raise TaskError("the pool of environments is closed.", hint="make a new one.")
        for job in jobs:
            self._home[job.index].jobs.append(job)
        outcomes: dict[int, Outcome] = {}
        is_done = False
        try:
            for worker in self._workers:
                if worker.process is not None:
                    self._hand_over(worker, worker.process, outcomes)
            while any(worker.jobs for worker in self._workers):
                self._go_on(outcomes, is_start=is_start)
            is_done = True
        finally:
            if not is_done:
                self.close()
        return outcomes

    def _go_on(self, outcomes: dict[int, Outcome], *, is_start: bool) -> None:
        """Start workers whose pause is over, take what has come, and replace who is overdue."""
        now = time.monotonic()
        for worker in self._workers:
            if worker.jobs and worker.process is None and worker.since <= now:
                worker.process = WorkerProcess(self._settings.start_deadline)
                self._selector.register(worker.process, selectors.EVENT_READ, worker)
                self._hand_over(worker, worker.process, outcomes, self._what)
        readable: list[_Worker] = [
            key.data for key, _ in self._selector.select(max(0.0, self._next_date() - now))
        ]
        for worker in readable:
            self._listen(worker, outcomes, is_start=is_start)
        now = time.monotonic()
        for worker in self._workers:
            if worker.process is None or not worker.jobs:
                continue
            silence = now - worker.since
            # Who is saying something gets the time once more, for a long answer; not for ever.
            if silence > worker.jobs[0].seconds * (2 if worker in readable else 1):
                worker.process.ask_where_it_is()
                self._fail(worker, outcomes, "hang", f"no answer for {silence:.1f} s")

    def _next_date(self) -> float:
        """Return when something has to be done though nothing was heard."""
        return min(
            worker.since + (0.0 if worker.process is None else worker.jobs[0].seconds)
            for worker in self._workers
            if worker.jobs
        )

    def _hand_over(
        self,
        worker: _Worker,
        process: WorkerProcess,
        outcomes: dict[int, Outcome],
        what: dict[str, Any] | None = None,
    ) -> None:
        """Send a worker all its jobs, a new one also what to make; the first job begins now."""
        worker.since = time.monotonic()
        try:
            if what is not None:
                process.send(to_json(what))
            process.send(to_json([job.values for job in worker.jobs]))
        except OSError as error:
            detail = f"it was gone before it was asked ({error})"
            self._fail(worker, outcomes, "crash", detail, has_begun=False)

    def _listen(self, worker: _Worker, outcomes: dict[int, Outcome], *, is_start: bool) -> None:
        """Take what a worker has said."""
        assert worker.process is not None
        failure: Failure | None = None
        try:
            while failure is None and (payload := worker.process.receive()) is not None:
                said = read_message(payload)
                if isinstance(said, Failure):
                    failure = said
                else:
                    self._take_answer(worker, outcomes, said)
        except EOFError:
            self._fail(worker, outcomes, "crash", "its process ended")
        except TaskError as error:
            self._fail(worker, outcomes, "garbage", error.message)
        if failure is None:
            return
        if is_start and failure.kind in REFUSALS:
            raise REFUSALS[failure.kind](failure.text, hint=failure.hint)
        kind = "garbage" if failure.kind == "garbage" else "exception"
        self._fail(worker, outcomes, kind, failure.text)

    def _take_answer(self, worker: _Worker, outcomes: dict[int, Outcome], answer: Answer) -> None:
        """Believe an answer if it is one to the job in hand; raises TaskError if it is not."""
        job = worker.jobs[0] if worker.jobs else None
        if job is None or (answer.index, answer.result is not None) != (job.index, job.is_step):
            raise TaskError(f"environment {answer.index} answered what it was not asked.")
        worker.jobs.popleft()
        worker.since = time.monotonic()
        environment = self._environments[job.index]
        environment.last, environment.is_lost = answer, False
        if answer.result is not None:
            outcomes[job.index] = answer.result
            if answer.result.terminated or answer.result.truncated:
                environment.num_faults = 0

    # -- faults ----------------------------------------------------------------------------------

    def _fail(
        self,
        worker: _Worker,
        outcomes: dict[int, Outcome],
        kind: FaultKind,
        what: str,
        *,
        has_begun: bool = True,
    ) -> None:
        """End a worker, note who was at fault, and plan its successor.

        A worker that fails between two jobs costs nobody an episode, but it counts.
        Raises TaskError when that environment, or all of them together, have failed too often.
        """
        assert worker.process is not None
        self._selector.unregister(worker.process)
        status, words = worker.process.kill()
        worker.process = None
        job = worker.jobs[0] if worker.jobs else None
        index = worker.members[0] if job is None else job.index
        environment = self._environments[index]
        detail = "\n".join(part for part in (f"{what} (exit status {status})", words) if part)
        self._num_faults += 1
        environment.num_faults += 1
        logger.warning(
            "environment %d failed (%s, its fault %d since an episode ended): %s",
            index, kind, environment.num_faults, detail,
        )  # fmt: skip
        if job is not None and job.is_step and has_begun:
            environment.is_lost = True
            outcomes[index] = Fault(kind=kind, detail=detail)
            worker.jobs.popleft()
        self._refuse_too_many(index, kind, detail)
        self._plan(worker, environment.num_faults)

    def _plan(self, worker: _Worker, num_faults: int) -> None:
        """Queue what a new worker has to do: put everybody back, then the steps that are open."""
        openings = {job.index: job for job in worker.jobs if not job.is_step}
        steps = [job for job in worker.jobs if job.is_step]
        worker.jobs = deque(
            [*(openings.get(index) or self._opening(index) for index in worker.members), *steps]
        )
        worker.since = time.monotonic() + _pause_seconds(num_faults)

    def _refuse_too_many(self, index: int, kind: FaultKind, detail: str) -> None:
        most = self._settings.max_restarts
        faults, total = self._environments[index].num_faults, self._num_faults
        if faults <= most and total <= most * len(self._environments):
            return
        raise TaskError(
            f"environment {index} ({self._what['name']}) failed again: {faults} times since it last"
            f" ended an episode, {total} faults of all environments; {most} in a row and"
            f" {most * len(self._environments)} in all are allowed. This was a {kind}: {detail}",
            hint="repair the environment, give it more time (`rollout.step_deadline`) or more"
            " chances (`rollout.max_restarts`); the last checkpoint is intact.",
        )

    def _opening(self, index: int, state: JsonState | None = None) -> _Job:
        """Return the job that puts an environment where it is, or into a new episode."""
        environment = self._environments[index]
        if state is None and environment.last is not None:
            state = environment.last.state
            is_reset = environment.is_lost
        else:
            is_reset = state is None
        values = {
            "index": index, "seed": environment.seed, "state": state, "is_reset": is_reset
        }  # fmt: skip
        return _Job(index, self._settings.start_deadline, values)

    def _answers(self) -> list[Answer]:
        answers = [environment.last for environment in self._environments]
        return [answer for answer in answers if answer is not None]


def _pause_seconds(num_faults: int) -> float:
    """Return the wait before the restart after so many faults: none after the first one."""
    if num_faults <= 1:
        return 0.0
    return min(FIRST_PAUSE_SECONDS * 2.0 ** min(num_faults - 2, 30), LONGEST_PAUSE_SECONDS)
