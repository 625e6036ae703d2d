"""Environments side by side: what is kept of each turn, and episodes that outlast an update."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
import torch

from gtr_turbo.core.turns import Episode, EpisodeEnd, Prompt, Reply
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.pool.in_process import InProcessPool
from gtr_turbo.envs.pool.processes import ProcessPool, ProcessSettings, TaskSource
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import TaskError
from gtr_turbo.policies.vlm import VlmPolicy
from gtr_turbo.rollout import Rollout
from tests.envs.pool.faulty import FACTORY
from tests.world import World, make_policy, tiny_config
from tests.world import world as world


@pytest.fixture(scope="module")
def policy(world: World) -> VlmPolicy:
    return make_policy(world.trained)


def tasks(count: int, **rules: object) -> list[AbstractTask]:
    config = tiny_config("unused")
    given = {**config.task.rules, "end_at_first_penalty": False, "max_steps": 3, **rules}
    return [make_task(config.task.name, given, seed) for seed in range(count)]


def pool(count: int, **rules: object) -> InProcessPool:
    return InProcessPool(tasks(count, **rules))


def collect(rollout: Rollout, policy: VlmPolicy, num_turns: int, seed: int = 0) -> list[Episode]:
    sampling = policy.sampling(0.5, 24)
    return rollout.collect(policy, sampling, torch.Generator().manual_seed(seed), num_turns)


def test_each_environment_plays_the_same_number_of_turns(policy: VlmPolicy) -> None:
    ticks: list[tuple[int, int]] = []
    rollout = Rollout(pool(3))
    generator = torch.Generator().manual_seed(0)
    episodes = rollout.collect(
        policy, policy.sampling(0.5, 24), generator, 12, lambda *at: ticks.append(at)
    )
    turns = [0, 0, 0]
    for episode in episodes:
        turns[episode.environment] += len(episode.turns)
    assert turns == [4, 4, 4]
    assert ticks == [(3, 12), (6, 12), (9, 12), (12, 12)]


def test_turns_replayed_in_a_fresh_environment_happen_again(policy: VlmPolicy) -> None:
    """The record alone leads a new environment through the same pictures, prompts and rewards."""
    episodes = collect(Rollout(pool(3)), policy, 12)
    assert {episode.end for episode in episodes} >= {EpisodeEnd.UPDATE_BOUNDARY}
    for episode in episodes:
        task = tasks(1)[0]
        task.reset(episode.seed)
        for turn in episode.turns:
            assert turn.observation.state_key == task.observation.state_key
            assert (turn.observation.picture == task.observation.picture).all()
            result = task.step(turn.reply.text)
            assert (turn.legal, turn.success) == (result.legal, result.success)
            assert dict(turn.rewards) == dict(result.rewards)
            assert (turn.terminated, turn.truncated) == (result.terminated, result.truncated)
            assert turn.parsed == result.parsed
        assert episode.task_id == task.task_id


def test_how_a_stretch_ended_and_what_followed(policy: VlmPolicy) -> None:
    for episode in collect(Rollout(pool(3)), policy, 15):
        last = episode.turns[-1]
        if episode.end is EpisodeEnd.TERMINATED:
            assert last.terminated
            assert episode.next_prompt is None
        else:
            assert last.truncated == (episode.end is EpisodeEnd.TRUNCATED)
            assert not last.terminated
            assert episode.next_prompt is not None
        assert all(not (t.terminated or t.truncated) for t in episode.turns[:-1])


def test_an_open_episode_goes_on_in_the_next_update(policy: VlmPolicy) -> None:
    rollout = Rollout(pool(2, max_steps=5))
    first = collect(rollout, policy, 4)
    second = collect(rollout, policy, 8, seed=1)
    cut = [e for e in first if e.end is EpisodeEnd.UPDATE_BOUNDARY]
    assert cut
    for episode in cut:
        after = next(e for e in second if e.environment == episode.environment)
        assert after.seed == episode.seed
        assert after.prior_turns == episode.prior_turns + len(episode.turns)
        assert after.prior_return == episode.task_return
        assert episode.next_prompt is not None
        assert after.turns[0].prompt.token_ids == episode.next_prompt.token_ids
        whole = sum(t.rewards["task"] for t in (*episode.turns, *after.turns))
        assert after.task_return == whole


def test_a_new_episode_starts_with_nothing_behind_it(policy: VlmPolicy) -> None:
    rollout = Rollout(pool(2, max_steps=1))
    for episode in [*collect(rollout, policy, 4), *collect(rollout, policy, 4)]:
        assert (episode.prior_turns, episode.prior_return) == (0, 0.0)
        assert len(episode.turns) == 1


def test_a_restored_rollout_plays_on_bit_equally(policy: VlmPolicy) -> None:
    rollout = Rollout(pool(3))
    collect(rollout, policy, 6)
    state = rollout.state()
    expected = collect(rollout, policy, 9, seed=2)
    other = Rollout(pool(3))
    other.restore(state)
    found = collect(other, policy, 9, seed=2)
    assert [strip(e) for e in found] == [strip(e) for e in expected]


def strip(episode: Episode) -> tuple[object, ...]:
    return (
        episode.environment,
        episode.seed,
        episode.end,
        episode.prior_return,
        episode.prior_turns,
        [(t.observation.state_key, t.reply.token_ids, dict(t.rewards)) for t in episode.turns],
    )


def test_turns_carry_the_settings_and_the_weights_they_were_sampled_under(
    policy: VlmPolicy,
) -> None:
    episodes = collect(Rollout(pool(2)), policy, 4)
    for turn in (turn for episode in episodes for turn in episode.turns):
        assert turn.sampling == policy.sampling(0.5, 24)
        assert turn.policy_version == policy.fingerprint()
        again = policy.encode([replace(turn.observation)])[0]
        assert turn.prompt.token_ids == again.token_ids


# -- environments in processes --------------------------------------------------------------------


@pytest.fixture(scope="module")
def workers() -> Iterator[ProcessPool]:
    """Return three environments in two processes that can be told to fail."""
    config = tiny_config("unused")
    rules = {**config.task.rules, "end_at_first_penalty": False, "max_steps": 3}
    source = TaskSource(name=config.task.name, rules=rules, factory=FACTORY)
    settings = ProcessSettings(num_workers=2, step_deadline=30.0)
    pool = ProcessPool(source, range(3), settings)
    yield pool
    pool.close()


def whole(episode: Episode) -> tuple[object, ...]:
    """Return everything of an episode that an equal one must repeat."""
    following = episode.next_prompt
    return (
        *strip(episode),
        None if following is None else following.token_ids,
        [
            (t.observation.picture.tobytes(), t.observation.prompt, t.prompt.picture.sha256,
             t.reply.text, t.reply.token_logprobs.tobytes(), t.parsed, t.legal, t.success)
            for t in episode.turns
        ],
    )  # fmt: skip


def test_where_the_environments_live_changes_no_bit(
    policy: VlmPolicy, workers: ProcessPool
) -> None:
    here, there = Rollout(pool(3)), Rollout(workers)
    for seed, turns in ((0, 12), (1, 9)):
        expected = [whole(e) for e in collect(here, policy, turns, seed)]
        assert [whole(e) for e in collect(there, policy, turns, seed)] == expected
        assert (there.num_faults, there.num_excluded_turns, there.excluded) == (0, 0, [])
    assert json.loads(json.dumps(here.state())) == there.state()


def scripted(
    rollout: Rollout, policy: VlmPolicy, num_turns: int, script: dict[tuple[int, int], str]
) -> list[Episode]:
    """Play a policy that says in round n to environment i what the script has, else always "+"."""
    usual = policy.written_reply('{"action": "+"}')
    rounds = itertools.count()

    def respond(prompts: Sequence[Prompt], *_: object) -> list[Reply]:
        number = next(rounds)
        texts = [script.get((number, index), usual.text) for index in range(len(prompts))]
        return [replace(usual, text=text) for text in texts]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "respond", respond)
        return collect(rollout, policy, num_turns)


def test_a_fault_takes_its_episode_out_and_leaves_the_others_bit_equal(
    policy: VlmPolicy, workers: ProcessPool
) -> None:
    """Environment 1 fails in its second turn; of 5 turns 2 are lost, 3 belong to the next one."""
    start = workers.state()
    calm = pool(3)
    calm.restore(start)
    expected = scripted(Rollout(calm), policy, 15, {})
    rollout = Rollout(workers)
    found = scripted(rollout, policy, 15, {(1, 1): "!exit"})
    for index in (0, 2):
        assert [whole(e) for e in found if e.environment == index] == [
            whole(e) for e in expected if e.environment == index
        ]
    assert (rollout.num_faults, rollout.num_excluded_turns) == (1, 2)
    (lost,) = rollout.excluded
    assert (lost.environment, lost.end, len(lost.turns)) == (1, EpisodeEnd.FAULT, 1)
    assert lost.next_prompt is None
    assert sum(len(e.turns) for e in found) == 15 - rollout.num_excluded_turns
    assert all(e.end is not EpisodeEnd.FAULT for e in found)
    after = [e for e in found if e.environment == 1]
    assert [len(e.turns) for e in after] == [3]
    assert (after[0].prior_turns, after[0].seed != lost.seed) == (0, True)
    scripted(rollout, policy, 3, {})
    assert (rollout.num_faults, rollout.num_excluded_turns, rollout.excluded) == (0, 0, [])


def test_an_update_without_a_turn_is_refused(policy: VlmPolicy, workers: ProcessPool) -> None:
    everywhere = {(0, index): "!raise" for index in range(3)}
    with pytest.raises(TaskError, match="all 3 turns were lost to 3 faults"):
        scripted(Rollout(workers), policy, 3, everywhere)
