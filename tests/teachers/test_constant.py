"""The control without a teacher."""

import torch

from gtr_turbo.teachers.constant import ConstantTeacher
from tests.truths.played import Played


def test_every_thought_token_of_a_well_formed_reply_has_the_same_disadvantage(
    played: Played,
) -> None:
    teacher = ConstantTeacher(0.25)
    assert teacher.is_ready
    assert teacher.fingerprint is None
    found = teacher.guide(played.session.policy, played.turns, played.rows, played.scores)
    valid = torch.tensor([turn.parsed.valid_format for turn in played.turns])
    assert found.token_advantage is not None
    assert found.kl is None
    assert 0 < int(valid.sum()) < len(valid)
    for row, is_valid in enumerate(valid.tolist()):
        expected = -0.25 * played.rows.is_thought[row].float() * is_valid
        assert torch.equal(found.token_advantage[row], expected)
    assert torch.equal(found.is_guided, valid & played.rows.is_thought.any(dim=1))
    teacher.close()
