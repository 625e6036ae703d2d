"""One update, up to the point where a run checks itself."""

from dataclasses import dataclass
from typing import Any

from gtr_turbo.core.batch import Scores, TokenRows
from gtr_turbo.core.turns import Episode, Turn
from gtr_turbo.ops.collate import token_rows
from gtr_turbo.train.gtr_turbo import score_turns
from gtr_turbo.train.session import Session

QUICK: dict[str, Any] = {
    "rollout__turns_per_update": 8,
    "rollout__max_new_tokens": 24,
    "ppo__minibatch_size": 4,
    "evaluation__num_episodes": 1,
    "critic__warmup_updates": 0,
}


@dataclass(frozen=True)
class Played:
    """What one update has before it learns."""

    session: Session
    episodes: list[Episode]
    turns: list[Turn]
    rows: TokenRows
    scores: Scores


def play_update(session: Session) -> Played:
    """Play and score the turns of an update as the loop does."""
    policy, config = session.policy, session.config
    sampling = policy.sampling(config.rollout.temperature, config.rollout.max_new_tokens)
    count = config.rollout.turns_per_update
    episodes = session.rollout.collect(policy, sampling, session.seeds.sampler, count)
    turns = [turn for episode in episodes for turn in episode.turns]
    rows = token_rows([t.prompt for t in turns], [t.reply for t in turns], policy.pad_token_id)
    return Played(session, episodes, turns, rows, score_turns(policy, rows, config))
