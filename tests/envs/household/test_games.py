from typing import Any

import pytest

from gtr_turbo.envs.episodes import make_generator
from gtr_turbo.envs.household import tables
from gtr_turbo.envs.household.engine import Household
from gtr_turbo.envs.household.games import Dealer, Game, make_game, make_item
from gtr_turbo.envs.household.rules import HouseholdRules
from gtr_turbo.envs.household.scenes import make_scene
from gtr_turbo.errors import ConfigError


def dealt(num_games: int, **rules: Any) -> list[Game]:
    dealer = Dealer(HouseholdRules(**rules))
    return [dealer.deal(make_generator(seed)) for seed in range(num_games)]


def test_a_game_follows_from_its_seed() -> None:
    assert dealt(5) == dealt(5)
    assert len({game.name for game in dealt(20)}) > 10


def test_every_sort_is_dealt_about_equally() -> None:
    sorts = [game.goal.task_type for game in dealt(120)]
    assert all(8 < sorts.count(task_type) < 35 for task_type in tables.TASK_TYPES)


def test_things_lie_where_they_fit_and_never_where_the_goal_wants_them() -> None:
    for game in dealt(60):
        house = Household(game)
        met, total = house.goal_progress(house.start)
        assert met == 0 < total
        for index, item in enumerate(game.items):
            place = house.start.places[index]
            assert item.kind in tables.TOGGLEABLE or house.fits(place, index)


def test_names_are_kinds_with_numbers_from_one() -> None:
    for game in dealt(30):
        for things in (game.receptacles, game.items):
            for kind in {thing.kind for thing in things}:
                names = {thing.name for thing in things if thing.kind == kind}
                assert names == {f"{kind} {number}" for number in range(1, len(names) + 1)}


def test_small_games_keep_what_the_goal_needs() -> None:
    for game in dealt(60, max_receptacles=3, num_objects=2):
        assert len(game.receptacles) == 3
        kinds = [receptacle.kind for receptacle in game.receptacles]
        goal = game.goal
        assert sum(item.kind != tables.LAMP for item in game.items) <= 2
        wanted = sum(item.kind == goal.object_kind for item in game.items)
        assert wanted >= (2 if goal.task_type == tables.PICK_TWO else 1)
        assert goal.receptacle_kind in [*kinds, None]
        assert tables.STATIONS.get(goal.task_type) in [*kinds, None]


def test_kinds_and_rooms_can_be_chosen() -> None:
    chosen = {"object_kinds": ("mug", "apple"), "receptacle_kinds": ("cabinet", "fridge")}
    for game in dealt(20, task_types=(tables.PICK_AND_PLACE,), rooms=("kitchen",), **chosen):
        assert game.name.startswith("kitchen")
        assert {item.kind for item in game.items} <= {"mug", "apple"}
        assert {receptacle.kind for receptacle in game.receptacles} <= {"cabinet", "fridge"}


def test_splits_have_other_games_in_the_same_rooms() -> None:
    seen, train = dealt(40, split="valid_seen"), dealt(40)
    assert not any(game in train for game in seen)
    unseen = {game.name for game in dealt(40, split="valid_unseen")}
    assert {int(name.split()[-1]) % 100 for name in unseen} <= {26, 27, 28, 29, 30}
    assert all(int(game.name.split()[-1]) % 100 <= 25 for game in (*seen, *train))


def test_a_sort_without_any_game_is_refused() -> None:
    with pytest.raises(ConfigError, match="heat"):
        dealt(1, task_types=(tables.HEAT_AND_PLACE,), rooms=("bathroom",))
    with pytest.raises(ConfigError, match="light"):
        dealt(1, rooms=("kitchen",))


def test_a_games_number_decides_it() -> None:
    rules, scene = HouseholdRules(), make_scene("kitchen", 0)
    first = make_game(rules, tables.COOL_AND_PLACE, scene, 7)
    assert first == make_game(rules, tables.COOL_AND_PLACE, scene, 7)
    assert first != make_game(rules, tables.COOL_AND_PLACE, scene, 8)


def test_an_item_allows_what_its_kind_allows() -> None:
    apple, lamp = make_item("apple 1", "apple", "x"), make_item("desklamp 1", "desklamp", "x")
    powers = (apple.is_heatable, apple.is_coolable, apple.is_cleanable, apple.is_sliceable)
    assert powers == (True,) * 4
    assert (apple.is_pickupable, apple.is_toggleable) == (True, False)
    assert (lamp.is_pickupable, lamp.is_toggleable, lamp.is_heatable) == (False, True, False)
