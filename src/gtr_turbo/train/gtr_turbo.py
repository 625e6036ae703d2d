"""GTR-Turbo, whole: an agent learns from rewards and from the merge of its own past.

A vision-language agent plays many-turn episodes whose reward comes late. Plain PPO on that signal
lets its reasoning collapse. So after each update its weights join a history, the history is merged
into a teacher, and the teacher says, in one forward pass, how differently it would have thought.

    one update     1 TEACH ─▶ 2 ACT ─▶ 3 GUIDE ─▶ 4 CREDIT ─▶ 5 IMPROVE ─▶ 6 REMEMBER ─┐
                     ▲                                                                 │
                     └────────────── weights of every update so far ◀──────────────────┘

    paper        here                        paper        here
    π_θ          policy                      β            guidance.coef
    π_merged     teacher                     λ            ppo.thought_weight
    k            update                      c            ppo.clip
    th, a        is_thought, is_action       α            merge.ema_alpha
    γ, λ_GAE     ppo.gamma, ppo.gae_lambda   density      merge.density

`guidance.kind: none` is the RL4VLM baseline: steps 1 and 3 fall away, the rest is the same code.
Under `sft` the teacher writes thoughts, which IMPROVE imitates beside the policy's own loss.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float32
from torch import Tensor

from gtr_turbo.core.batch import (
    Guidance,
    Scores,
    TokenCredit,
    TokenRows,
    TurnBatch,
    turn_logprob,
)
from gtr_turbo.core.config import Config, PpoConfig
from gtr_turbo.core.faultline import fault_point
from gtr_turbo.core.turns import Episode, Turn
from gtr_turbo.errors import NonFiniteError
from gtr_turbo.ops import ppo as losses
from gtr_turbo.ops.advantages import gae, standardise
from gtr_turbo.ops.collate import score_in_chunks, token_rows
from gtr_turbo.ops.imitation import IMITATION_TEMPERATURE, negative_log_likelihood
from gtr_turbo.ops.means import TurnMeans
from gtr_turbo.ops.schedules import cosine_with_floor
from gtr_turbo.policies.base import AbstractPolicy
from gtr_turbo.train import checks, record
from gtr_turbo.train.session import Session

Turns = Float32[Tensor, " turn"]


def train(session: Session) -> None:
    """Run the updates that remain; each one ends with a checkpoint, if `run` says so."""
    config, policy = session.config, session.policy
    teacher, history = session.teacher, session.history
    sampling = policy.sampling(config.rollout.temperature, config.rollout.max_new_tokens)
    for update in session.remaining_updates():
        is_warmup = update <= config.critic.warmup_updates

        # 1  TEACH    merge what we have been into what we could be
        with session.phase("teach"):
            if history is not None and history.is_due():
                teacher.become(history.merge(), must_differ=history.must_differ)

        # 2  ACT      let the agent play; keep exactly what it saw, said and sampled
        with session.phase("act"):
            episodes = session.rollout.collect(
                policy,
                sampling,
                session.seeds.sampler,
                config.rollout.turns_per_update,
                session.tick,
            )
            turns = [turn for episode in episodes for turn in episode.turns]

        # 3  GUIDE    how differently would the teacher have thought?
        with session.phase("guide"):
            rows = token_rows(
                [turn.prompt for turn in turns], [turn.reply for turn in turns], policy.pad_token_id
            )
            scores = score_turns(policy, rows, config)
            # In the first update there is no past, so there is no guidance at all.
            guide = session.guide
            guidance = guide.guide(policy, turns, rows, scores) if guide.is_ready else None
            if guidance is not None and session.store is not None:
                session.store.add(update, guidance.thoughts)
            found = checks.check(session, update, turns, rows, scores)

        # 4  CREDIT   task reward through time, guidance on its turn
        with session.phase("credit"):
            batch, credit = assign_credit(policy, episodes, rows, scores, guidance, config)

        # 5  IMPROVE  a few clipped passes over the same turns
        with session.phase("improve"):
            checks.check_provenance(policy, turns)
            learning_rate = cosine_with_floor(
                update - 1,
                config.ppo.learning_rate,
                config.ppo.learning_rate_floor,
                config.ppo.decay_updates,
            )
            session.set_learning_rate(learning_rate)
            stats = improve(session, batch, update, is_warmup=is_warmup)

        # 6  REMEMBER these weights become part of the next teacher; save everything
        with session.phase("remember"):
            values = record.describe(episodes, guidance, batch) | found | credit | stats
            # Weights that collapsed are to teach nobody; what is put in their place did already.
            if not session.watch(update, values) and history is not None and not is_warmup:
                history.add(update, policy.change(), is_stepped=session.took_step(stats))
            session.finish_update(update, values, episodes, guidance, batch)


def score_turns(policy: AbstractPolicy, rows: TokenRows, config: Config) -> Scores:
    """Return the agent's scores of all turns in evaluation mode, before any step is taken."""
    temperatures = config.rollout.temperature, config.guidance.temperature
    with torch.no_grad():
        scores = score_in_chunks(
            lambda part: policy.score(part, *temperatures, values=True),
            rows,
            config.ppo.micro_batch_size,
        )
    fault_point("scored")
    return scores


def assign_credit(
    policy: AbstractPolicy,
    episodes: Sequence[Episode],
    rows: TokenRows,
    scores: Scores,
    guidance: Guidance | None,
    config: Config,
) -> tuple[TurnBatch, dict[str, float | None]]:
    """Return the update's batch, and what to watch about it.

    The task's reward goes through GAE, the other channels go where their `into` says.

    Into `reward` a channel is discounted and credited backwards with the task's reward (paper,
    Algorithm 2); into `advantage` it acts on its own turn and leaves the critic's target alone
    (paper, Eq. 6); into `return` it acts on its turn and moves the target too (released code).
    """
    assert scores.value is not None
    turns = [turn for episode in episodes for turn in episode.turns]
    task = torch.tensor([turn.rewards["task"] for turn in turns], dtype=torch.float32)
    channels = [(config.format.into, format_reward(turns, config))]
    penalty = None
    if guidance is not None and config.guidance.kind == "kl":
        assert guidance.kl is not None
        penalty = config.guidance.coef * guidance.kl
        channels.append((config.guidance.into, -penalty))
    totals = {place: torch.zeros_like(task) for place in ("reward", "advantage", "return")}
    for place, channel in channels:
        totals[place] = totals[place] + channel
    advantage = _gae_of_episodes(
        policy, episodes, task + totals["reward"], scores.value, config.ppo
    )
    value_target = advantage + scores.value + totals["return"]
    advantage = advantage + totals["advantage"] + totals["return"]
    tokens = None
    if guidance is not None and guidance.token_advantage is not None:
        tokens = TokenCredit(old_logprob=scores.token_logprob, advantage=guidance.token_advantage)
    batch = TurnBatch(
        rows=rows,
        old_logprob=turn_logprob(scores.token_logprob, rows, config.ppo.thought_weight),
        old_value=scores.value,
        advantage=standardise(advantage),
        value_target=value_target,
        is_solved=torch.tensor([e.success for e in episodes for _ in e.turns]),
        tokens=tokens,
    )
    spread = advantage.std(unbiased=False)
    weight = None if penalty is None else float(penalty.std(unbiased=False) / spread)
    return batch, {
        "advantage_mean": float(advantage.mean()),
        "advantage_std": float(spread),
        "guidance_weight": weight if spread else None,
    }


def format_reward(turns: Sequence[Turn], config: Config) -> Turns:
    """Return each turn's bonus for a well-formed reply, or the malus for a malformed one."""
    bonus = {True: config.format.valid, False: config.format.invalid}
    return torch.tensor([bonus[turn.parsed.valid_format] for turn in turns], dtype=torch.float32)


def _gae_of_episodes(
    policy: AbstractPolicy,
    episodes: Sequence[Episode],
    rewards: Turns,
    values: Turns,
    config: PpoConfig,
) -> Turns:
    """Return the advantages of all turns; an unfinished future counts with its critic's value."""
    following = [e.next_prompt for e in episodes if e.next_prompt is not None]
    parts = [following[i : i + config.micro_batch_size]
             for i in range(0, len(following), config.micro_batch_size)]  # fmt: skip
    next_values = (value for part in parts for value in policy.value(part).tolist())
    pieces: list[Tensor] = []
    start = 0
    for episode in episodes:
        end = start + len(episode.turns)
        next_value = 0.0 if episode.next_prompt is None else next(next_values)
        pieces.append(
            gae(rewards[start:end], values[start:end], next_value, config.gamma, config.gae_lambda)
        )
        start = end
    return torch.cat(pieces)


def improve(
    session: Session, batch: TurnBatch, update: int, *, is_warmup: bool
) -> dict[str, float | int]:
    """Take the optimiser steps of one update and return their statistics.

    The critic's gradient stops before the policy's trunk unless `critic.trunk` is `shared`. During
    the critic's warm-up the policy terms are left out, so the policy stays as it was.
    Raises NonFiniteError before a step would spread a NaN into the weights.
    """
    config, policy = session.config.ppo, session.policy
    sums, lessons = TurnMeans(), session.lessons
    num_steps, norm = 0, 0.0
    with policy.training(dropout=config.dropout):
        for _ in range(config.epochs):
            epoch = TurnMeans()
            if lessons is not None:
                lessons.begin_pass(batch.rows.num_turns)
            for minibatch in batch.minibatches(config.minibatch_size, session.seeds.shuffle):
                num_turns = minibatch.rows.num_turns
                for chunk in minibatch.chunks(config.micro_batch_size):
                    loss, stats = loss_of(policy, chunk, session.config, is_warmup=is_warmup)
                    if not torch.isfinite(loss):
                        raise NonFiniteError(
                            f"the loss of update {update}, optimiser step {num_steps} is"
                            f" {loss.item()}.",
                            hint="lower `ppo.learning_rate`; the last checkpoint is intact.",
                        )
                    (loss * chunk.rows.num_turns / num_turns).backward()
                    sums.add(chunk.rows.num_turns, **stats)
                    epoch.add(chunk.rows.num_turns, approx_kl=stats["approx_kl"])
                if lessons is not None and not is_warmup:
                    sums.add(num_turns, **lessons.backward(num_turns))
                norm += session.optimizer.step(f"update {update}, optimiser step {num_steps}")
                num_steps += 1
                session.tick(
                    num_steps, config.epochs * -(-batch.rows.num_turns // config.minibatch_size)
                )
            if config.target_kl is not None and epoch.means()["approx_kl"] > config.target_kl:
                break
    return sums.means() | {"grad_norm": norm / num_steps, "optimizer_steps": num_steps}


def loss_of(
    policy: AbstractPolicy, chunk: TurnBatch, config: Config, *, is_warmup: bool
) -> tuple[Float32[Tensor, ""], dict[str, float]]:
    """Return the mean loss of some turns, and what to watch about it (paper, Eq. 6)."""
    ppo, temperature = config.ppo, config.rollout.temperature
    scores = policy.score(chunk.rows, temperature, temperature, values=True, entropy=True)
    assert scores.value is not None
    assert scores.entropy is not None
    old_logprob, old_value, advantage, target = (
        tensor.to(scores.value.device)
        for tensor in (chunk.old_logprob, chunk.old_value, chunk.advantage, chunk.value_target)
    )
    logprob = turn_logprob(scores.token_logprob, chunk.rows, ppo.thought_weight)
    policy_loss = losses.clipped_surrogate(logprob, old_logprob, advantage, ppo.clip).mean()
    if chunk.tokens is not None:  # a token's gradient is (A_turn + A_token) ∇ log π, thoughts' λ ×
        own = losses.token_surrogate(scores.token_logprob, chunk.tokens, ppo.clip)
        policy_loss = policy_loss + turn_logprob(own, chunk.rows, ppo.thought_weight).mean()
    value_loss = losses.value_loss(scores.value, old_value, target, ppo.value_clip).mean()
    entropy = scores.entropy.mean()
    loss = ppo.value_coef * value_loss
    if ppo.objective == "ppo" and not is_warmup:
        loss = loss + policy_loss - ppo.entropy_coef * entropy
    elif ppo.objective == "rejection" and not is_warmup:
        is_plain = temperature == IMITATION_TEMPERATURE
        loss = loss + rejection_loss(policy, chunk, scores if is_plain else None)
    return loss, {
        "policy_loss": policy_loss.item(),
        "value_loss": value_loss.item(),
        "entropy": entropy.item(),
        "approx_kl": losses.approximate_kl(logprob, old_logprob),
        "clip_fraction": losses.clip_fraction(logprob, old_logprob, ppo.clip),
    }


def rejection_loss(
    policy: AbstractPolicy, chunk: TurnBatch, scores: Scores | None = None
) -> Float32[Tensor, ""]:
    """Return the imitation loss of the replies in solved episodes, nats per token (RFT).

    `scores` are the chunk's own at `IMITATION_TEMPERATURE`, where they are known already.
    """
    if scores is None:
        once = IMITATION_TEMPERATURE
        scores = policy.score(chunk.rows, once, once, values=False)
    is_kept = chunk.rows.is_response & chunk.is_solved[:, None]
    return negative_log_likelihood(scores.token_logprob, is_kept).mean()
