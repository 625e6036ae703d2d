"""Credit, loss and steps of one update, against sums written out by hand."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from gtr_turbo.core.batch import Guidance, TurnBatch
from gtr_turbo.core.config import Config
from gtr_turbo.core.turns import EpisodeEnd
from gtr_turbo.errors import NonFiniteError
from gtr_turbo.train.gtr_turbo import assign_credit, format_reward, improve, loss_of
from gtr_turbo.train.session import Session
from tests.train.runs import session_of
from tests.train.updates import Played
from tests.train.updates import played as played
from tests.world import World, tiny_config

PLACES = ("reward", "advantage", "return")


def test_the_stretches_are_of_every_kind(played: Played) -> None:
    ends = {episode.end for episode in played.episodes}
    assert ends >= {EpisodeEnd.TRUNCATED, EpisodeEnd.UPDATE_BOUNDARY}
    assert played.scores.value is not None
    assert played.scores.value.std() > 1e-3


# -- 4 CREDIT -----------------------------------------------------------------------------------


def by_hand(
    played: Played, guidance: Guidance | None, into: str, format_into: str, config: Config
) -> tuple[list[float], list[float]]:
    """Return (advantage, value target) of each turn in Python's own floats."""
    assert played.scores.value is not None
    gamma, lam = config.ppo.gamma, config.ppo.gae_lambda
    advantages: list[float] = []
    targets: list[float] = []
    number = 0
    for episode in played.episodes:
        size = len(episode.turns)
        values = [float(v) for v in played.scores.value[number : number + size]]
        following = (
            0.0
            if episode.next_prompt is None
            else float(played.session.policy.value([episode.next_prompt])[0])
        )
        channels: dict[str, list[float]] = dict.fromkeys(PLACES, [0.0] * size)
        bonus = [
            config.format.valid if t.parsed.valid_format else config.format.invalid
            for t in episode.turns
        ]
        channels[format_into] = [a + b for a, b in zip(channels[format_into], bonus, strict=True)]
        if guidance is not None and guidance.kl is not None:
            kl = [config.guidance.coef * float(k) for k in guidance.kl[number : number + size]]
            channels[into] = [a - b for a, b in zip(channels[into], kl, strict=True)]
        rewards = [
            t.rewards["task"] + extra
            for t, extra in zip(episode.turns, channels["reward"], strict=True)
        ]
        after = [*values[1:], following]
        deltas = [r + gamma * n - v for r, n, v in zip(rewards, after, values, strict=True)]
        for t in range(size):
            plain = sum((gamma * lam) ** (k - t) * deltas[k] for k in range(t, size))
            advantages.append(plain + channels["advantage"][t] + channels["return"][t])
            targets.append(plain + values[t] + channels["return"][t])
        number += size
    return advantages, targets


@pytest.mark.parametrize("format_into", PLACES)
@pytest.mark.parametrize("into", PLACES)
def test_credit_is_the_sum_written_out(played: Played, into: str, format_into: str) -> None:
    fields = {"guidance__into": into, "format__into": format_into, "guidance__coef": 0.7}
    config = played.config(**fields)
    batch, stats = assign_credit(
        played.session.policy, played.episodes, played.rows, played.scores, played.guidance, config
    )
    advantages, targets = by_hand(played, played.guidance, into, format_into, config)
    expected = torch.tensor(advantages, dtype=torch.float64)
    spread = expected.std(unbiased=False)
    standard = (expected - expected.mean()) / (spread + 1e-5)
    assert torch.allclose(batch.advantage.double(), standard, atol=1e-5)
    assert torch.allclose(batch.value_target.double(), torch.tensor(targets).double(), atol=1e-5)
    assert stats["advantage_mean"] == pytest.approx(float(expected.mean()), abs=1e-5)
    assert stats["advantage_std"] == pytest.approx(float(spread), abs=1e-5)


@pytest.mark.parametrize("into", PLACES)
def test_guidance_into_the_advantage_leaves_the_critics_target_bit_equal(
    played: Played, into: str
) -> None:
    plain = played.credit(None, guidance__into=into)
    guided = played.credit(played.guidance, guidance__into=into)
    assert torch.equal(plain.value_target, guided.value_target) == (into == "advantage")
    assert not torch.equal(plain.advantage, guided.advantage)


def test_only_what_was_cut_is_bootstrapped(played: Played) -> None:
    """Told that the task was over, the last turn loses γ times the value of what followed."""
    index, episode = next(
        (i, e) for i, e in enumerate(played.episodes) if e.end is EpisodeEnd.TRUNCATED
    )
    assert episode.next_prompt is not None
    over = replace(episode, end=EpisodeEnd.TERMINATED, next_prompt=None)
    episodes = [*played.episodes[:index], over, *played.episodes[index + 1 :]]
    cut = played.credit(None).value_target
    ended = replace(played, episodes=episodes).credit(None).value_target
    last = sum(len(e.turns) for e in played.episodes[: index + 1]) - 1
    following = float(played.session.policy.value([episode.next_prompt])[0])
    assert abs(following) > 1e-3
    assert float(cut[last] - ended[last]) == pytest.approx(0.9 * following, abs=1e-5)
    others = torch.arange(len(cut)) > last
    assert torch.equal(cut[others], ended[others])


def test_the_format_reward_is_the_configured_one(played: Played) -> None:
    turns = [turn for episode in played.episodes for turn in episode.turns]
    found = format_reward(turns, played.config(format__valid=2.5, format__invalid=-0.5))
    assert found.tolist() == [2.5 if t.parsed.valid_format else -0.5 for t in turns]
    assert found.dtype == torch.float32


# -- 5 IMPROVE ----------------------------------------------------------------------------------


def shaken(played: Played, **fields: Any) -> tuple[TurnBatch, Config]:
    """Return a batch whose ratios and values lie on both sides of their clips."""
    config = played.config(ppo__clip=0.1, ppo__value_clip=0.2, **fields)
    batch = played.credit(played.guidance, **fields)
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(2, len(batch.old_value), generator=generator)
    return (
        replace(
            batch,
            old_logprob=batch.old_logprob + 0.2 * noise[0],
            old_value=batch.old_value + 0.4 * noise[1],
        ),
        config,
    )


@pytest.mark.parametrize("is_warmup", [False, True])
def test_the_loss_is_the_sum_written_out(played: Played, is_warmup: bool) -> None:
    batch, config = shaken(played, ppo__thought_weight=0.3)
    policy = played.session.policy
    with torch.no_grad():
        loss, stats = loss_of(policy, batch, config, is_warmup=is_warmup)
        scores = policy.score(batch.rows, 0.5, 1.0, values=True, entropy=True)
    assert scores.value is not None
    assert scores.entropy is not None
    policy_losses, value_losses, clipped = [], [], 0
    for row in range(batch.rows.num_turns):
        tokens = scores.token_logprob[row].double()
        thought = float(tokens[batch.rows.is_thought[row]].sum())
        action = float(tokens[batch.rows.is_action[row]].sum())
        ratio = float(torch.tensor(0.3 * thought + action - float(batch.old_logprob[row])).exp())
        advantage = float(batch.advantage[row])
        limited = min(max(ratio, 0.9), 1.1)
        policy_losses.append(-min(ratio * advantage, limited * advantage))
        clipped += abs(ratio - 1) > 0.1
        value, old, target = (
            float(t[row]) for t in (scores.value, batch.old_value, batch.value_target)
        )
        near = old + min(max(value - old, -0.2), 0.2)
        value_losses.append(0.5 * max((value - target) ** 2, (near - target) ** 2))
    count = len(policy_losses)
    surrogate, error = sum(policy_losses) / count, sum(value_losses) / count
    entropy = float(scores.entropy.double().mean())
    expected = 0.5 * error + (0.0 if is_warmup else surrogate - 0.01 * entropy)
    assert 0 < clipped < count, "ratios on both sides of the clip"
    assert float(loss) == pytest.approx(expected, abs=2e-5)
    assert stats["policy_loss"] == pytest.approx(surrogate, abs=1e-5)
    assert stats["value_loss"] == pytest.approx(error, abs=1e-5)
    assert stats["entropy"] == pytest.approx(entropy, abs=1e-5)
    assert stats["clip_fraction"] == pytest.approx(clipped / count)


def state_of(session: Session) -> dict[str, Tensor]:
    policy = session.policy
    named = [*policy.policy_parameters(), *policy.critic_parameters()]
    return {name: parameter.detach().clone() for name, parameter in named}


def moved(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}


@pytest.fixture
def fresh(world: World, tmp_path: Any) -> Iterator[Session]:
    """Return a session whose weights a test may move."""
    config = tiny_config(
        world.trained,
        evaluation__num_episodes=1,
        ppo__minibatch_size=4,
        ppo__micro_batch_size=3,
        ppo__epochs=3,
        ppo__target_kl=1e-9,
    )
    session = session_of(config, tmp_path / "run")
    yield session
    session.run.close()


def test_the_critics_warm_up_leaves_the_policy_bit_equal(played: Played, fresh: Session) -> None:
    batch = played.credit(None)
    before = state_of(fresh)
    stats = improve(fresh, batch, 1, is_warmup=True)
    names = moved(before, state_of(fresh))
    assert names
    assert all(name.startswith("critic.") for name in names)
    assert stats["grad_norm"] == 0


def test_a_target_kl_ends_the_update_after_the_epoch_that_passes_it(
    played: Played, fresh: Session
) -> None:
    """Twelve turns in minibatches of four: three steps an epoch, of three epochs one is left."""
    before = state_of(fresh)
    stats = improve(fresh, played.credit(None), 1, is_warmup=False)
    assert stats["optimizer_steps"] == 3
    assert stats["approx_kl"] > 1e-9
    assert len(moved(before, state_of(fresh))) > 0.9 * len(before)


@pytest.mark.parametrize("field", ["advantage", "value_target"])
def test_a_nan_stops_the_run_and_touches_no_weight(
    played: Played, fresh: Session, field: str
) -> None:
    batch = played.credit(None)
    poisoned = getattr(batch, field).clone()
    poisoned[:] = float("nan")
    before = state_of(fresh)
    with pytest.raises(NonFiniteError, match="update 7, optimiser step 0") as refusal:
        improve(fresh, replace(batch, **{field: poisoned}), 7, is_warmup=False)
    assert refusal.value.hint
    assert not moved(before, state_of(fresh))


def test_accumulated_chunks_take_the_step_of_the_whole_minibatch(
    played: Played, world: World, tmp_path: Any
) -> None:
    ends = []
    for size in (12, 5):
        config = tiny_config(
            world.trained,
            evaluation__num_episodes=1,
            ppo__minibatch_size=12,
            rollout__turns_per_update=12,
            ppo__micro_batch_size=size,
        )
        session = session_of(config, tmp_path / str(size))
        improve(session, played.credit(None), 1, is_warmup=False)
        ends.append(session.policy.change())
        session.run.close()
    largest = max(float(t.abs().max()) for t in ends[0].values())
    assert largest > 1e-6
    agreement = [torch.isclose(ends[0][n], ends[1][n], atol=1e-6).float().mean() for n in ends[0]]
    assert sum(map(float, agreement)) / len(agreement) > 0.9
