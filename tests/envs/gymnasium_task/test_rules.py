import pytest

from gtr_turbo.envs.gymnasium_task.rules import GymnasiumRules, check_num_names, default_rules_of
from gtr_turbo.envs.rules import read_rules
from gtr_turbo.errors import ConfigError


@pytest.mark.parametrize(
    ("gym_id", "first_names"),
    [
        ("FrozenLake-v1", ("left", "down")),
        ("FrozenLake8x8-v1", ("left", "down")),
        ("CliffWalking-v1", ("up", "right")),
        ("Taxi-v4", ("south", "north")),
        ("minigrid:BabyAI-GoToLocal-v0", ("left", "right")),
        ("CartPole-v1", ()),
    ],
)
def test_known_ids_have_words(gym_id: str, first_names: tuple[str, ...]) -> None:
    assert default_rules_of(gym_id).action_names[:2] == first_names


def test_values_are_json() -> None:
    rules = GymnasiumRules(kwargs=('map_name="8x8"', "is_slippery=false", "a=[1, 2]"))
    assert rules.env_arguments == {"map_name": "8x8", "is_slippery": False, "a": [1, 2]}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"kwargs": ["is_slippery=False"]}, "must be JSON"),
        ({"kwargs": ["map_name=8x8"]}, "must be JSON"),
        ({"kwargs": ["slippery"]}, "`name=value`"),
        ({"kwargs": ['render_mode="human"']}, "of the environment's own"),
        ({"kwargs": ["a=" + "[" * 100_000]}, "must be JSON"),
        ({"action_names": ["a", "A"]}, "different words"),
        ({"action_names": ["a", " "]}, "different words"),
        ({"max_steps": 0}, "max_steps"),
        ({"picture_size": [0, 4]}, "picture_size"),
    ],
)
def test_what_makes_no_sense_is_refused(rules: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_rules(GymnasiumRules(), rules)


def test_a_name_for_each_action() -> None:
    check_num_names(("a", "b"), 2)
    with pytest.raises(ConfigError, match="holds 2 names, but there are 3 actions"):
        check_num_names(("a", "b"), 3)
