"""One update, played and scored by the smallest real model, for tests of credit and loss."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from gtr_turbo.core.batch import Guidance, Scores, TokenRows, TurnBatch
from gtr_turbo.core.config import Config
from gtr_turbo.core.turns import Episode
from gtr_turbo.ops.collate import token_rows
from gtr_turbo.train.gtr_turbo import assign_credit, score_turns
from gtr_turbo.train.session import Session
from tests.train.runs import session_of
from tests.world import World, nudge, tiny_config


@dataclass(frozen=True)
class Played:
    """One update's turns, scored and guided by made-up numbers."""

    session: Session
    episodes: list[Episode]
    rows: TokenRows
    scores: Scores
    guidance: Guidance

    def config(self, **fields: Any) -> Config:
        return tiny_config(self.session.config.model.path, **fields)

    def credit(self, guidance: Guidance | None, **fields: Any) -> TurnBatch:
        config = self.config(**fields)
        batch, _ = assign_credit(
            self.session.policy, self.episodes, self.rows, self.scores, guidance, config
        )
        return batch


@pytest.fixture(scope="module")
def played(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Three hands of four turns each, one of them cut by a step limit, one still open."""
    config = tiny_config(
        world.trained,
        rollout__num_environments=3,
        rollout__turns_per_update=12,
        ppo__minibatch_size=4,
        evaluation__num_episodes=1,
        task__rules__end_at_first_penalty=False,
        task__rules__max_steps=3,
    )
    session = session_of(config, tmp_path_factory.mktemp("run") / "run")
    policy = session.policy
    nudge(policy, 0.02)  # pyright: ignore[reportArgumentType]
    sampling = policy.sampling(0.5, 24)
    episodes = session.rollout.collect(policy, sampling, session.seeds.sampler, 12)
    turns = [turn for episode in episodes for turn in episode.turns]
    rows = token_rows([t.prompt for t in turns], [t.reply for t in turns], policy.pad_token_id)
    generator = torch.Generator().manual_seed(0)
    guidance = Guidance(
        kl=torch.rand(len(turns), generator=generator),
        is_guided=torch.ones(len(turns), dtype=torch.bool),
    )
    yield Played(session, episodes, rows, score_turns(policy, rows, config), guidance)
    session.run.close()
