"""The supervised start: what is imitated, how much of it is wrong, and that it learns."""

import json
from typing import Any

import pytest
import torch

from gtr_turbo.core.config import Config
from gtr_turbo.core.seeding import stream_seed
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import NonFiniteError
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.train.sft import demonstrations, sft
from tests.world import World, make_policy, tiny_config


def config(**fields: Any) -> Config:
    return tiny_config("unused", **{"sft__num_steps": 6, "sft__learning_rate": 3e-3, **fields})


def solved_share(given: Config) -> float:
    """Replay the written actions in the real game; return the share of episodes that are won."""
    wins: list[bool] = []
    result = None
    generator = iter(demonstrations(given))
    task = make_task(given.task.name, given.task.rules, stream_seed(given.run.seed, "sft"))
    for _ in range(given.sft.num_episodes):
        task.reset()
        while result is None or not (result.terminated or result.truncated):
            turn = next(generator)
            assert turn.observation.state_key == task.observation.state_key
            assert json.loads(turn.reply)["action"]
            result = task.step(turn.reply)
        wins.append(result.success)
        result = None
    assert next(generator, None) is None
    return sum(wins) / len(wins)


@pytest.mark.parametrize(("rate", "low", "high"), [(0.0, 1, 1), (1.0, 0, 0), (0.5, 0.3, 0.7)])
def test_a_share_of_the_episodes_is_wrong(rate: float, low: float, high: float) -> None:
    assert low <= solved_share(config(sft__mistake_rate=rate)) <= high


def test_the_seed_deals_the_episodes() -> None:
    texts = [[turn.reply for turn in demonstrations(config(run__seed=seed))] for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]


def test_imitation_lowers_the_loss(world: World) -> None:
    given = config(sft__num_steps=12)
    turns = demonstrations(given)
    losses = []
    for steps in (1, 12):
        policy = make_policy(world.untrained("qwen2_5_vl"))
        step = config(sft__num_steps=steps)
        losses.append(sft(policy, turns, step))
    assert losses[0] > 5, "near the log of the vocabulary"
    assert losses[1] < 0.8 * losses[0]


def test_equal_seeds_give_equal_weights_and_micro_batches_do_not_matter(world: World) -> None:
    turns = demonstrations(config())
    ends: list[VlmPolicy] = []
    losses: list[float] = []
    for size in (8, 8, 3):
        policy = make_policy(world.untrained("qwen2_5_vl"))
        losses.append(sft(policy, turns, config(sft__num_steps=3, ppo__micro_batch_size=size)))
        ends.append(policy)
    assert ends[0].fingerprint() == ends[1].fingerprint()
    assert losses[0] == losses[1] == pytest.approx(losses[2], rel=1e-3)


def test_a_loss_that_is_not_finite_stops_it(world: World) -> None:
    policy = make_policy(world.untrained("qwen2_5_vl"))
    with torch.no_grad():
        next(iter(policy.policy_parameters()))[1].fill_(float("nan"))
    with pytest.raises(NonFiniteError, match="supervised step 0") as refusal:
        sft(policy, demonstrations(config()), config())
    assert "sft.learning_rate" in str(refusal.value.hint)
