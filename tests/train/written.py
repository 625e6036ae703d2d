"""Thoughts that an expert wrote, as labels, for tests of what is kept and imitated."""

from pathlib import Path

from gtr_turbo.core.turns import ThoughtLabel
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.runstate import RunDirectory
from gtr_turbo.train.thoughts import ThoughtStore
from tests.world import expert_turns, tiny_config


def labels_of(policy: VlmPolicy, count: int, seed: int = 0) -> list[ThoughtLabel]:
    """Return the thoughts of an expert's first turns as labels."""
    labels: list[ThoughtLabel] = []
    for turn in expert_turns(count, seed):
        reply = policy.written_reply(turn.reply)
        labels.append(
            ThoughtLabel(
                observation=turn.observation,
                token_ids=reply.token_ids,
                num_thought_tokens=reply.num_thought_tokens,
            )
        )
    return labels


def store_at(path: Path, max_stored: int | None = None, *, resume: bool = False) -> ThoughtStore:
    """Return a store in a run directory, which its caller closes by leaving the test."""
    run = RunDirectory.open(path, tiny_config("unused"), resume=resume)
    store = ThoughtStore(run, max_stored)
    run.close()
    return store
