"""The losses of the other arms, against sums written out token by token in float64."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from gtr_turbo.core.batch import Guidance, TurnBatch
from gtr_turbo.train.gtr_turbo import loss_of, rejection_loss
from tests.train.updates import Played
from tests.train.updates import played as played


def token_guidance(played: Played) -> Guidance:
    """Return an advantage of its own for each sampled token, of either sign."""
    generator = torch.Generator().manual_seed(2)
    drawn = torch.randn(played.rows.token_ids.shape, generator=generator)
    return Guidance(
        is_guided=torch.ones(played.rows.num_turns, dtype=torch.bool),
        kl=torch.ones(played.rows.num_turns),
        token_advantage=drawn * played.rows.is_response,
    )


def shaken(played: Played, guidance: Guidance | None, **fields: Any) -> TurnBatch:
    """Return a batch whose old log-probabilities are off, so that clips bite."""
    batch = played.credit(guidance, **fields)
    if batch.tokens is None:
        return batch
    generator = torch.Generator().manual_seed(3)
    noise = 0.2 * torch.randn(batch.tokens.old_logprob.shape, generator=generator)
    old = batch.tokens.old_logprob + noise * batch.rows.is_response
    return replace(batch, tokens=replace(batch.tokens, old_logprob=old))


def test_distillation_adds_each_tokens_own_clipped_loss(played: Played) -> None:
    fields = {"guidance__kind": "distillation", "ppo__clip": 0.1, "ppo__thought_weight": 0.3}
    config = played.config(**fields)
    batch = shaken(played, token_guidance(played), **fields)
    policy = played.session.policy
    with torch.no_grad():
        with_tokens, _ = loss_of(policy, batch, config, is_warmup=False)
        without, _ = loss_of(policy, replace(batch, tokens=None), config, is_warmup=False)
        logprob = policy.score(batch.rows, 0.5, 1.0, values=False).token_logprob.double()
    assert batch.tokens is not None
    total, clipped, counted = 0.0, 0, 0
    for row in range(batch.rows.num_turns):
        for place in batch.rows.is_response[row].nonzero().flatten().tolist():
            weight = 0.3 if batch.rows.is_thought[row, place] else 1.0
            old = float(batch.tokens.old_logprob[row, place])
            advantage = float(batch.tokens.advantage[row, place])
            ratio = float((logprob[row, place] - old).exp())
            limited = min(max(ratio, 0.9), 1.1)
            total -= weight * min(ratio * advantage, limited * advantage)
            clipped += ratio != limited
            counted += 1
    expected = total / batch.rows.num_turns
    assert 0 < clipped < counted
    assert abs(expected) > 1e-3
    assert float(with_tokens - without) == pytest.approx(expected, abs=2e-5)


def test_guidance_of_tokens_leaves_the_turns_credit_alone(played: Played) -> None:
    plain = played.credit(None, guidance__kind="distillation")
    guided = played.credit(token_guidance(played), guidance__kind="distillation")
    assert torch.equal(plain.advantage, guided.advantage)
    assert torch.equal(plain.value_target, guided.value_target)


def test_rejection_imitates_the_replies_of_solved_episodes_and_nothing_else(
    played: Played,
) -> None:
    batch = replace(played.credit(None), is_solved=torch.arange(played.rows.num_turns) % 3 == 0)
    policy = played.session.policy
    config = played.config(guidance__kind="none", ppo__objective="rejection")
    with torch.no_grad():
        loss, stats = loss_of(policy, batch, config, is_warmup=False)
        warm, _ = loss_of(policy, batch, config, is_warmup=True)
        logprob = policy.score(batch.rows, 1.0, 1.0, values=False).token_logprob.double()
    expected = 0.0
    for row in range(batch.rows.num_turns):
        if row % 3 == 0:
            tokens = logprob[row][batch.rows.is_response[row]].tolist()
            expected -= sum(tokens) / len(tokens)
    expected /= batch.rows.num_turns
    assert expected > 0.01
    assert float(loss) == pytest.approx(0.5 * stats["value_loss"] + expected, abs=2e-5)
    assert float(warm) == pytest.approx(0.5 * stats["value_loss"], abs=1e-5)


def test_without_a_solved_episode_rejection_has_no_gradient(played: Played) -> None:
    batch = replace(
        played.credit(None), is_solved=torch.zeros(played.rows.num_turns, dtype=torch.bool)
    )
    policy = played.session.policy
    with policy.training(dropout=False):
        rejection_loss(policy, batch).backward()
    grads = [p.grad for _, p in policy.policy_parameters() if p.grad is not None]
    assert all(not grad.any() for grad in grads)
    for _, parameter in policy.policy_parameters():
        parameter.grad = None


def test_solved_turns_are_those_of_the_episodes_that_were_solved(played: Played) -> None:
    first = played.episodes[0]
    won = replace(first, turns=(*first.turns[:-1], replace(first.turns[-1], success=True)))
    batch = replace(played, episodes=[won, *played.episodes[1:]]).credit(None)
    expected = [e is won or e.success for e in [won, *played.episodes[1:]] for _ in e.turns]
    assert batch.is_solved.tolist() == expected


def test_imitation_alone_leaves_the_critic_its_loss(played: Played) -> None:
    batch = played.credit(None)
    config = played.config(guidance__kind="sft", ppo__objective="none")
    with torch.no_grad():
        loss, stats = loss_of(played.session.policy, batch, config, is_warmup=False)
    assert float(loss) == pytest.approx(0.5 * stats["value_loss"], abs=1e-5)
