"""A public conformance check that every environment passes.

    report = check_task(lambda seed: make_task("points24", {}, seed))

Each law is a function of its own, listed in `LAWS`; the first that is broken raises TaskError with
the law's name. The laws hold for any task; what a task shows, says and rewards is its own business.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from gtr_turbo.core.turns import Observation, ParsedReply
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.probing import (
    GARBAGE,
    MAX_TURNS,
    NUM_EPISODES,
    MakeTask,
    Subject,
    global_generators_untouched,
    is_end,
    play,
    refuses,
    refuses_step,
    replay,
    require,
    require_same,
    require_same_play,
)
from gtr_turbo.errors import TaskError

__all__ = ["EXPERT_LAWS", "GARBAGE", "LAWS", "CheckReport", "MakeTask", "check_task"]

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
    """Hands, or whatever the task deals, that were played."""
    num_turns: int
    num_solvable: int
    """Episodes that could be won, each of which the expert won where there is one."""


def check_task(make: MakeTask, *, with_expert: bool = True) -> CheckReport:
    """Return a report when every law holds for the tasks that `make(seed)` returns.

    For a task without an expert, say so: the laws about it (`EXPERT_LAWS`) are left out, and the
    others see play at random. Raises TaskError that names the broken law and says how it was
    broken.
    """
    subject = Subject(make=make, with_expert=with_expert)
    laws = {name: law for name, law in LAWS.items() if with_expert or name not in EXPERT_LAWS}
    for name, law in laws.items():
        try:
            with global_generators_untouched():
                law(subject)
        except _FAULTS as error:
            raise TaskError(f'the law "{name}" is broken: {_describe(error)}') from error
    num_turns = num_solvable = 0
    for seed in range(NUM_EPISODES):
        num_turns += len(subject.usual_replies(seed))
        num_solvable += subject.started(seed).solvable
    return CheckReport(
        task_id=make(0).task_id,
        laws=tuple(laws),
        num_episodes=NUM_EPISODES,
        num_turns=num_turns,
        num_solvable=num_solvable,
    )


def _describe(error: Exception) -> str:
    return error.message if isinstance(error, TaskError) else f"{type(error).__name__}: {error}."


# ---------------------------------------------------------------------------------------- the laws


def _same_task_seed_same_episodes(subject: Subject) -> None:
    first, second = subject.make(3), subject.make(3)
    for episode in range(NUM_EPISODES):
        require_same(first.reset(), second.reset(), f"episode {episode} of two equal tasks")
        require(first.episode_seed == second.episode_seed, "`episode_seed` differs")
        require_same_play(first, second, GARBAGE)


def _episode_seed_decides_alone(subject: Subject) -> None:
    for seed in range(NUM_EPISODES):
        replies = (*GARBAGE[:3], *subject.usual_replies(seed))
        first, second, third = subject.make(0), subject.make(1), subject.make(0)
        second.reset()
        require_same(first.reset(seed), second.reset(seed), f"the episode of seed {seed}")
        require(second.episode_seed == seed, f"`episode_seed` is not {seed} after reset({seed})")
        require_same_play(first, second, replies)
        require_same(first.reset(), third.reset(), "the unseeded episode after a seeded one")


def _snapshot_continues(subject: Subject) -> None:
    for seed in range(NUM_EPISODES):
        usual = subject.usual_replies(seed)
        for replies in (usual, [*GARBAGE[:2], *usual]):
            for num_before in range(min(_NUM_SNAPSHOTS, len(replies) + 1)):
                _require_snapshot_continues(subject, seed, replies, num_before)


def _require_snapshot_continues(
    subject: Subject, seed: int, replies: Sequence[str], num_before: int
) -> None:
    """Play `num_before` replies, restore a snapshot elsewhere, and compare all that follows."""
    task = subject.started(seed)
    before = play(task, replies[:num_before])
    saved = json.dumps(task.state())
    restored = subject.copied(seed, json.loads(saved))
    require(json.dumps(restored.state()) == saved, "a restored state is another state")
    require(task.episode_seed == restored.episode_seed, "`episode_seed` is lost in restoring")
    require_same(task.observation, restored.observation, "what is shown after restoring")
    if not (before and is_end(before[-1])):
        require_same_play(task, restored, replies[num_before:])
    require_same(task.reset(), restored.reset(), "the episode after a restored one")


def _pictures_are_pictures(subject: Subject) -> None:
    shape = subject.started(0).observation.picture.shape
    for observation in subject.all_observations():
        picture = observation.picture
        require(picture.dtype == np.uint8, f"a picture's dtype is {picture.dtype}, not uint8")
        require(
            picture.ndim == _PICTURE_AXES and picture.shape[-1] == _NUM_COLORS and picture.size > 0,
            f"a picture's shape is {picture.shape}, not (height, width, 3)",
        )
        require(picture.shape == shape, f"pictures change from {shape} to {picture.shape}")


def _states_look_the_same(subject: Subject) -> None:
    seen: dict[str, Observation] = {}
    for observation in subject.all_observations():
        earlier = seen.setdefault(observation.state_key, observation)
        require_same(earlier, observation, f'the state "{observation.state_key}"')
    task = subject.started(0)
    require_same(task.observation, task.observation, "one state, asked for twice")


def _prompts_say_something(subject: Subject) -> None:
    for observation in subject.all_observations():
        require(bool(observation.prompt.strip()), "a prompt is empty")
        require(bool(observation.state_key), "a state key is empty")


def _bad_replies_are_classified(subject: Subject) -> None:
    for reply in GARBAGE:
        result = subject.started(0).step(reply)
        parsed = result.parsed
        require(parsed.action is not None or not result.legal, "no action, yet a legal one")
        require(
            _is_explained(parsed), f"the verdict {parsed} lacks its reason, or has one too many"
        )


def _is_explained(parsed: ParsedReply) -> bool:
    all_is_well = parsed.action is not None and parsed.valid_format
    return (parsed.reason is None) == all_is_well


def _states_on_the_way(subject: Subject) -> Iterator[tuple[int, AbstractTask]]:
    """Yield (seed, task) a dozen times: at the start and half-way through the usual play."""
    for seed in range(NUM_EPISODES):
        replies = subject.usual_replies(seed)
        for num_before in sorted({0, len(replies) // 2}):
            task = subject.started(seed)
            play(task, replies[:num_before])
            yield seed, task


def _admissible_actions_are_legal(subject: Subject) -> None:
    fresh = subject.make(0)
    require(
        refuses(lambda: fresh.admissible_actions),
        "`admissible_actions` before the first reset is not refused by a TaskError",
    )
    for seed, task in _states_on_the_way(subject):
        actions, saved = task.admissible_actions, task.state()
        require(len(set(actions)) == len(actions), f"an action is named twice: {actions}")
        require(actions == task.admissible_actions, "`admissible_actions` change when looked at")
        for action in actions:
            result = subject.copied(seed, saved).step(task.write_action(action))
            require(
                result.legal and not result.random_action,
                f'seed {seed}: the admissible action "{action}" is not legal',
            )


def _written_actions_are_read_back(subject: Subject) -> None:
    for seed, task in _states_on_the_way(subject):
        saved = task.state()
        for action in task.admissible_actions:
            parsed = subject.copied(seed, saved).step(task.write_action(action)).parsed
            require(parsed.valid_format, f'what is written for "{action}" is not of valid format')
            require(parsed.action == action, f'"{action}" is read back as {parsed.action!r}')


def _kinds_follow_from_the_seed(subject: Subject) -> None:
    for seed in range(NUM_EPISODES):
        task, other = subject.started(seed), subject.make(seed + 1)
        other.reset()
        other.reset(seed)
        kind = task.episode_kind
        require(bool(kind.strip()), "an episode's kind is empty")
        require(kind == other.episode_kind, f'seed {seed} is "{kind}" and "{other.episode_kind}"')
        for reply in (GARBAGE[0], *subject.usual_replies(seed)):
            if is_end(task.step(reply)):
                break
            require(task.episode_kind == kind, f'seed {seed}: the kind "{kind}" changes on the way')


def _episodes_end_one_way(subject: Subject) -> None:
    for seed in range(NUM_EPISODES):
        for replies in (subject.usual_replies(seed), GARBAGE):
            results = play(subject.started(seed), replies * (MAX_TURNS // len(replies)))
            require(is_end(results[-1]), f"no end after {len(results)} turns")
            for result in results:
                require(
                    not (result.terminated and result.truncated), "both terminated and truncated"
                )
                require(not result.success or result.terminated, "solved, but not terminated")


def _no_step_outside_an_episode(subject: Subject) -> None:
    fresh = subject.make(0)
    require(refuses_step(fresh), "a step before the first reset is not refused by a TaskError")
    task = subject.started(0)
    play(task, subject.usual_replies(0))
    shown = task.observation
    require(refuses_step(task), "a step after the end is not refused by a TaskError")
    require_same(shown, task.observation, "what is shown after a refused step")


def _expert_solves(subject: Subject) -> None:
    for seed in range(NUM_EPISODES):
        results = replay(subject, seed, mistake=False)
        solved, solvable = results[-1].success, subject.started(seed).solvable
        require(solved == solvable, f"seed {seed}: solvable is {solvable}, solved is {solved}")


def _expert_thinks_well(subject: Subject) -> None:
    for seed in range(NUM_EPISODES):
        task = subject.started(seed)
        for reply in subject.usual_replies(seed):
            wrong = [name for name, is_good in task.judge_thought(reply).items() if not is_good]
            require(not wrong, f"seed {seed}: of the expert's thought {reply!r} not {wrong}")
            task.step(reply)


def _mistakes_fail(subject: Subject) -> None:
    for seed in range(NUM_EPISODES):
        results = replay(subject, seed, mistake=True)
        require(not any(result.success for result in results), f"seed {seed}: a mistake solves")


def _thoughts_are_judged(subject: Subject) -> None:
    for seed in range(NUM_EPISODES):
        task = subject.started(seed)
        for reply in (*GARBAGE, *subject.usual_replies(seed)):
            saved, shown = json.dumps(task.state()), task.observation
            judged = task.judge_thought(reply)
            kinds = {(type(name), type(value)) for name, value in judged.items()}
            require(
                kinds <= {(str, bool)} and all(judged),
                f"a judgement is no mapping from names to True and False: {judged!r}",
            )
            require(judged == task.judge_thought(reply), "a judgement changes when asked again")
            require(json.dumps(task.state()) == saved, "judging a thought changes the state")
            require_same(shown, task.observation, "what is shown after judging")
            if reply not in GARBAGE and is_end(task.step(reply)):
                break


def _rewards_are_finite(subject: Subject) -> None:
    for seed in range(NUM_EPISODES):
        for replies in (subject.usual_replies(seed), list(GARBAGE)):
            for result in play(subject.started(seed), replies):
                require("task" in result.rewards, 'the reward channel "task" is missing')
                finite = all(math.isfinite(value) for value in result.rewards.values())
                require(finite, f"rewards are not finite: {dict(result.rewards)}")


LAWS: dict[str, Callable[[Subject], None]] = {
    "the same task seed gives the same episodes": _same_task_seed_same_episodes,
    "an episode seed alone decides its episode": _episode_seed_decides_alone,
    "a snapshot continues bit-equally": _snapshot_continues,
    "pictures are uint8 (height, width, 3) of one size": _pictures_are_pictures,
    "equal state keys look the same": _states_look_the_same,
    "prompts and state keys are not empty": _prompts_say_something,
    "bad replies are classified, not raised": _bad_replies_are_classified,
    "episodes end, and in one way": _episodes_end_one_way,
    "no step outside an episode": _no_step_outside_an_episode,
    "admissible actions are legal": _admissible_actions_are_legal,
    "a written action is read back": _written_actions_are_read_back,
    "a thought is judged, and nothing is changed by it": _thoughts_are_judged,
    "an episode's kind follows from its seed": _kinds_follow_from_the_seed,
    "the expert solves exactly what is solvable": _expert_solves,
    "the expert's thoughts are judged to be good": _expert_thinks_well,
    "mistakes are well-formed and fail": _mistakes_fail,
    "rewards are finite and have the channel task": _rewards_are_finite,
}
"""name → law. Each runs with an eye on the global generators, which no task may touch."""

EXPERT_LAWS = frozenset(
    {
        "the expert solves exactly what is solvable",
        "the expert's thoughts are judged to be good",
        "mistakes are well-formed and fail",
    }
)
"""Laws that a task without an expert cannot be held to."""
