import sys

import numpy as np
import pytest

from gtr_turbo.envs.gymnasium_task.making import find_spec, open_env, picture_of, quiet
from gtr_turbo.envs.gymnasium_task.rules import GymnasiumRules
from gtr_turbo.errors import ConfigError, TaskError, UnknownNameError
from tests.envs.gymnasium_task.corridor import HOME, Corridor


def test_an_unknown_id_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match='no environment "FrozenLaek-v1"'):
        find_spec("FrozenLaek-v1")
    with pytest.raises(UnknownNameError) as caught:
        find_spec("Taxi-v99")
    assert "Taxi-v4" in str(caught.value.hint)
    with pytest.raises(UnknownNameError, match="Taxi-v3"):
        find_spec("Taxi-v3")  # a former version, which Gymnasium refuses


def test_a_missing_module_is_named() -> None:
    with pytest.raises(ConfigError, match="No module named 'no_such_module'"):
        find_spec("no_such_module:Id-v0")


@pytest.mark.parametrize(
    ("variant", "wanted", "source"),
    [
        ("", "auto", "rgb_array"),
        ("", "ansi", "ansi"),
        ("Pixels", "auto", "observation"),
        ("Pixels", "rgb_array", "rgb_array"),
    ],
)
def test_where_the_picture_comes_from(variant: str, wanted: str, source: str) -> None:
    rules = GymnasiumRules.model_validate({"picture": wanted})
    env, found = open_env(f"{HOME}:Corridor{variant}-v0", rules)
    assert found == source
    observation, _ = env.reset(seed=0)
    picture = picture_of(env, observation, found, None)
    assert picture.dtype == np.uint8
    assert picture.shape == ((22, 70, 3) if source == "ansi" else (20, 100, 3))
    assert picture_of(env, observation, found, (28, 56)).shape == (28, 56, 3)


def test_a_picture_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match='no picture of the kind "observation"') as caught:
        open_env(f"{HOME}:Corridor-v0", GymnasiumRules(picture="observation"))
    assert caught.value.hint == "rule `picture` can be: rgb_array, ansi."
    with pytest.raises(ConfigError, match='no picture of the kind "ansi"'):
        open_env("Blackjack-v1", GymnasiumRules(picture="ansi"))


def test_actions_that_cannot_be_written() -> None:
    with pytest.raises(ConfigError, match=r"has the action space Box"):
        open_env(f"{HOME}:CorridorBox-v0", GymnasiumRules())


def test_arguments_that_the_environment_refuses() -> None:
    with pytest.raises(ConfigError, match=r"can't be made with `kwargs` \['wide=3'\]"):
        open_env(f"{HOME}:Corridor-v0", GymnasiumRules(kwargs=("wide=3",)))


def test_what_is_no_picture_is_a_fault_of_the_environment() -> None:
    class Grey(Corridor):
        def render(self) -> np.ndarray:
            return np.zeros((4, 4))

    with pytest.raises(TaskError, match=r"drew float64 of the shape \(4, 4\)"):
        picture_of(Grey(), 0, "rgb_array", None)


def test_noise_is_kept_away(capsys: pytest.CaptureFixture[str]) -> None:
    with quiet():
        sys.stdout.write("noise")
    assert capsys.readouterr().out == ""
