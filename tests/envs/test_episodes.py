import json
from dataclasses import asdict, dataclass
from typing import final

import pytest

from gtr_turbo.core.turns import JsonState
from gtr_turbo.envs.episodes import EpisodeKeeper, EpisodeRecord, make_generator
from gtr_turbo.errors import ConfigError, TaskError


@final
@dataclass(frozen=True)
class Walk:
    seed: int
    place: int = 0
    ended: bool = False


def read(state: JsonState) -> Walk:
    return Walk(int(state["seed"]), int(state["place"]), bool(state["ended"]))


def keeper_of(seed: int, task_id: str = "walk-v0") -> EpisodeKeeper[Walk]:
    return EpisodeKeeper(task_id, seed, asdict, read)


def begun(keeper: EpisodeKeeper[Walk], seed: int | None = None) -> Walk:
    """Begin an episode whose place is the first thing that its chance draws."""
    seed = keeper.draw_seed(seed)
    chance = make_generator(seed)
    keeper.begin(Walk(seed, int(chance.integers(1_000_000))), chance)
    return keeper.current


def test_the_record_is_what_it_asks_for() -> None:
    assert isinstance(Walk(0), EpisodeRecord)
    assert not isinstance("walk", EpisodeRecord)


def test_there_is_no_episode_before_the_first() -> None:
    keeper = keeper_of(0)
    for look in (lambda: keeper.current, lambda: keeper.running):
        with pytest.raises(TaskError, match="walk-v0 has no episode yet") as caught:
            look()
        assert caught.value.hint == "call `reset()` first."


def test_an_ended_episode_is_current_but_not_running() -> None:
    keeper = keeper_of(0)
    walk = begun(keeper)
    assert keeper.running == keeper.current == walk
    keeper.move_to(Walk(walk.seed, 3, ended=True))
    assert keeper.current.place == 3
    with pytest.raises(TaskError, match="the episode of walk-v0 is over"):
        _ = keeper.running


def test_a_task_seed_gives_a_sequence_of_episodes() -> None:
    first, second, other = keeper_of(7), keeper_of(7), keeper_of(8)
    walks = [begun(first) for _ in range(20)]
    assert walks == [begun(second) for _ in range(20)]
    assert walks != [begun(other) for _ in range(20)]
    assert len({walk.seed for walk in walks}) == 20
    assert all(0 <= walk.seed < 2**53 for walk in walks)


def test_a_given_seed_decides_alone_and_leaves_the_sequence() -> None:
    first, second, third = keeper_of(7), keeper_of(8), keeper_of(7)
    assert begun(first, 42) == begun(second, 42)
    assert first.chance.bit_generator.state == second.chance.bit_generator.state
    assert begun(first) == begun(third)


def test_draw_seed_gives_back_what_it_is_given() -> None:
    keeper = keeper_of(0)
    assert [keeper.draw_seed(seed) for seed in (0, 5, 2**60)] == [0, 5, 2**60]


def test_negative_seeds_are_refused() -> None:
    keeper = keeper_of(0)
    for use in (
        lambda: keeper_of(-1),
        lambda: keeper.draw_seed(-2),
        lambda: make_generator(-3),
    ):
        with pytest.raises(ConfigError, match=r"must not be negative, got -\d\."):
            use()


def test_a_generator_follows_from_its_seed() -> None:
    draws = [make_generator(seed).integers(2**40, size=8).tolist() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("num_before", [0, 1, 3])
def test_a_snapshot_goes_on_bit_equally(num_before: int) -> None:
    keeper = keeper_of(3)
    for _ in range(num_before):
        begun(keeper)
    keeper.chance.integers(10, size=5)
    saved = json.dumps(keeper.state())
    other = keeper_of(99)
    begun(other)
    other.restore(json.loads(saved))
    assert json.dumps(other.state()) == saved
    assert other.chance.integers(2**40) == keeper.chance.integers(2**40)
    assert begun(other) == begun(keeper)


def test_a_snapshot_does_not_change_with_the_keeper() -> None:
    keeper = keeper_of(3)
    begun(keeper)
    saved = keeper.state()
    text = json.dumps(saved)
    keeper.chance.integers(10, size=5)
    begun(keeper)
    assert json.dumps(saved) == text


def test_another_tasks_snapshot_is_refused() -> None:
    state = keeper_of(0, "run-v0").state()
    with pytest.raises(TaskError, match="'run-v0' can't be restored into 'walk-v0'") as caught:
        keeper_of(0).restore(state)
    assert caught.value.hint == "restore it into a task of the same name and rules."


def damaged_states() -> list[JsonState]:
    keeper = keeper_of(0)
    begun(keeper)
    good = keeper.state()
    return [
        {"task_id": "walk-v0"},
        good | {"seeds": "none"},
        good | {"chance": {"bit_generator": "MT19937", "state": {}}},
        good | {"episode": {"seed": 1}},
        good | {"episode": {"seed": "x", "place": 1, "ended": False}},
        good | {"episode": [1, 2]},
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_damaged_snapshot_is_refused_and_changes_nothing(number: int) -> None:
    keeper = keeper_of(5)
    begun(keeper)
    before = json.dumps(keeper.state())
    with pytest.raises(TaskError, match="a snapshot of 'walk-v0' is damaged"):
        keeper.restore(damaged_states()[number])
    assert json.dumps(keeper.state()) == before


def test_chance_chooses_only_where_a_reply_held_nothing_and_the_rules_ask_for_it() -> None:
    keeper, words = keeper_of(0), ("left", "right", "up")
    begun(keeper, 5)
    before = keeper.state()["chance"]
    assert keeper.choose("left", words, "random_action") == ("left", False)
    assert keeper.choose(None, words, "illegal") == (None, False)
    assert keeper.choose(None, (), "random_action") == (None, False)
    assert keeper.state()["chance"] == before
    drawn = [keeper.choose(None, words, "random_action") for _ in range(50)]
    assert {word for word, _ in drawn} == set(words)
    assert all(is_random for _, is_random in drawn)
