"""Truths 1 and 2: the picture is the same everywhere, and everybody looks at it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gtr_turbo.core.batch import TokenRows
from gtr_turbo.core.turns import picture_hash
from gtr_turbo.errors import VisionMismatchError
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.teachers.merged import WeightTeacher
from gtr_turbo.train import checks
from gtr_turbo.train.gtr_turbo import train
from gtr_turbo.train.session import Session
from tests.truths.played import Played


def test_the_pictures_hash_is_one_from_environment_to_teacher(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[list[int], str]] = []
    original = VlmPolicy.score

    def watched(self: VlmPolicy, rows: TokenRows, *args: float, values: bool) -> Any:
        seen.extend(contents(rows))
        return original(self, rows, *args, values=values)

    monkeypatch.setattr(VlmPolicy, "score", watched)
    session = played.session
    session.teacher.become(session.policy.change(), must_differ=False)
    session.teacher.score(session.policy, played.rows)
    shown = [picture_hash(turn.observation.picture) for turn in played.turns]
    assert [turn.prompt.picture.sha256 for turn in played.turns] == shown
    assert list(played.rows.vision.hashes) == shown
    # Up to their order, the rows that the teacher was asked about are these, each with its picture.
    assert sorted(seen) == sorted(contents(played.rows))
    checks.check_pictures(played.turns, played.rows)


def contents(rows: TokenRows) -> list[tuple[list[int], str]]:
    """Return each row's tokens and its picture's hash."""
    tokens = [
        ids[~padding].tolist() for ids, padding in zip(rows.token_ids, rows.is_padding, strict=True)
    ]
    return list(zip(tokens, rows.vision.hashes, strict=True))


def test_fault_two_rows_swap_their_pictures(played: Played) -> None:
    order = torch.arange(len(played.turns))
    first, second = different(played)
    order[first], order[second] = second, first
    swapped = replace(played.rows, vision=played.rows.vision.select(order))
    with pytest.raises(VisionMismatchError, match=f"turn {first} was shown"):
        checks.check_pictures(played.turns, swapped)


def different(played: Played) -> tuple[int, int]:
    hashes = played.rows.vision.hashes
    second = next(i for i, found in enumerate(hashes) if found != hashes[0])
    first = max(i for i in range(second) if hashes[i] == hashes[0])
    return min(first, hashes.index(hashes[0])), second


def test_fault_an_environment_draws_over_a_picture_that_it_gave_away(played: Played) -> None:
    np.asarray(played.turns[0].observation.picture)[0, 0] ^= 1
    with pytest.raises(VisionMismatchError, match="turn 0 was shown"):
        checks.check_pictures(played.turns, played.rows)


def test_fault_a_placeholder_is_lost(played: Played) -> None:
    ids = played.rows.token_ids.clone()
    tokenizer = played.session.policy.processor.tokenizer  # pyright: ignore[reportAttributeAccessIssue]
    image_id = tokenizer.convert_tokens_to_ids("<|image_pad|>")
    ids[0, int((ids[0] == image_id).nonzero()[0])] = tokenizer.pad_token_id
    with pytest.raises(VisionMismatchError, match="do not match"):
        played.session.policy.score(replace(played.rows, token_ids=ids), 1.0, 1.0, values=False)


def test_blanking_the_picture_moves_agent_and_teacher(played: Played) -> None:
    session = played.session
    nothing = {n: torch.zeros_like(t) for n, t in session.policy.change().items()}
    session.teacher.become(nothing, must_differ=False)
    found = checks.check(session, 1, played.turns, played.rows, played.scores)
    for who in ("agent", "teacher"):
        effect = found[f"picture_effect_{who}"]
        assert effect is not None
        assert effect > 1e-3


def test_fault_the_picture_is_dropped_in_the_teachers_pass(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run itself stops, in the first update that has a teacher."""
    original = WeightTeacher.score

    def blind(self: WeightTeacher, policy: VlmPolicy, rows: TokenRows) -> Tensor:
        return original(self, policy, replace(rows, vision=rows.vision.blank()))

    monkeypatch.setattr(WeightTeacher, "score", blind)
    with pytest.raises(VisionMismatchError, match="of the teacher"):
        train(session)
    assert session.update == 1


def test_fault_the_picture_never_reaches_the_model(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sampling and scoring agree with one another, both blind: only the probe can tell."""
    original = VlmPolicy._forward

    def blind(self: VlmPolicy, ids: Tensor, seen: Tensor, at: Tensor, vision: Any, **cache: Any):
        vision = None if vision is None else vision.blank()
        return original(self, ids, seen, at, vision, **cache)

    monkeypatch.setattr(VlmPolicy, "_forward", blind)
    with pytest.raises(VisionMismatchError, match="of the agent"):
        train(session)
    assert session.update == 0
