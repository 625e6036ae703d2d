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
from gtr_turbo.envs.base import AbstractTask
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
class Rollout:
    """Environments that go on from update to update, mid-episode."""

    def __init__(self, tasks: Sequence[AbstractTask]) -> None:
        """Start an episode in each environment."""
        self._tasks = list(tasks)
        for task in self._tasks:
            task.reset()
        self._stretches = [_Stretch() for _ in self._tasks]

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
        kept as it was; an episode that is still open at the end goes on in the next call.
        """
        version = policy.fingerprint()
        finished: list[tuple[int, _Stretch, EpisodeEnd, Observation | None, int]] = []
        rounds = num_turns // len(self._tasks)
        for number in range(rounds):
            prompts = policy.encode([task.observation for task in self._tasks])
            replies = policy.respond(prompts, sampling, generator)
            for index, (task, prompt, reply) in enumerate(
                zip(self._tasks, prompts, replies, strict=True)
            ):
                observation, seed = task.observation, task.episode_seed
                result = task.step(reply.text)
                turn = make_turn(observation, prompt, reply, sampling, result, version)
                stretch = self._stretches[index]
                stretch.turns.append(turn)
                if result.terminated or result.truncated:
                    end = EpisodeEnd.TERMINATED if result.terminated else EpisodeEnd.TRUNCATED
                    following = None if result.terminated else result.observation
                    finished.append((index, stretch, end, following, seed))
                    self._stretches[index] = _Stretch()
                    task.reset()
            tick((number + 1) * len(self._tasks), num_turns)
        for index, task in enumerate(self._tasks):
            stretch = self._stretches[index]
            if stretch.turns:
                cut = EpisodeEnd.UPDATE_BOUNDARY
                finished.append((index, stretch, cut, task.observation, task.episode_seed))
                self._stretches[index] = _continued(stretch)
        return _episodes(policy, self._tasks, finished)

    def state(self) -> JsonState:
        """Return every environment mid-episode, generators included, JSON-able."""
        return {
            "tasks": [task.state() for task in self._tasks],
            "prior": [[s.prior_return, s.prior_turns] for s in self._stretches],
        }

    def restore(self, state: JsonState) -> None:
        """Put every environment back to a saved state."""
        for task, saved in zip(self._tasks, state["tasks"], strict=True):
            task.restore(saved)
        self._stretches = [_Stretch(value, turns) for value, turns in state["prior"]]


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
    policy: AbstractPolicy,
    tasks: Sequence[AbstractTask],
    finished: Sequence[tuple[int, _Stretch, EpisodeEnd, Observation | None, int]],
) -> list[Episode]:
    """Return the stretches as episodes; what followed the open ones is encoded in one batch."""
    following = [observation for *_, observation, _ in finished if observation is not None]
    prompts = iter(policy.encode(following) if following else [])
    return [
        Episode(
            turns=tuple(stretch.turns),
            task_id=tasks[index].task_id,
            environment=index,
            seed=seed,
            end=end,
            next_prompt=None if observation is None else next(prompts),
            prior_return=stretch.prior_return,
            prior_turns=stretch.prior_turns,
        )
        for index, stretch, end, observation, seed in finished
    ]
