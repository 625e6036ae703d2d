"""Truth 3: what is recomputed is what was sampled from; and λ weighs the thought."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gtr_turbo.core import spans
from gtr_turbo.core.batch import TokenRows, turn_logprob
from gtr_turbo.core.config import parse_config
from gtr_turbo.core.turns import Turn
from gtr_turbo.errors import ConfigError, LogprobMismatchError, SpanError
from gtr_turbo.policies import vlm
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.train import checks, gtr_turbo
from gtr_turbo.train.gtr_turbo import train
from gtr_turbo.train.session import Session
from tests.truths.played import Played, play_update
from tests.world import World, make_policy


def test_recomputed_is_behaviour_before_the_first_step(played: Played) -> None:
    gap = checks.logprob_gap(played.turns, played.rows, played.scores, "float32")
    assert gap < 1e-5


def test_fault_scoring_has_a_temperature_of_its_own(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = VlmPolicy.score

    def warmer(self: VlmPolicy, rows: TokenRows, t: float, other: float, *, values: bool) -> Any:
        return original(self, rows, 1.3 * t, other, values=values)

    monkeypatch.setattr(VlmPolicy, "score", warmer)
    with pytest.raises(LogprobMismatchError, match="recomputed"):
        train(session)
    assert session.update == 0


def shifted(by: int) -> Any:
    """Return a `token_rows` whose spans sit `by` positions too far right."""

    def layout(*args: Any) -> TokenRows:
        rows = REAL_LAYOUT(*args)
        move = {
            name: torch.roll(getattr(rows, name), by, dims=1)
            for name in ("is_prompt", "is_thought", "is_action")
        }
        move["is_prompt"][:, 0] = True
        move["is_thought"][:, 0] = move["is_action"][:, 0] = False
        return replace(rows, **move)

    return layout


REAL_LAYOUT = gtr_turbo.token_rows


@pytest.mark.parametrize("by", [-1, 1])
def test_fault_the_spans_are_shifted_by_one(
    session: Session, monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    monkeypatch.setattr(gtr_turbo, "token_rows", shifted(by))
    with pytest.raises(SpanError, match="turn 0"):
        train(session)
    assert session.update == 0


def test_fault_the_recorded_log_probabilities_are_shifted_by_one(played: Played) -> None:
    def late(turn: Turn) -> Turn:
        rolled = np.roll(turn.reply.token_logprobs, 1)
        return replace(turn, reply=replace(turn.reply, token_logprobs=rolled))

    wrong = [late(turn) for turn in played.turns]
    with pytest.raises(LogprobMismatchError):
        checks.logprob_gap(wrong, played.rows, played.scores, "float32")


def test_fault_dropout_is_on_while_the_agent_is_scored(
    world: World, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = make_policy(world.trained, "lora", lora__dropout=0.5)
    with torch.no_grad():
        for _, parameter in policy.policy_parameters():
            parameter.add_(0.1)
    monkeypatch.setattr(session, "policy", policy)
    played = play_update(session)
    assert checks.logprob_gap(played.turns, played.rows, played.scores, "float32") < 1e-5
    with policy.training(dropout=True):
        noisy = gtr_turbo.score_turns(policy, played.rows, session.config)
    with pytest.raises(LogprobMismatchError, match="on average"):
        checks.logprob_gap(played.turns, played.rows, noisy, "float32")


def test_a_nan_is_no_agreement(played: Played) -> None:
    scores = replace(played.scores, token_logprob=played.scores.token_logprob * float("nan"))
    with pytest.raises(LogprobMismatchError, match="nan"):
        checks.logprob_gap(played.turns, played.rows, scores, "float32")


@pytest.mark.parametrize("setting", ["top_k", "top_p", "repetition_penalty", "min_p"])
def test_settings_that_scoring_cannot_repeat_are_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"rollout.{setting}"):
        parse_config({"rollout": {setting: 0.5}})


def test_fault_the_border_sits_elsewhere_in_the_rows_than_in_the_replies(played: Played) -> None:
    checks.check_spans(played.turns, played.rows)
    row = next(i for i, turn in enumerate(played.turns) if turn.reply.num_thought_tokens)
    thought, action = played.rows.is_thought.clone(), played.rows.is_action.clone()
    last = int(thought[row].nonzero()[-1])
    thought[row, last], action[row, last] = False, True
    moved = replace(played.rows, is_thought=thought, is_action=action)
    with pytest.raises(SpanError, match=f"turn {row} has"):
        checks.check_spans(played.turns, moved)


# -- thought and action -------------------------------------------------------------------------

TEXT = '{"cards":["7","5"],"formula":"","thoughts":"7+5=12","action":"7"}'


def splits_at_the_action_key(policy: VlmPolicy) -> bool:
    reply = policy.written_reply(TEXT)
    tokenizer = policy.processor.tokenizer
    thought = tokenizer.decode(reply.token_ids[: reply.num_thought_tokens])
    return len(thought) <= TEXT.index('"action"') < len(thought) + 3


@pytest.mark.parametrize("by", [-3, -1, 0, 1])
def test_fault_the_border_between_thought_and_action_is_moved(
    world: World, monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    real = spans.count_thought_tokens
    monkeypatch.setattr(vlm, "count_thought_tokens", lambda *args: real(*args) + by)
    assert splits_at_the_action_key(make_policy(world.trained)) == (by == 0)


def lambda_sum(played: Played, weight: float) -> list[float]:
    """Return λ · Σ thought + Σ action from the replies alone, without any mask."""
    return [
        weight * float(t.reply.token_logprobs[: t.reply.num_thought_tokens].astype(float).sum())
        + float(t.reply.token_logprobs[t.reply.num_thought_tokens :].astype(float).sum())
        for t in played.turns
    ]


def test_fault_the_thought_mask_is_inverted(played: Played) -> None:
    rows, tokens = played.rows, played.scores.token_logprob
    expected = torch.tensor(lambda_sum(played, 0.2))
    inverted = replace(
        rows, is_thought=rows.is_action & ~ends(rows), is_action=rows.is_thought | ends(rows)
    )
    assert torch.allclose(turn_logprob(tokens, rows, 0.2), expected, atol=1e-4)
    assert not torch.allclose(turn_logprob(tokens, inverted, 0.2), expected, atol=1e-2)
    assert torch.allclose(turn_logprob(tokens, rows, 1.0), tokens.sum(dim=1), atol=1e-4)


def ends(rows: TokenRows) -> Tensor:
    """Return True at each row's last token, so that every row keeps an action."""
    found = torch.zeros_like(rows.is_action)
    last = (~rows.is_padding).sum(dim=1) - 1
    found[torch.arange(rows.num_turns), last] = True
    return found
