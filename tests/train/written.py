"""Thoughts that an expert wrote, as labels, for tests of what is kept and imitated."""

from pathlib import Path

from gtr_turbo.core.turns import ThoughtLabel
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.runstate import RunDirectory
from gtr_turbo.train.thoughts import ThoughtStore
from tests.world import expert_turns, tiny_config


def labels_of(policy: VlmPolicy, count: int, seed: int = 0) -> list[ThoughtLabel]:
    """Return the thoughts of an expert's first turns as labels."""
    turns = expert_turns(count, seed)
    return [ThoughtLabel.of(turn.observation, policy.written_reply(turn.reply)) for turn in turns]


def store_at(path: Path, max_stored: int | None = None, *, resume: bool = False) -> ThoughtStore:
    """Return a store in a run directory, which its caller closes by leaving the test."""
    run = RunDirectory.open(path, tiny_config("unused"), resume=resume)
    store = ThoughtStore(run, max_stored)
    run.close()
    return store
