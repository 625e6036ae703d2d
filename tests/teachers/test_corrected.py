"""GTR's corrector as a teacher: labels for wrong thoughts, over a real local server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gtr_turbo.core.config import CorrectorConfig
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.teachers.corrected import CorrectedThoughts
from gtr_turbo.teachers.corrector import Corrector
from gtr_turbo.train.session import Session
from tests.train.runs import session_of
from tests.truths.played import QUICK, Played, play_update
from tests.world import World, tiny_config


@pytest.fixture(scope="module")
def advised(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """One update of an agent whose task tells its solver's answer."""
    fields = QUICK | {"rollout__turns_per_update": 16}
    config = tiny_config(
        world.trained, **fields, guidance__kind="sft", guidance__teacher="corrector"
    )
    session: Session = session_of(config, tmp_path_factory.mktemp("corrected") / "run")
    yield play_update(session)
    session.close()
    session.run.close()


def test_wrong_thoughts_are_labelled_and_right_ones_left(advised: Played, tmp_path: Path) -> None:
    corrector = Corrector(CorrectorConfig(), tmp_path / "answers")
    teacher = CorrectedThoughts(corrector)
    assert teacher.is_ready
    assert teacher.fingerprint is None
    policy = advised.session.policy
    assert isinstance(policy, VlmPolicy)
    found = teacher.guide(policy, advised.turns, advised.rows, advised.scores)
    again = corrector.correct(advised.turns)
    teacher.close()
    wrong = [
        (turn, correction)
        for turn, correction in zip(advised.turns, again, strict=True)
        if correction.verdict == "wrong"
    ]
    assert 0 < len(wrong) == len(found.thoughts)
    for (turn, correction), label in zip(wrong, found.thoughts, strict=True):
        assert correction.reply is not None
        written = policy.written_reply(correction.reply)
        assert label.token_ids == written.token_ids
        assert label.num_thought_tokens == written.num_thought_tokens > 0
        assert label.observation is turn.observation
        assert f'"{turn.parsed.action}"' in correction.reply
    valid = torch.tensor([turn.parsed.valid_format for turn in advised.turns])
    assert torch.equal(found.is_guided, valid)
    assert found.figures["corrector_failures"] == 0
    assert set(found.figures) >= {"corrector_requests", "corrector_cost"}


def test_advice_is_asked_for_in_training_and_never_shown_to_the_agent(advised: Played) -> None:
    assert all(turn.observation.advice for turn in advised.turns)
    plain = tiny_config("unused")
    assert plain.training_task is plain.task
    told = tiny_config("unused", guidance__kind="sft", guidance__teacher="corrector")
    assert told.training_task.rules == {**told.task.rules, "advice": True}
    assert not told.task.rules.get("advice")
