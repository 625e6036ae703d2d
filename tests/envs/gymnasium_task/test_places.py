from typing import Any

import gymnasium
import pytest

from gtr_turbo.envs.gymnasium_task.places import describe_place
from tests.envs.gymnasium_task.corridor import Corridor


def placed(gym_id: str, state: int) -> Any:
    inner: Any = gymnasium.make(gym_id).unwrapped
    inner.s = state
    return inner


@pytest.mark.parametrize(
    ("gym_id", "state", "compact", "full"),
    [
        ("FrozenLake-v1", 6, "at 2,3 goal 4,4",
         "I stand in row 2, column 3; the goal is in row 4, column 4."),
        ("CliffWalking-v1", 36, "at 4,1 goal 4,12",
         "I stand in row 4, column 1; the goal is in row 4, column 12."),
        # ((row 5 + column) 5 + passenger) 4 + destination
        ("Taxi-v4", ((1 * 5 + 2) * 5 + 0) * 4 + 1, "taxi 2,3 fetch red",
         "The taxi is in row 2, column 3; the passenger waits at red and wants to go to green."),
        ("Taxi-v4", ((0 * 5 + 4) * 5 + 4) * 4 + 3, "taxi 1,5 to blue",
         "The taxi is in row 1, column 5; the passenger is in the taxi and wants to go to blue."),
    ],
)  # fmt: skip
def test_known_games(gym_id: str, state: int, compact: str, full: str) -> None:
    inner = placed(gym_id, state)
    assert describe_place(inner, compact=True) == compact
    assert describe_place(inner, compact=False) == full


def test_any_other_table_has_its_number() -> None:
    assert describe_place(Corridor(), compact=True) == "state 0"
    assert describe_place(Corridor(), compact=False) == "This is state 0."
