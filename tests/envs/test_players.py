import pytest

from gtr_turbo.envs import make_task, players
from gtr_turbo.envs.base import AbstractTask
from gtr_turbo.envs.players import (
    AbstractPlayer,
    ExpertPlayer,
    MistakenPlayer,
    RandomPlayer,
    measure,
    play_episode,
)
from gtr_turbo.errors import ConfigError, TaskError
from tests.conformance.broken import Broken, CannotDemonstrate

TINY = {"picture": "compact", "prompt": "compact"}


def ezpoints(seed: int) -> AbstractTask:
    return make_task("ezpoints", TINY, seed)


def test_the_expert_wins_what_can_be_won() -> None:
    found = measure(ezpoints, ExpertPlayer(0), 5, seed=10)
    assert found.success_rate == 1.0
    assert found.mean_return == 10.0
    assert found.mean_turns == 4.0  # card, operator, card, equals sign
    assert [episode.seed for episode in found.episodes] == [10, 11, 12, 13, 14]
    assert found.total == found.by_kind["ezpoints-v0"]
    assert (found.total.num_episodes, found.total.num_solvable) == (5, 5)


def test_mistakes_lose() -> None:
    found = measure(ezpoints, MistakenPlayer(0), 5, seed=10)
    assert (found.success_rate, found.mean_return) == (0.0, -1.0)


def test_hopeless_episodes_are_counted_apart() -> None:
    def points24(seed: int) -> AbstractTask:
        return make_task("points24", TINY | {"ranks": [1]}, seed)

    found = measure(points24, ExpertPlayer(0), 2, seed=0)
    assert (found.total.num_solvable, found.total.num_successes) == (0, 0)


def test_chance_takes_admissible_actions_alone_and_follows_its_seed() -> None:
    first = measure(ezpoints, RandomPlayer(3), 6, seed=0)
    assert first == measure(ezpoints, RandomPlayer(3), 6, seed=0)
    assert first != measure(ezpoints, RandomPlayer(4), 6, seed=0)
    assert sum(episode.num_illegal for episode in first.episodes) == 0
    assert first.success_rate < 1.0


def test_every_admissible_action_is_taken_about_equally_often() -> None:
    task = ezpoints(0)
    task.reset(0)
    player = RandomPlayer(0)
    taken = [player.reply(task) for _ in range(600)]
    expected = 600 / len(task.admissible_actions)
    for action in task.admissible_actions:
        assert 0.7 * expected < taken.count(task.write_action(action)) < 1.3 * expected


def test_nothing_admissible_is_an_empty_reply() -> None:
    class NothingGoes(Broken):
        @property
        def admissible_actions(self) -> tuple[str, ...]:
            return ()

    found = play_episode(NothingGoes(0), RandomPlayer(0), 0)
    assert (found.num_illegal, found.success) == (found.num_turns, False)


@pytest.mark.parametrize("player", [ExpertPlayer(0), MistakenPlayer(0)])
def test_a_script_is_only_as_long_as_its_episode(player: AbstractPlayer) -> None:
    task = ezpoints(0)
    task.reset(0)
    before = task.state()
    player.begin(task)
    assert task.state() == before
    while True:
        result = task.step(player.reply(task))
        if result.terminated:
            break
    task.reset(1)
    with pytest.raises(TaskError, match="is over, but its episode is not"):
        player.reply(task)


def test_without_an_expert_there_is_no_script() -> None:
    with pytest.raises(TaskError, match="has no expert"):
        play_episode(CannotDemonstrate(0), ExpertPlayer(0), 0)


def test_an_endless_episode_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(players, "MAX_TURNS", 20)

    def endless(seed: int) -> AbstractTask:
        return make_task("ezpoints", TINY | {"max_steps": 10**6}, seed)

    class WritesNothing(AbstractPlayer):
        def begin(self, task: AbstractTask) -> None:
            pass

        def reply(self, task: AbstractTask) -> str:
            return ""

    with pytest.raises(TaskError, match="has not ended after 20 turns"):
        play_episode(endless(0), WritesNothing(), 0)


def test_at_least_one_episode() -> None:
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        measure(ezpoints, RandomPlayer(0), 0, seed=0)
