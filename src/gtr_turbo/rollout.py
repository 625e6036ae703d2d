"""Policy × environments → episodes: N environments are played side by side, one batch per turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import final

import torch

from gtr_turbo.core.turns import (
    Episode,
    EpisodeEnd,
    JsonState,
    Observation,
    Prompt,
    Reply,
    SamplingSettings,
    StepResult,
    Turn,
)
from gtr_turbo.envs.pool.base import AbstractPool, Fault
from gtr_turbo.errors import TaskError
from gtr_turbo.policies.base import AbstractPolicy

Tick = Callable[[int, int], None]
"""Called with (turns done, turns in all) while a rollout runs."""


@final
@dataclass(slots=True)
class _Stretch:
    """Turns of one environment since its episode, or the update, began."""

    prior_return: float = 0.0
    prior_turns: int = 0
    turns: list[Turn] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True)
class _Finished:
    """A stretch that this update closes."""

    index: int
    stretch: _Stretch
    end: EpisodeEnd
    following: Observation | None
    """What came after it, where that has a value."""
    seed: int


@final
class Rollout:
    """Environments that go on from update to update, mid-episode."""

    def __init__(self, pool: AbstractPool) -> None:
        """Play in the environments of `pool`, which is closed by `close`."""
        self._pool = pool
        self._stretches = [_Stretch() for _ in pool.shown]
        self.num_faults = 0
        """Faults of environments in the last `collect`."""
        self.num_excluded_turns = 0
        """Turns that the last `collect` asked for and does not return."""
        self.excluded: list[Episode] = []
        """What was played of the episodes that the last `collect` lost to faults."""

    def collect(
        self,
        policy: AbstractPolicy,
        sampling: SamplingSettings,
        generator: torch.Generator,
        num_turns: int,
        tick: Tick = lambda done, total: None,
    ) -> list[Episode]:
        """Return the episodes (or stretches of them) of the next `num_turns` turns, oldest first.

        Each environment plays the same number of turns. What the policy saw, said and sampled is
        kept as it was; an episode that is still open at the end goes on in the next call. Where an
        environment fails, what this call has of its episode is left out, the failing turn included.
        Raises TaskError when nothing is left, or environments fail too often.
        """
        version = policy.fingerprint()
        faults_before = self._pool.num_faults
        finished: list[_Finished] = []
        lost: list[_Finished] = []
        rounds = num_turns // len(self._stretches)
        for number in range(rounds):
            shown = self._pool.shown
            prompts = policy.encode([now.observation for now in shown])
            replies = policy.respond(prompts, sampling, generator)
            outcomes = self._pool.step([reply.text for reply in replies])
            for index, (now, prompt, reply, result) in enumerate(
                zip(shown, prompts, replies, outcomes, strict=True)
            ):
                stretch = self._stretches[index]
                if isinstance(result, Fault):
                    lost.append(_Finished(index, stretch, EpisodeEnd.FAULT, None, now.seed))
                    self._stretches[index] = _Stretch()
                    continue
                stretch.turns.append(
                    make_turn(now.observation, prompt, reply, sampling, result, version)
                )
                if result.terminated or result.truncated:
                    end = EpisodeEnd.TERMINATED if result.terminated else EpisodeEnd.TRUNCATED
                    following = None if result.terminated else result.observation
                    finished.append(_Finished(index, stretch, end, following, now.seed))
                    self._stretches[index] = _Stretch()
            tick((number + 1) * len(self._stretches), num_turns)
        for index, (now, stretch) in enumerate(zip(self._pool.shown, self._stretches, strict=True)):
            if stretch.turns:
                cut = EpisodeEnd.UPDATE_BOUNDARY
                finished.append(_Finished(index, stretch, cut, now.observation, now.seed))
                self._stretches[index] = _continued(stretch)
        self.num_faults = self._pool.num_faults - faults_before
        self.num_excluded_turns = sum(len(item.stretch.turns) + 1 for item in lost)
        self.excluded = _episodes(policy, self._pool.task_ids, lost)
        if not finished:
            raise TaskError(
                f"all {num_turns} turns were lost to {self.num_faults} faults of environments.",
                hint="the log tells what failed; the last checkpoint is intact.",
            )
        return _episodes(policy, self._pool.task_ids, finished)

    def state(self) -> JsonState:
        """Return every environment mid-episode, generators included, JSON-able."""
        return {
            "tasks": self._pool.state(),
            "prior": [[s.prior_return, s.prior_turns] for s in self._stretches],
        }

    def restore(self, state: JsonState) -> None:
        """Put every environment back to a saved state."""
        self._pool.restore(state["tasks"])
        self._stretches = [_Stretch(value, turns) for value, turns in state["prior"]]

    def close(self) -> None:
        """End the environments."""
        self._pool.close()


def make_turn(
    observation: Observation,
    prompt: Prompt,
    reply: Reply,
    sampling: SamplingSettings,
    result: StepResult,
    version: str,
) -> Turn:
    """Return one exchange as a record."""
    return Turn(
        observation=observation,
        prompt=prompt,
        reply=reply,
        sampling=sampling,
        parsed=result.parsed,
        legal=result.legal,
        random_action=result.random_action,
        rewards=result.rewards,
        terminated=result.terminated,
        truncated=result.truncated,
        success=result.success,
        policy_version=version,
    )


def _continued(stretch: _Stretch) -> _Stretch:
    """Return the empty stretch in which an open episode goes on."""
    earned = sum(turn.rewards["task"] for turn in stretch.turns)
    return _Stretch(stretch.prior_return + earned, stretch.prior_turns + len(stretch.turns))


def _episodes(
    policy: AbstractPolicy, task_ids: Sequence[str], finished: Sequence[_Finished]
) -> list[Episode]:
    """Return the stretches as episodes; what followed the open ones is encoded in one batch."""
    following = [item.following for item in finished if item.following is not None]
    prompts = iter(policy.encode(following) if following else [])
    return [
        Episode(
            turns=tuple(item.stretch.turns),
            task_id=task_ids[item.index],
            environment=item.index,
            seed=item.seed,
            end=item.end,
            next_prompt=None if item.following is None else next(prompts),
            prior_return=item.stretch.prior_return,
            prior_turns=item.stretch.prior_turns,
        )
        for item in finished
    ]
