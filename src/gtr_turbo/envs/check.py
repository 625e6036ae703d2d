"""A public conformance check that every environment passes.

    report = check_task(lambda seed: make_task("points24", {}, seed))

Each law is a function of its own, listed in `LAWS`; the first that is broken raises TaskError with
the law's name. The laws hold for any task; what a task shows, says and rewards is its own business.
"""

import json
import math
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np

from gtr_turbo.core.turns import Observation, ParsedReply, StepResult
from gtr_turbo.envs.base import AbstractTask
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

_NUM_EPISODES = 6
"""Episodes that each law looks at: enough for solvable and unsolvable hands of each game."""
_MAX_TURNS = 1_000
"""An episode that is still running then is taken for endless."""
_NUM_SNAPSHOTS = 4
"""Places in an episode, counted from its start, at which a snapshot is tried."""
_PICTURE_AXES = 3
_NUM_COLORS = 3

_FAULTS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a broken task may raise in the middle of a law (RecursionError is a RuntimeError)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a conformance check has found."""

    task_id: str
    laws: tuple[str, ...]
    """Names of the laws, all of which hold."""
    num_episodes: int
    """Hands, or whatever the task deals, that the expert played."""
    num_turns: int
    num_solvable: int
    """Episodes that could be won, each of which the expert won."""


def check_task(make: MakeTask) -> CheckReport:
    """Return a report when every law holds for the tasks that `make(seed)` returns.

    Raises TaskError that names the broken law and says how it was broken.
    """
    for name, law in LAWS.items():
        try:
            with _global_generators_untouched():
                law(make)
        except _FAULTS as error:
            raise TaskError(f'the law "{name}" is broken: {_describe(error)}') from error
    num_turns = num_solvable = 0
    for seed in range(_NUM_EPISODES):
        num_turns += len(_expert_replies(make, seed))
        num_solvable += _started(make, seed).solvable
    return CheckReport(
        task_id=make(0).task_id,
        laws=tuple(LAWS),
        num_episodes=_NUM_EPISODES,
        num_turns=num_turns,
        num_solvable=num_solvable,
    )


def _describe(error: Exception) -> str:
    return error.message if isinstance(error, TaskError) else f"{type(error).__name__}: {error}."


# ---------------------------------------------------------------------------------------- the laws


def _same_task_seed_same_episodes(make: MakeTask) -> None:
    first, second = make(3), make(3)
    for episode in range(_NUM_EPISODES):
        _require_same(first.reset(), second.reset(), f"episode {episode} of two equal tasks")
        _require(first.episode_seed == second.episode_seed, "`episode_seed` differs")
        _require_same_play(first, second, GARBAGE)


def _episode_seed_decides_alone(make: MakeTask) -> None:
    for seed in range(_NUM_EPISODES):
        replies = (*GARBAGE[:3], *_expert_replies(make, seed))
        first, second, third = make(0), make(1), make(0)
        second.reset()
        _require_same(first.reset(seed), second.reset(seed), f"the episode of seed {seed}")
        _require(second.episode_seed == seed, f"`episode_seed` is not {seed} after reset({seed})")
        _require_same_play(first, second, replies)
        _require_same(first.reset(), third.reset(), "the unseeded episode after a seeded one")


def _snapshot_continues(make: MakeTask) -> None:
    for seed in range(_NUM_EPISODES):
        expert = _expert_replies(make, seed)
        for replies in (expert, [*GARBAGE[:2], *expert]):
            for num_before in range(min(_NUM_SNAPSHOTS, len(replies) + 1)):
                _require_snapshot_continues(make, seed, replies, num_before)


def _require_snapshot_continues(
    make: MakeTask, seed: int, replies: Sequence[str], num_before: int
) -> None:
    """Play `num_before` replies, restore a snapshot elsewhere, and compare all that follows."""
    task = _started(make, seed)
    before = _play(task, replies[:num_before])
    saved = json.dumps(task.state())
    restored = make(seed + 1)
    restored.restore(json.loads(saved))
    _require(json.dumps(restored.state()) == saved, "a restored state is another state")
    _require(task.episode_seed == restored.episode_seed, "`episode_seed` is lost in restoring")
    _require_same(task.observation, restored.observation, "what is shown after restoring")
    if not (before and _is_end(before[-1])):
        _require_same_play(task, restored, replies[num_before:])
    _require_same(task.reset(), restored.reset(), "the episode after a restored one")


def _pictures_are_pictures(make: MakeTask) -> None:
    shape = _started(make, 0).observation.picture.shape
    for observation in _all_observations(make):
        picture = observation.picture
        _require(picture.dtype == np.uint8, f"a picture's dtype is {picture.dtype}, not uint8")
        _require(
            picture.ndim == _PICTURE_AXES and picture.shape[-1] == _NUM_COLORS and picture.size > 0,
            f"a picture's shape is {picture.shape}, not (height, width, 3)",
        )
        _require(picture.shape == shape, f"pictures change from {shape} to {picture.shape}")


def _states_look_the_same(make: MakeTask) -> None:
    seen: dict[str, Observation] = {}
    for observation in _all_observations(make):
        earlier = seen.setdefault(observation.state_key, observation)
        _require_same(earlier, observation, f'the state "{observation.state_key}"')
    task = _started(make, 0)
    _require_same(task.observation, task.observation, "one state, asked for twice")


def _prompts_say_something(make: MakeTask) -> None:
    for observation in _all_observations(make):
        _require(bool(observation.prompt.strip()), "a prompt is empty")
        _require(bool(observation.state_key), "a state key is empty")


def _bad_replies_are_classified(make: MakeTask) -> None:
    for reply in GARBAGE:
        result = _started(make, 0).step(reply)
        parsed = result.parsed
        _require(parsed.action is not None or not result.legal, "no action, yet a legal one")
        _require(
            _is_explained(parsed), f"the verdict {parsed} lacks its reason, or has one too many"
        )


def _is_explained(parsed: ParsedReply) -> bool:
    all_is_well = parsed.action is not None and parsed.valid_format
    return (parsed.reason is None) == all_is_well


def _episodes_end_one_way(make: MakeTask) -> None:
    for seed in range(_NUM_EPISODES):
        for replies in (_expert_replies(make, seed), GARBAGE):
            results = _play(_started(make, seed), replies * (_MAX_TURNS // len(replies)))
            _require(_is_end(results[-1]), f"no end after {len(results)} turns")
            for result in results:
                _require(
                    not (result.terminated and result.truncated), "both terminated and truncated"
                )
                _require(not result.success or result.terminated, "solved, but not terminated")


def _no_step_outside_an_episode(make: MakeTask) -> None:
    _require(_refuses_step(make(0)), "a step before the first reset is not refused by a TaskError")
    task = _started(make, 0)
    _play(task, _expert_replies(make, 0))
    shown = task.observation
    _require(_refuses_step(task), "a step after the end is not refused by a TaskError")
    _require_same(shown, task.observation, "what is shown after a refused step")


def _expert_solves(make: MakeTask) -> None:
    for seed in range(_NUM_EPISODES):
        results = _replay(make, seed, mistake=False)
        solved, solvable = results[-1].success, _started(make, seed).solvable
        _require(solved == solvable, f"seed {seed}: solvable is {solvable}, solved is {solved}")


def _mistakes_fail(make: MakeTask) -> None:
    for seed in range(_NUM_EPISODES):
        results = _replay(make, seed, mistake=True)
        _require(not any(result.success for result in results), f"seed {seed}: a mistake solves")


def _rewards_are_finite(make: MakeTask) -> None:
    for seed in range(_NUM_EPISODES):
        for replies in (_expert_replies(make, seed), list(GARBAGE)):
            for result in _play(_started(make, seed), replies):
                _require("task" in result.rewards, 'the reward channel "task" is missing')
                finite = all(math.isfinite(value) for value in result.rewards.values())
                _require(finite, f"rewards are not finite: {dict(result.rewards)}")


LAWS: dict[str, Callable[[MakeTask], None]] = {
    "the same task seed gives the same episodes": _same_task_seed_same_episodes,
    "an episode seed alone decides its episode": _episode_seed_decides_alone,
    "a snapshot continues bit-equally": _snapshot_continues,
    "pictures are uint8 (height, width, 3) of one size": _pictures_are_pictures,
    "equal state keys look the same": _states_look_the_same,
    "prompts and state keys are not empty": _prompts_say_something,
    "bad replies are classified, not raised": _bad_replies_are_classified,
    "episodes end, and in one way": _episodes_end_one_way,
    "no step outside an episode": _no_step_outside_an_episode,
    "the expert solves exactly what is solvable": _expert_solves,
    "mistakes are well-formed and fail": _mistakes_fail,
    "rewards are finite and have the channel task": _rewards_are_finite,
}
"""name → law. Each runs with an eye on the global generators, which no task may touch."""


# ----------------------------------------------------------------------------------------- helpers


def _require(condition: bool, detail: str) -> None:
    if not condition:
        raise TaskError(f"{detail}.")


def _require_same(first: Observation, second: Observation, where: str) -> None:
    _require(first.prompt == second.prompt, f"{where}: the prompts differ")
    _require(first.state_key == second.state_key, f"{where}: the state keys differ")
    _require(np.array_equal(first.picture, second.picture), f"{where}: the pictures differ")


def _require_same_play(first: AbstractTask, second: AbstractTask, replies: Sequence[str]) -> None:
    pairs = zip(_play(first, replies), _play(second, replies), strict=True)
    for turn, (one, other) in enumerate(pairs):
        _require_same(one.observation, other.observation, f"turn {turn}")
        verdicts = [
            (r.parsed, r.legal, dict(r.rewards), r.terminated, r.truncated, r.success)
            for r in (one, other)
        ]
        _require(verdicts[0] == verdicts[1], f"turn {turn}: {verdicts[0]} and {verdicts[1]}")


def _play(task: AbstractTask, replies: Sequence[str]) -> list[StepResult]:
    """Return the results of the replies, up to the episode's end."""
    results: list[StepResult] = []
    for reply in replies:
        results.append(task.step(reply))
        if _is_end(results[-1]):
            break
    return results


def _is_end(result: StepResult) -> bool:
    return result.terminated or result.truncated


def _started(make: MakeTask, seed: int) -> AbstractTask:
    task = make(seed)
    task.reset(seed)
    return task


def _expert_replies(make: MakeTask, seed: int) -> list[str]:
    trace = _started(make, seed).demonstrate(np.random.default_rng(seed))
    _require(len(trace) > 0, f"seed {seed}: the expert's trace is empty")
    return [turn.reply for turn in trace]


def _replay(make: MakeTask, seed: int, *, mistake: bool) -> list[StepResult]:
    """Return the results of an expert's replies on a fresh task, after checking the trace."""
    expert = _started(make, seed)
    trace = expert.demonstrate(np.random.default_rng(seed), mistake=mistake)
    again = _started(make, seed).demonstrate(np.random.default_rng(seed), mistake=mistake)
    replies = [turn.reply for turn in trace]
    _require(replies == [turn.reply for turn in again], "a trace draws from another generator")
    _require(_refuses_step(expert), f"seed {seed}: the trace does not play to the end")
    task = _started(make, seed)
    shown = task.observation
    results = _play(task, replies)
    _require(len(results) == len(trace) > 0, f"seed {seed}: the replies end elsewhere")
    for turn, result in zip(trace, results, strict=True):
        _require_same(turn.observation, shown, f"seed {seed}: the trace's observation")
        _require(
            result.parsed.valid_format and result.parsed.action is not None,
            f"seed {seed}: the expert's reply {turn.reply!r} is not of valid format",
        )
        shown = result.observation
    return results


def _refuses_step(task: AbstractTask) -> bool:
    try:
        task.step(GARBAGE[0])
    except TaskError:
        return True
    return False


def _all_observations(make: MakeTask) -> Iterator[Observation]:
    """Yield what a few episodes of expert and garbage show."""
    for seed in range(_NUM_EPISODES):
        for replies in (_expert_replies(make, seed), GARBAGE):
            task = _started(make, seed)
            yield task.observation
            for result in _play(task, replies):
                yield result.observation


@contextmanager
def _global_generators_untouched() -> Generator[None]:
    before = _global_state()
    yield
    _require(_global_state() == before, "a global random generator was used")


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
