"""The teacher that is a weight change: when it is ready, whom it guides, what it charges."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from gtr_turbo.core.batch import Guidance
from gtr_turbo.core.config import GuidanceConfig
from gtr_turbo.core.turns import Turn
from gtr_turbo.errors import StaleTeacherError
from gtr_turbo.merging import fingerprint
from gtr_turbo.ops.collate import stack_padded
from gtr_turbo.teachers.merged import WeightTeacher, zero_change
from tests.truths.played import Played


def teacher(**fields: Any) -> WeightTeacher:
    config = GuidanceConfig(**fields)
    return WeightTeacher(config, config.temperature, 3)


def kl_of(guidance: Guidance) -> Tensor:
    """Return the penalty of each turn, which a comparison always has."""
    assert guidance.kl is not None
    return guidance.kl


def guide(played: Played, turns: list[Turn] | None = None, **fields: Any) -> Guidance:
    """Return the guidance of the start of the run."""
    policy = played.session.policy
    guide = teacher(**fields)
    guide.become(zero_change(policy.change()), must_differ=True)
    return guide.guide(policy, turns or played.turns, played.rows, played.scores)


def test_a_new_teacher_has_nothing_to_say() -> None:
    new = teacher()
    assert not new.is_ready
    assert new.fingerprint is None
    with pytest.raises(StaleTeacherError, match="no weights yet"):
        _ = new.change


def test_a_merge_that_changes_nothing_is_refused() -> None:
    guide = teacher()
    change = {"w": torch.ones(2)}
    guide.become(change, must_differ=True)
    assert guide.is_ready
    assert guide.fingerprint == fingerprint(change)
    guide.become(dict(change), must_differ=False)
    with pytest.raises(StaleTeacherError, match="left the teacher as it was"):
        guide.become({"w": torch.ones(2)}, must_differ=True)


@pytest.mark.parametrize("tokens", ["thought", "reply"])
def test_the_penalty_is_the_mean_over_the_compared_tokens(played: Played, tokens: str) -> None:
    """By hand: max(log π − log π_teacher, 0) over the turn's own tokens, each at most the cap."""
    cap = 0.01
    found = guide(played, tokens=tokens, token_cap=cap)
    policy = played.session.policy
    with torch.no_grad(), policy.wearing(zero_change(policy.change())):
        other = policy.score(played.rows, 1.0, 1.0, values=False).token_logprob
    own = played.scores.reference_token_logprob
    capped = 0
    for row, turn in enumerate(played.turns):
        start = len(turn.prompt.token_ids)
        reply = turn.reply
        end = start + (reply.num_thought_tokens if tokens == "thought" else len(reply.token_ids))
        gaps = [float(own[row, i] - other[row, i]) for i in range(start, end)]
        capped += sum(gap > cap for gap in gaps)
        expected = sum(min(max(gap, 0.0), cap) for gap in gaps) / max(len(gaps), 1)
        is_valid = turn.parsed.valid_format
        assert float(kl_of(found)[row]) == pytest.approx(expected if is_valid else 0.0, abs=1e-6)
        assert bool(found.is_guided[row]) == (is_valid and bool(gaps))
    assert capped > 0, "the cap was to bite somewhere"


def test_malformed_replies_are_charged_only_where_that_is_asked_for(played: Played) -> None:
    invalid = torch.tensor([not turn.parsed.valid_format for turn in played.turns])
    assert invalid.any()
    assert not invalid.all()
    free, charged = guide(played), guide(played, invalid_format_kl=100.0)
    assert (kl_of(free)[invalid] == 0).all()
    assert (kl_of(charged)[invalid] == 100).all()
    assert torch.equal(kl_of(free)[~invalid], kl_of(charged)[~invalid])
    assert torch.equal(free.is_guided, charged.is_guided)
    assert not free.is_guided[invalid].any()


def test_malformed_replies_may_be_charged_the_mean_of_the_guided_ones(played: Played) -> None:
    """So that it is neither cheaper nor dearer to be malformed, as far as the teacher goes."""
    invalid = torch.tensor([not turn.parsed.valid_format for turn in played.turns])
    free, charged = guide(played), guide(played, invalid_format_kl="mean")
    mean = sum(kl_of(free)[free.is_guided].tolist()) / int(free.is_guided.sum())
    assert mean > 0
    assert kl_of(charged)[invalid].tolist() == pytest.approx([mean] * int(invalid.sum()))
    assert torch.equal(kl_of(free)[~invalid], kl_of(charged)[~invalid])


def test_without_a_guided_reply_there_is_no_mean_to_charge(played: Played) -> None:
    lost = [replace(turn, parsed=replace(turn.parsed, valid_format=False)) for turn in played.turns]
    found = guide(played, lost, invalid_format_kl="mean")
    assert (kl_of(found) == 0).all()


def test_the_weights_of_the_agent_are_its_own_again(played: Played) -> None:
    policy = played.session.policy
    before = policy.fingerprint()
    guide(played)
    assert policy.fingerprint() == before
    assert all(parameter.requires_grad for _, parameter in policy.policy_parameters())


def test_micro_batches_change_nothing(played: Played) -> None:
    policy = played.session.policy
    change = zero_change(policy.change())
    found = []
    for size in (1, 8):
        config = GuidanceConfig()
        one = WeightTeacher(config, config.temperature, size)
        one.become(change, must_differ=True)
        found.append(one.score(policy, played.rows))
    assert found[0].shape == played.rows.token_ids.shape
    assert (found[0] - found[1]).abs().max() < 1e-5


def test_pieces_are_padded_on_the_right() -> None:
    pieces = [torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]])]
    assert stack_padded(pieces, 3).tolist() == [[1, 2, 0], [3, 0, 0], [4, 0, 0]]
