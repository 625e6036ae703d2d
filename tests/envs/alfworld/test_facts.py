import json
from dataclasses import replace
from pathlib import Path

import pytest

from gtr_turbo.envs.alfworld.facts import Chore, Facts, goal_rate, read_chore, view_of
from gtr_turbo.envs.household import tables
from gtr_turbo.errors import TaskError
from tests.envs.alfworld.helpers import write_chore

ROOM = [
    ("atlocation", ("agent1 ", "loc 1")),
    ("receptacleatlocation", ("fridge 1", "loc 1")),
    ("receptacleatlocation", ("desk 2", "loc 2")),
    ("receptacleatlocation", ("desk 10", "loc 3")),
    ("openable", ("fridge 1",)),
    ("inreceptacle", ("mug 1", "fridge 1")),
    ("inreceptacle", ("mug 2", "desk 2")),
    ("inreceptacle", ("desklamp 1", "desk 2")),
    ("not_opened", ("fridge 1",)),
]
CHORE = Chore(task_type=tables.COOL_AND_PLACE, thing="mug", receptacle="desk", lamp="")


def test_what_is_behind_a_closed_door_is_not_seen() -> None:
    view = view_of(Facts(ROOM), "a goal")
    assert view.goal == "a goal"
    assert view.room == (("desk 2", "desk"), ("desk 10", "desk"), ("fridge 1", "fridge"))
    assert [(place.name, place.is_open, place.contents) for place in view.here] == [
        ("fridge 1", False, None)
    ]
    assert view.hand is None


def test_what_is_behind_an_open_door_is_seen_with_its_states() -> None:
    view = view_of(Facts([*ROOM, ("opened", ("fridge 1",)), ("iscool", ("mug 1",))]), "")
    (fridge,) = view.here
    assert fridge.is_open
    assert fridge.contents is not None
    assert [(x.name, x.kind, x.is_cool, x.is_hot) for x in fridge.contents] == [
        ("mug 1", "mug", True, False)
    ]


def test_a_held_thing_is_in_the_hand() -> None:
    view = view_of(Facts([*ROOM, ("holds", ("agent1 ", "mug 3"))]), "")
    assert view.hand is not None
    assert view.hand.name == "mug 3"


@pytest.mark.parametrize(
    ("chore", "more", "rate"),
    [
        # A warm mug is on a desk, so one of three conditions holds from the start.
        (CHORE, [], 1 / 3),
        (CHORE, [("iscool", ("mug 1",))], 2 / 3),
        (CHORE, [("iscool", ("mug 2",))], 1.0),
        (replace(CHORE, task_type=tables.HEAT_AND_PLACE), [("iscool", ("mug 2",))], 1 / 3),
        (replace(CHORE, task_type=tables.CLEAN_AND_PLACE), [("isclean", ("mug 2",))], 1.0),
        (replace(CHORE, task_type=tables.PICK_AND_PLACE, receptacle="shelf"), [], 0.0),
        (replace(CHORE, task_type=tables.PICK_AND_PLACE), [], 1.0),
        (replace(CHORE, task_type=tables.PICK_TWO), [], 0.5),
        # Two things on two desks are not two things on one.
        (
            replace(CHORE, task_type=tables.PICK_TWO),
            [("inreceptacle", ("mug 3", "desk 10"))],
            0.5,
        ),
        (replace(CHORE, task_type=tables.PICK_TWO), [("inreceptacle", ("mug 3", "desk 2"))], 1.0),
    ],
)
def test_the_goals_conditions_are_counted(
    chore: Chore, more: list[tuple[str, tuple[str, ...]]], rate: float
) -> None:
    assert goal_rate(Facts([*ROOM, *more]), chore) == pytest.approx(rate)


@pytest.mark.parametrize(("place", "rate"), [("loc 2", 1.0), ("loc 1", 0.5)])
def test_a_lamp_counts_where_it_shines(place: str, rate: float) -> None:
    chore = Chore(task_type=tables.LOOK_IN_LIGHT, thing="mug", receptacle="", lamp="desklamp")
    facts = [
        ("atlocation", ("agent1 ", place)),
        ("holds", ("agent1 ", "mug 1")),
        ("istoggled", ("desklamp 1",)),
        *ROOM[1:],
    ]
    assert goal_rate(Facts(facts), chore) == rate


def test_a_chore_is_read_from_its_file(tmp_path: Path) -> None:
    chore = read_chore(write_chore(tmp_path))
    assert (chore.thing, chore.receptacle, chore.lamp) == ("mug", "shelf", "")
    assert chore.in_words == "put a mug in shelf"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"task_type": "x"}', "pddl_params"),
        (
            json.dumps(
                {
                    "task_type": "dance",
                    "pddl_params": dict.fromkeys(
                        ("object_target", "parent_target", "toggle_target"), ""
                    ),
                }
            ),
            "dance",
        ),
    ],
)
def test_a_bad_chore_is_named(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "traj_data.json").write_text(text)
    with pytest.raises(TaskError, match=what):
        read_chore(tmp_path)
