"""The teacher that writes: for which states, after how many attempts, and what the label holds."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from gtr_turbo.core.batch import Guidance
from gtr_turbo.core.config import Config
from gtr_turbo.core.turns import Prompt, Reply, SamplingSettings
from gtr_turbo.envs.replies import unfenced
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.teachers.merged import WeightTeacher, zero_change
from gtr_turbo.teachers.writer import ThoughtWriter, has_same_form
from tests.truths.played import Played


def config_of(played: Played, **fields: Any) -> Config:
    old = played.session.config
    return old.model_copy(update={"imitation": old.imitation.model_copy(update=fields)})


def writer_of(played: Played, **fields: Any) -> ThoughtWriter:
    """Return a writer with the weights of the run's start."""
    config = config_of(played, **fields)
    weights = WeightTeacher(config.guidance, 1.0, 4)
    writer = ThoughtWriter(weights, config, torch.Generator().manual_seed(0))
    assert not writer.is_ready
    weights.become(zero_change(played.session.policy.change()), must_differ=True)
    assert writer.is_ready
    assert writer.fingerprint == weights.fingerprint
    return writer


def guide(played: Played, **fields: Any) -> Guidance:
    writer = writer_of(played, **fields)
    return writer.guide(played.session.policy, played.turns, played.rows, played.scores)


def test_labels_are_the_teachers_thought_before_the_agents_own_action(played: Played) -> None:
    found = guide(played)
    valid = [turn for turn in played.turns if turn.parsed.valid_format]
    guided = [t for t, yes in zip(played.turns, found.is_guided.tolist(), strict=True) if yes]
    assert 0 < len(guided) == len(found.thoughts) <= len(valid) < len(played.turns)
    policy = played.session.policy
    assert isinstance(policy, VlmPolicy)
    for turn, label in zip(guided, found.thoughts, strict=True):
        assert turn.parsed.valid_format
        assert label.observation is turn.observation
        action = turn.reply.token_ids[turn.reply.num_thought_tokens :]
        assert label.token_ids[label.num_thought_tokens :] == action
        again = policy.reply(label.token_ids)
        assert again.num_thought_tokens == label.num_thought_tokens
    assert found.kl is None
    assert found.token_advantage is None
    assert 0 < (found.figures["written_share"] or 0) <= 1


def test_the_agents_weights_are_its_own_again_and_the_draws_the_writers(played: Played) -> None:
    policy = played.session.policy
    before, sampler = policy.fingerprint(), played.session.seeds.sampler.get_state()
    assert guide(played).thoughts == guide(played).thoughts, "the same generator, the same thoughts"
    assert policy.fingerprint() == before
    assert torch.equal(sampler, played.session.seeds.sampler.get_state())


def test_a_state_that_was_visited_twice_is_written_about_once(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = VlmPolicy.respond

    def count(
        self: VlmPolicy,
        prompts: Sequence[Prompt],
        sampling: SamplingSettings,
        generator: torch.Generator,
    ) -> list[Reply]:
        asked.append(len(prompts))
        return real(self, prompts, sampling, generator)

    monkeypatch.setattr(VlmPolicy, "respond", count)
    writer = writer_of(played, max_attempts=1)
    turn = next(turn for turn in played.turns if turn.parsed.valid_format)
    rows = played.rows.select(torch.zeros(3, dtype=torch.int64))
    found = writer.guide(played.session.policy, [turn] * 3, rows, played.scores)
    assert asked == [1]
    assert len(found.thoughts) in (0, 3)


def test_attempts_grow_warmer_and_end(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """A teacher that never finds the form is asked again, warmer each time, and then left."""
    temperatures: list[float] = []
    real = VlmPolicy.respond

    def cut(
        self: VlmPolicy,
        prompts: Sequence[Prompt],
        sampling: SamplingSettings,
        generator: torch.Generator,
    ) -> list[Reply]:
        temperatures.append(sampling.temperature)
        return [replace(r, finished=False) for r in real(self, prompts, sampling, generator)]

    monkeypatch.setattr(VlmPolicy, "respond", cut)
    found = guide(played, temperature=0.5, temperature_growth=1.5, max_temperature=0.9,
                  max_attempts=4)  # fmt: skip
    num_batches = len(temperatures) // 4
    assert temperatures == [t for t in (0.5, 0.75, 0.9, 0.9) for _ in range(num_batches)]
    assert not found.thoughts
    assert not found.is_guided.any()
    assert found.figures == {"written_share": 0.0, "writing_attempts": 4.0}


def reply(text: str, *, finished: bool = True, num_thought: int = 1) -> Reply:
    return Reply(
        token_ids=(1, 2),
        token_logprobs=torch.zeros(2).numpy(),
        text=text,
        num_thought_tokens=num_thought,
        finished=finished,
    )


ACCEPTED = reply('{"cards": ["A"], "thoughts": "x", "action": "1"}')


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (reply('{"action": "2", "thoughts": "", "cards": []}'), True),
        (reply('{"cards": [], "thoughts": "", "action": "2"}', finished=False), False),
        (reply('{"cards": [], "thoughts": "", "action": "2"}', num_thought=0), False),
        (reply('{"cards": [], "action": "2"}'), False),
        (reply('{"cards": [], "thoughts": "", "action": "2", "more": 1}'), False),
        (reply('["cards", "thoughts", "action"]'), False),
        (reply('{"cards": [], "thoughts": "", "action": "2"'), False),
        (reply("[" * 100_000), False),
        (reply('{"cards": [], "thoughts": "", "action": "2", "action": "3"}'), False),
        (reply('```json\n{"cards": [], "thoughts": "", "action": "2"}\n```'), False),
    ],
)
def test_the_form_is_that_of_a_reply_that_the_task_accepted(written: Reply, expected: bool) -> None:
    assert has_same_form(written, ACCEPTED) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (reply('```json\n{"cards": [], "thoughts": "", "action": "2"}\n```'), True),
        (reply('```\n{"cards": [], "thoughts": "", "action": "2"}```'), True),
        (reply('```json\n{"cards": [], "action": "2"}\n```'), False),
        (reply('```json\n{"cards": [], "thoughts": "", "action": "2"}'), False),
        (reply('{"cards": [], "thoughts": "", "action": "2"}'), False),
    ],
)
def test_a_reply_in_a_fence_is_answered_in_a_fence(written: Reply, expected: bool) -> None:
    """Any other thought would stand before an action that closes what it has not opened."""
    assert has_same_form(written, reply(f"```json\n{ACCEPTED.text}\n```")) == expected


def test_an_agent_that_answers_in_fences_gets_labels_in_fences(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = played.session.policy
    assert isinstance(policy, VlmPolicy)

    def fenced(plain: Reply) -> Reply:
        return policy.written_reply(f"```json\n{plain.text}\n```")

    turn = next(turn for turn in played.turns if turn.parsed.valid_format)

    def respond(
        self: VlmPolicy,
        prompts: Sequence[Prompt],
        sampling: SamplingSettings,
        generator: torch.Generator,
    ) -> list[Reply]:
        return [fenced(turn.reply) for _ in prompts]

    monkeypatch.setattr(VlmPolicy, "respond", respond)
    rows = played.rows.select(torch.zeros(1, dtype=torch.int64))
    asked = replace(turn, reply=fenced(turn.reply))
    found = writer_of(played).guide(policy, [asked], rows, played.scores)
    assert found.figures == {"written_share": 1.0, "writing_attempts": 1.0}
    (label,) = found.thoughts
    again = policy.reply(label.token_ids)
    assert again.finished
    assert json.loads(unfenced(again.text)) == json.loads(turn.reply.text)


def test_closing_a_writer_ends_nothing(played: Played) -> None:
    writer = writer_of(played)
    writer.close()
    assert writer.is_ready
