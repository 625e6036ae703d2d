"""What every pool keeps to, wherever its environments live."""

import json
from collections.abc import Iterator
from typing import final

import pytest

from gtr_turbo.envs.pool.base import AbstractPool
from gtr_turbo.envs.registry import make_task
from gtr_turbo.errors import TaskError
from tests.envs.pool.pools import GAME, RULES, SEEDS, open_pool, play, reply, results


@final
class Opened:
    """A pool of one kind, and where it stood at its start."""

    def __init__(self, kind: str, pool: AbstractPool) -> None:
        self.kind, self.pool = kind, pool
        self.start = json.loads(json.dumps(pool.state()))


@pytest.fixture(scope="module", params=["in_process", "process"])
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    with open_pool(request.param) as pool:
        yield Opened(request.param, pool)


@pytest.fixture
def pool(opened: Opened) -> AbstractPool:
    opened.pool.restore(opened.start)
    return opened.pool


def test_each_environment_is_the_task_of_its_seed(pool: AbstractPool) -> None:
    """Ten rounds are what three tasks do that are played by hand, an episode after the other."""
    tasks = [make_task(GAME, RULES, seed) for seed in SEEDS]
    for task in tasks:
        task.reset()
    assert list(pool.task_ids) == [task.task_id for task in tasks]
    ends = 0
    for number in range(10):
        for now, task in zip(pool.shown, tasks, strict=True):
            assert now.seed == task.episode_seed
            assert now.observation.state_key == task.observation.state_key
            assert (now.observation.picture == task.observation.picture).all()
        replies = [reply(number + index) for index in range(len(tasks))]
        for result, task, text in zip(results(pool.step(replies)), tasks, replies, strict=True):
            expected = task.step(text)
            assert result.parsed == expected.parsed
            assert dict(result.rewards) == dict(expected.rewards)
            assert result.observation.state_key == expected.observation.state_key
            assert (result.observation.picture == expected.observation.picture).all()
            if expected.terminated or expected.truncated:
                ends += 1
                task.reset()
    assert ends > len(tasks)
    assert pool.num_faults == 0


def test_a_snapshot_is_json_and_goes_on_bit_equally_in_a_pool_of_either_kind(
    opened: Opened, pool: AbstractPool
) -> None:
    play(pool, 4)
    saved = json.loads(json.dumps(pool.state()))
    expected = play(pool, 6)
    other_kind = "process" if opened.kind == "in_process" else "in_process"
    with open_pool(other_kind, workers=1) as other:
        other.restore(saved)
        assert play(other, 6) == expected
    pool.restore(saved)
    assert play(pool, 6) == expected


@pytest.mark.parametrize("kind", ["in_process", "process"])
def test_a_snapshot_of_another_task_is_refused_and_closing_twice_is_closing_once(kind: str) -> None:
    with open_pool(kind, seeds=(1,)) as pool:
        saved = [{**state, "task_id": "chess-v0"} for state in pool.state()]
        with pytest.raises(TaskError, match="'chess-v0' can't be restored"):
            pool.restore(saved)
        pool.close()


def test_pictures_can_be_handed_to_torch(pool: AbstractPool) -> None:
    for now in pool.shown:
        assert now.observation.picture.flags.c_contiguous
        assert now.observation.picture.dtype.name == "uint8"
