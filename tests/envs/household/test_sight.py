from gtr_turbo.envs.household.sight import see, tell
from gtr_turbo.envs.household.view import SeenObject
from tests.envs.household.houses import KITCHEN, kitchen, play


def test_from_the_middle_only_the_receptacles_are_seen() -> None:
    house = kitchen()
    view = see(house, house.start, "a goal")
    assert (view.goal, view.here, view.hand) == ("a goal", (), None)
    assert view.room == tuple((name, name.split()[0]) for name in KITCHEN)
    assert tell(view).endswith("fridge 1, microwave 1, sinkbasin 1. Your hand is empty.")


def test_contents_are_seen_once_it_is_open() -> None:
    house = kitchen()
    (closed,) = see(house, play(house, "go to cabinet 1"), "").here
    assert (closed.is_open, closed.contents) == (False, None)
    (opened,) = see(house, play(house, "go to cabinet 1", "open cabinet 1"), "").here
    assert (opened.is_open, opened.contents) == (True, (SeenObject(name="mug 1", kind="mug"),))
    (top,) = see(house, play(house, "go to countertop 1"), "").here
    assert top.is_open is None
    assert [seen.name for seen in top.contents or ()] == ["mug 2", "knife 1", "desklamp 1"]


def test_conditions_are_seen_and_told() -> None:
    house = kitchen()
    take = ("go to countertop 1", "use desklamp 1", "take mug 2 from countertop 1")
    state = play(house, *take, "go to microwave 1", "heat mug 2 with microwave 1")
    state = play(house, "go to sinkbasin 1", "clean mug 2 with sinkbasin 1", state=state)
    view = see(house, state, "")
    assert view.hand == SeenObject(name="mug 2", kind="mug", is_hot=True, is_clean=True)
    assert tell(view) == "You are at sinkbasin 1, which holds nothing. You hold mug 2 (hot, clean)."
    told = tell(see(house, play(house, "go to countertop 1", state=state), ""))
    assert "desklamp 1 (switched on)" in told
