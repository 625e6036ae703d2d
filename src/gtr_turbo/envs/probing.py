"""How the laws of `check` try a task: start it, play it, compare what it shows, refuse.

A `Subject` is the task on trial. Its usual play is the expert's; where a task has no expert, it is
play at random among the admissible actions.
"""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np

from gtr_turbo.core.turns import JsonState, Observation, StepResult
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.episodes import make_generator
from gtr_turbo.errors import TaskError

MakeTask = Callable[[int], AbstractTask]
"""Makes a task from the seed of its episodes."""

GARBAGE = (
    "",
    " \n\t",
    "no JSON at all",
    "{",
    '{"action":',
    '{"action": null}',
    '{"action": ["a"], "thoughts": "x"}',
    '{"thoughts": "x", "action": "no such action"}',
    '{"action": "1", "action": "2"}',
    "```json\n```",
    "[" * 5_000,
    '{"a":' * 5_000,
    '{"action": ' + "9" * 5_000 + "}",
    "\x00\ud800\uffff",
    "\N{CARD INDEX DIVIDERS}" * 3_000,
)
"""Replies that no task can make sense of, or only with great care."""

NUM_EPISODES = 6
"""Episodes that each law looks at: enough for solvable and unsolvable hands of each game."""
MAX_TURNS = 1_000
"""An episode that is still running then is taken for endless."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A task on trial."""

    make: MakeTask
    with_expert: bool
    """Whether the usual play is the expert's, or else play at random."""

    def started(self, seed: int) -> AbstractTask:
        """Return a task in the episode of `seed`."""
        task = self.make(seed)
        task.reset(seed)
        return task

    def copied(self, seed: int, state: JsonState) -> AbstractTask:
        """Return a task of another seed that was restored from a snapshot."""
        task = self.make(seed + 1)
        task.restore(state)
        return task

    def usual_replies(self, seed: int) -> list[str]:
        """Return the replies of the usual play of an episode, up to its end."""
        task = self.started(seed)
        if not self.with_expert:
            return _random_replies(task, make_generator(seed))
        trace = task.demonstrate(make_generator(seed))
        require(len(trace) > 0, f"seed {seed}: the expert's trace is empty")
        return [turn.reply for turn in trace]

    def all_observations(self) -> Iterator[Observation]:
        """Yield what a few episodes of usual play and of garbage show."""
        for seed in range(NUM_EPISODES):
            for replies in (self.usual_replies(seed), GARBAGE):
                task = self.started(seed)
                yield task.observation
                for result in play(task, replies):
                    yield result.observation


def _random_replies(task: AbstractTask, generator: np.random.Generator) -> list[str]:
    replies: list[str] = []
    while len(replies) < MAX_TURNS:
        actions = task.admissible_actions
        action = actions[generator.integers(len(actions))] if actions else ""
        replies.append(task.write_action(action))
        if is_end(task.step(replies[-1])):
            break
    return replies


def replay(subject: Subject, seed: int, *, mistake: bool) -> list[StepResult]:
    """Return the results of an expert's replies on a fresh task, after checking the trace."""
    expert = subject.started(seed)
    trace = expert.demonstrate(make_generator(seed), mistake=mistake)
    again = subject.started(seed).demonstrate(make_generator(seed), mistake=mistake)
    replies = [turn.reply for turn in trace]
    require(replies == [turn.reply for turn in again], "a trace draws from another generator")
    require(refuses_step(expert), f"seed {seed}: the trace does not play to the end")
    task = subject.started(seed)
    shown = task.observation
    results = play(task, replies)
    require(len(results) == len(trace) > 0, f"seed {seed}: the replies end elsewhere")
    for turn, result in zip(trace, results, strict=True):
        require_same(turn.observation, shown, f"seed {seed}: the trace's observation")
        require(
            result.parsed.valid_format and result.parsed.action is not None,
            f"seed {seed}: the expert's reply {turn.reply!r} is not of valid format",
        )
        shown = result.observation
    return results


def play(task: AbstractTask, replies: Sequence[str]) -> list[StepResult]:
    """Return the results of the replies, up to the episode's end."""
    results: list[StepResult] = []
    for reply in replies:
        results.append(task.step(reply))
        if is_end(results[-1]):
            break
    return results


def is_end(result: StepResult) -> bool:
    """Return whether an episode is over."""
    return result.terminated or result.truncated


def refuses_step(task: AbstractTask) -> bool:
    """Return whether a step raises TaskError, as it must outside an episode."""
    return refuses(lambda: task.step(GARBAGE[0]))


def refuses(use: Callable[[], object]) -> bool:
    """Return whether `use` raises TaskError."""
    try:
        use()
    except TaskError:
        return True
    return False


def require(condition: bool, detail: str) -> None:
    """Raise TaskError with `detail` unless the condition holds."""
    if not condition:
        raise TaskError(f"{detail}.")


def require_same(first: Observation, second: Observation, where: str) -> None:
    """Raise TaskError unless two observations are equal, picture and all."""
    require(first.prompt == second.prompt, f"{where}: the prompts differ")
    require(first.state_key == second.state_key, f"{where}: the state keys differ")
    require(np.array_equal(first.picture, second.picture), f"{where}: the pictures differ")


def require_same_play(first: AbstractTask, second: AbstractTask, replies: Sequence[str]) -> None:
    """Raise TaskError unless two tasks answer the same replies in the same way."""
    pairs = zip(play(first, replies), play(second, replies), strict=True)
    for turn, (one, other) in enumerate(pairs):
        require_same(one.observation, other.observation, f"turn {turn}")
        verdicts = [
            (r.parsed, r.legal, dict(r.rewards), r.terminated, r.truncated, r.success)
            for r in (one, other)
        ]
        require(verdicts[0] == verdicts[1], f"turn {turn}: {verdicts[0]} and {verdicts[1]}")


@contextmanager
def global_generators_untouched() -> Generator[None]:
    """Raise TaskError when what is done inside has used numpy's or Python's global generator."""
    before = _global_state()
    yield
    require(_global_state() == before, "a global random generator was used")


def _global_state() -> str:
    """Return what numpy's and Python's global generators would do next, as text."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - looked at, not used
    return repr((name, np.asarray(keys).tolist(), rest, _python_state()))


def _python_state() -> object:
    """Return the state of Python's generator, or None where it says nothing.

    It is looked up, not imported, because nothing in this package may import it. Where beartype is
    loaded, its checks draw from that generator, so a change would not be the task's doing.
    """
    module = sys.modules.get("random")
    return None if module is None or "beartype" in sys.modules else module.getstate()
