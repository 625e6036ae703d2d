"""A teacher that writes: the merged weights think anew about every state, and the agent imitates.

GTR-Turbo (SFT), paper §3.3. The teacher sees what the agent saw. Its thought is kept, its action is
not: the agent's own action stands after it and is not imitated.
"""

from collections.abc import Sequence
from typing import Any, final

import torch

from gtr_turbo.core.batch import Guidance, Scores, TokenRows
from gtr_turbo.core.config import Config
from gtr_turbo.core.turns import Prompt, Reply, ThoughtLabel, Turn
from gtr_turbo.envs.replies import unfenced, whole_keys
from gtr_turbo.policies.base import AbstractPolicy
from gtr_turbo.teachers.base import AbstractTeacher
from gtr_turbo.teachers.merged import WeightTeacher

ACTION_KEY = "action"


@final
class ThoughtWriter(AbstractTeacher):
    """Writes a thought for every distinct state in which the agent's reply was well formed."""

    def __init__(self, weights: WeightTeacher, config: Config, generator: torch.Generator) -> None:
        """Write as `weights`, drawing from `generator`."""
        self._weights, self._generator = weights, generator
        self._settings = config.imitation
        self._max_new_tokens = config.rollout.max_new_tokens
        self._batch_size = config.rollout.num_environments

    @property
    def is_ready(self) -> bool:
        """False until the weights are there."""
        return self._weights.is_ready

    @property
    def fingerprint(self) -> str | None:
        """Hash of the weight change that writes."""
        return self._weights.fingerprint

    @torch.no_grad()
    def guide(
        self, policy: AbstractPolicy, turns: Sequence[Turn], rows: TokenRows, scores: Scores
    ) -> Guidance:
        """Return a label for each well-formed turn whose state the teacher could think about.

        A state that was visited more than once is written about once.
        """
        states = [_state(t.prompt) if t.parsed.valid_format else None for t in turns]
        asked: dict[tuple[Any, ...], Turn] = {}
        for state, turn in zip(states, turns, strict=True):
            if state is not None:
                asked.setdefault(state, turn)
        with policy.wearing(self._weights.change):
            written, num_attempts = self._write(policy, asked)
        labels = [
            _label(turn, written[state])
            for state, turn in zip(states, turns, strict=True)
            if state in written
        ]
        return Guidance(
            is_guided=torch.tensor([state in written for state in states], dtype=torch.bool),
            thoughts=tuple(labels),
            figures={
                "written_share": len(written) / max(len(asked), 1),
                "writing_attempts": num_attempts / max(len(asked), 1),
            },
        )

    def close(self) -> None:
        """Do nothing: nothing was started."""

    def _write(
        self, policy: AbstractPolicy, asked: dict[tuple[Any, ...], Turn]
    ) -> tuple[dict[tuple[Any, ...], Reply], int]:
        """Return (state → a reply of the demanded form, attempts over all states)."""
        settings = self._settings
        written: dict[tuple[Any, ...], Reply] = {}
        open_states = list(asked)
        temperature, num_attempts = settings.temperature, 0
        for _ in range(settings.max_attempts):
            sampling = policy.sampling(temperature, self._max_new_tokens)
            for start in range(0, len(open_states), self._batch_size):
                states = open_states[start : start + self._batch_size]
                prompts = [asked[state].prompt for state in states]
                replies = policy.respond(prompts, sampling, self._generator)
                num_attempts += len(states)
                for state, reply in zip(states, replies, strict=True):
                    if has_same_form(reply, asked[state].reply):
                        written[state] = reply
            open_states = [state for state in open_states if state not in written]
            if not open_states:
                break
            temperature = min(temperature * settings.temperature_growth, settings.max_temperature)
        return written, num_attempts


def has_same_form(reply: Reply, accepted: Reply) -> bool:
    """Return whether a reply is one finished JSON object with the keys of an accepted one.

    Both stand in a Markdown fence or neither does: the thought of the one opens it, and the action
    of the other has to close it.
    """
    if not reply.finished or reply.num_thought_tokens == 0:
        return False
    keys, wanted = whole_keys(reply.text), whole_keys(accepted.text)
    if keys is None or wanted is None:
        return False
    has_same_keys = ACTION_KEY in keys and sorted(keys) == sorted(wanted)
    return has_same_keys and _is_fenced(reply.text) == _is_fenced(accepted.text)


def _is_fenced(text: str) -> bool:
    return unfenced(text) != text.strip()


def _state(prompt: Prompt) -> tuple[Any, ...]:
    return (prompt.picture.sha256, prompt.token_ids)


def _label(turn: Turn, written: Reply) -> ThoughtLabel:
    """Return the teacher's thought with the agent's own action after it."""
    thought = written.token_ids[: written.num_thought_tokens]
    action = turn.reply.token_ids[turn.reply.num_thought_tokens :]
    return ThoughtLabel(
        observation=turn.observation,
        token_ids=thought + action,
        num_thought_tokens=len(thought),
    )
