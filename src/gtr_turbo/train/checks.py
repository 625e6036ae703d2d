"""What a run proves about itself while it runs (design truths 1, 2, 3, 4 and 6)."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float32
from torch import Tensor

from gtr_turbo.core.batch import Scores, TokenRows
from gtr_turbo.core.turns import Turn, picture_hash
from gtr_turbo.errors import (
    LogprobMismatchError,
    SpanError,
    StaleAdapterError,
    VisionMismatchError,
)
from gtr_turbo.policies.base import AbstractPolicy
from gtr_turbo.teachers.merged import WeightTeacher
from gtr_turbo.train.session import Session
from gtr_turbo.train.state_effect import thought_state_effect

LOGPROB_TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1}
"""Largest allowed mean difference per token between sampled and recomputed log-probability, nats.

float32 agrees to about 1e-6; bfloat16 kernels differ with the batch's shape by some hundredths.
"""
NUM_PROBED = 8
"""Turns that the blank-picture probe looks at."""


def check(
    session: Session, update: int, turns: Sequence[Turn], rows: TokenRows, scores: Scores
) -> dict[str, float | None]:
    """Return what was measured, None where it was not; raises a named error for a broken truth.

    Spans, pictures and log-probabilities are checked at every update, and it is measured how much
    thoughts depend on their state; the blank-picture probe runs in the first update, in the first
    one with a teacher and then every `run.check_interval`.
    """
    check_spans(turns, rows)
    found: dict[str, float | None] = {
        "logprob_gap": logprob_gap(turns, rows, scores, session.config.model.dtype),
        "picture_effect_agent": None,
        "picture_effect_teacher": None,
        "thought_state_effect": thought_state_effect(
            session.policy,
            turns,
            rows,
            scores,
            temperature=session.config.rollout.temperature,
            micro_batch_size=session.config.ppo.micro_batch_size,
        ),
    }
    check_pictures(turns, rows)
    if session.is_check_due(update):
        probe = rows.select(torch.arange(min(NUM_PROBED, rows.num_turns)))
        temperature = session.config.rollout.temperature
        found["picture_effect_agent"] = picture_effect(session.policy, probe, temperature, "agent")
        if session.teacher.is_ready:
            found["picture_effect_teacher"] = teacher_picture_effect(
                session.policy, session.teacher, probe
            )
    return found


def check_spans(turns: Sequence[Turn], rows: TokenRows) -> None:
    """Raise SpanError unless each row's thought and action are the sampled ids of its reply."""
    for index, turn in enumerate(turns):
        ids, count = turn.reply.token_ids, turn.reply.num_thought_tokens
        thought = tuple(rows.token_ids[index][rows.is_thought[index]].tolist())
        action = tuple(rows.token_ids[index][rows.is_action[index]].tolist())
        if (thought, action) != (ids[:count], ids[count:]):
            raise SpanError(
                f"turn {index} has {count} tokens of thought and {len(ids) - count} of action; its"
                f" row marks {len(thought)} and {len(action)}, or others than these.",
                hint="were the masks shifted against the tokens, or the border moved?",
            )


def logprob_gap(turns: Sequence[Turn], rows: TokenRows, scores: Scores, dtype: str) -> float:
    """Return the mean |recomputed − behaviour| log-probability per token, nats.

    Raises LogprobMismatchError beyond `LOGPROB_TOLERANCE`: then the ratio of PPO would be biased
    before its first step.
    """
    behaviour = torch.cat([torch.from_numpy(turn.reply.token_logprobs) for turn in turns])
    recomputed = scores.token_logprob[rows.is_response]
    gap = float((recomputed - behaviour).abs().mean())
    if not gap <= LOGPROB_TOLERANCE[dtype]:
        raise LogprobMismatchError(
            f"recomputed log-probabilities differ from the sampled ones by {gap:.2e} nats per token"
            f" on average; at most {LOGPROB_TOLERANCE[dtype]:g} is allowed in {dtype}.",
            hint="is sampling processed in a way that scoring does not know, or is dropout on?",
        )
    return gap


def check_pictures(turns: Sequence[Turn], rows: TokenRows) -> None:
    """Raise VisionMismatchError unless each row carries the picture that its environment showed.

    The pictures of the first turns are hashed anew; further on, the recorded hashes are compared.
    """
    for index, turn in enumerate(turns):
        recorded = turn.prompt.picture.sha256
        shown = picture_hash(turn.observation.picture) if index < NUM_PROBED else recorded
        if not shown == turn.prompt.picture.sha256 == rows.vision.hashes[index]:
            raise VisionMismatchError(
                f"turn {index} was shown picture {shown[:12]}, its prompt holds"
                f" {turn.prompt.picture.sha256[:12]} and its row {rows.vision.hashes[index][:12]}.",
                hint="were turns and rows put in a different order, or a picture changed in place?",
            )


@torch.no_grad()
def picture_effect(policy: AbstractPolicy, rows: TokenRows, temperature: float, who: str) -> float:
    """Return the largest change of a log-probability when the pictures are blanked, nats.

    Raises VisionMismatchError when there is none: then the pictures do not reach the model.
    """
    blind = replace(rows, vision=rows.vision.blank())
    seen, unseen = (
        policy.score(part, temperature, temperature, values=False).token_logprob
        for part in (rows, blind)
    )
    return _effect(
        seen, unseen, who, "are the pictures all blank, or lost on the way to the model?"
    )


def teacher_picture_effect(
    policy: AbstractPolicy, teacher: WeightTeacher, rows: TokenRows
) -> float:
    """Return `picture_effect` of the teacher, through the teacher's own scoring."""
    seen = teacher.score(policy, rows)
    unseen = teacher.score(policy, replace(rows, vision=rows.vision.blank()))
    return _effect(seen, unseen, "teacher", "are the pictures lost in the teacher's forward pass?")


def _effect(
    seen: Float32[Tensor, "turn seq"], unseen: Float32[Tensor, "turn seq"], who: str, hint: str
) -> float:
    """Return the largest difference; VisionMismatchError when there is none."""
    effect = float((seen - unseen).abs().max())
    if not effect > 0:
        raise VisionMismatchError(
            f"blanking the pictures does not change any log-probability of the {who}.", hint=hint
        )
    return effect


def check_provenance(policy: AbstractPolicy, turns: Sequence[Turn]) -> None:
    """Raise StaleAdapterError unless the weights about to train are the ones that sampled."""
    now = policy.fingerprint()
    others = {turn.policy_version for turn in turns} - {now}
    if others:
        raise StaleAdapterError(
            f"turns were sampled by weights {sorted(others)[0][:12]},"
            f" the policy now has {now[:12]}.",
            hint="was an adapter loaded between the rollout and the update?",
        )
