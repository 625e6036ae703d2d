"""Numbers that describe an update's episodes, and the episodes that are kept to look at."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gtr_turbo.core.batch import Guidance, TurnBatch
from gtr_turbo.core.turns import Episode, EpisodeEnd, Turn
from gtr_turbo.ops.ppo import explained_variance
from gtr_turbo.ops.sameness import self_bleu, shared_thought_rate
from gtr_turbo.policies.base import WeightChange
from gtr_turbo.teachers.merged import WeightTeacher

Number = float | int | None


def describe(
    episodes: Sequence[Episode], guidance: Guidance | None, batch: TurnBatch
) -> dict[str, Number]:
    """Return the metrics about episodes, turns, guidance and values (`docs/metrics.md`)."""
    turns = [turn for episode in episodes for turn in episode.turns]
    ended = [e for e in episodes if e.end is not EpisodeEnd.UPDATE_BOUNDARY]
    lengths = [e.prior_turns + len(e.turns) for e in ended]
    return {
        "success_rate": _mean([e.success for e in ended]),
        "return": _mean([e.task_return for e in ended]),
        "episodes": len(ended),
        "episode_length": _mean(lengths),
        "legal_rate": _mean([turn.legal for turn in turns]),
        "valid_format_rate": _mean([turn.parsed.valid_format for turn in turns]),
        "random_action_rate": _mean([turn.random_action for turn in turns]),
        "unfinished_rate": _mean([not turn.reply.finished for turn in turns]),
        "reply_tokens": _mean([len(turn.reply.token_ids) for turn in turns]),
        "thought_tokens": _mean([turn.reply.num_thought_tokens for turn in turns]),
        "distinct_thought_share": len({_thought(turn) for turn in turns}) / len(turns),
        "self_bleu": _mean_self_bleu(episodes),
        "shared_thought_rate": shared_thought_rate(
            [(turn.observation.state_key, _thought(turn)) for turn in turns]
        ),
        "guidance_kl": _guided_kl(guidance),
        "guided_share": 0.0 if guidance is None else float(guidance.is_guided.float().mean()),
        **({} if guidance is None else guidance.figures),
        "value_mean": float(batch.old_value.mean()),
        "explained_variance": explained_variance(batch.old_value, batch.value_target),
    }


def distances(change: WeightChange, teacher: WeightTeacher) -> dict[str, Number]:
    """Return how far agent and teacher are from the run's start and from each other (L2 norms)."""
    agent = worn = between = 0.0
    for name in change:
        own = change[name]
        agent += float(own.square().sum())
        if teacher.is_ready:
            other = teacher.change[name].to(own.device)
            worn += float(other.square().sum())
            between += float((own - other).square().sum())
    return {
        "agent_distance": agent**0.5,
        "teacher_distance": worn**0.5 if teacher.is_ready else None,
        "agent_teacher_distance": between**0.5 if teacher.is_ready else None,
    }


def _guided_kl(guidance: Guidance | None) -> float | None:
    """Return the mean KL over the guided turns; None when there are none."""
    if guidance is None or guidance.kl is None or not guidance.is_guided.any():
        return None
    return float(guidance.kl[guidance.is_guided].mean())


def _mean_self_bleu(episodes: Sequence[Episode]) -> float | None:
    """Return the mean over the episodes of this update with two turns or more; None without any."""
    found = [self_bleu([_thought(turn) for turn in episode.turns]) for episode in episodes]
    return _mean([value for value in found if value is not None])


def _thought(turn: Turn) -> tuple[int, ...]:
    return turn.reply.token_ids[: turn.reply.num_thought_tokens]


def _mean(values: Sequence[float | int]) -> float | None:
    return sum(values) / len(values) if values else None


def sampled_episodes(
    episodes: Sequence[Episode], guidance: Guidance | None, values: torch.Tensor, count: int
) -> list[tuple[Episode, list[float | None], list[float]]]:
    """Return up to `count` whole-looking episodes with their turns' KL and values.

    Finished episodes come first and are taken evenly over the update, so that early and late ones
    are seen.
    """
    starts = np.cumsum([0, *(len(e.turns) for e in episodes)])
    finished = [i for i, e in enumerate(episodes) if e.end is not EpisodeEnd.UPDATE_BOUNDARY]
    candidates = finished or list(range(len(episodes)))
    if count == 0 or not candidates:
        return []
    step = max(1, len(candidates) // count)
    chosen: list[tuple[Episode, list[float | None], list[float]]] = []
    for index in candidates[::step][:count]:
        span = slice(int(starts[index]), int(starts[index + 1]))
        chosen.append((episodes[index], _kl_of_turns(guidance, span), values[span].tolist()))
    return chosen


def _kl_of_turns(guidance: Guidance | None, span: slice) -> list[float | None]:
    """Return the divergence of some turns, None of those that were neither compared nor charged."""
    if guidance is None or guidance.kl is None:
        return [None] * (span.stop - span.start)
    pairs = zip(guidance.kl[span].tolist(), guidance.is_guided[span].tolist(), strict=True)
    return [kl if is_guided or kl > 0 else None for kl, is_guided in pairs]


def episode_records(
    chosen: Sequence[tuple[Episode, list[float | None], list[float]]], update: int
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Return (episodes as the report reads them, pictures by file name)."""
    records: list[dict[str, Any]] = []
    pictures: dict[str, np.ndarray] = {}
    for number, (episode, kl, values) in enumerate(chosen):
        turns: list[dict[str, Any]] = []
        for step, turn in enumerate(episode.turns):
            name = f"update-{update:04d}-e{number}-t{step}.png"
            pictures[name] = turn.observation.picture
            turns.append(_turn_record(turn, name, kl[step], values[step]))
        records.append(
            {
                "update": update,
                "environment": episode.environment,
                "seed": episode.seed,
                "end": episode.end.value,
                "success": episode.success,
                "return": episode.task_return,
                "turns": turns,
            }
        )
    return records, pictures


def _turn_record(turn: Turn, picture: str, kl: float | None, value: float) -> dict[str, Any]:
    return {
        "picture": picture,
        "prompt": turn.observation.prompt,
        "reply": turn.reply.text,
        "action": turn.parsed.action,
        "legal": turn.legal,
        "reason": turn.parsed.reason,
        "rewards": dict(turn.rewards),
        "kl": kl,
        "value": value,
    }
