from gtr_turbo.envs.household import tables


def test_every_place_is_a_receptacle_of_some_room() -> None:
    places = {place for kinds in tables.PLACES.values() for place in kinds}
    assert places <= set(tables.RECEPTACLE_KINDS)
    assert set(tables.RECEPTACLES) == set(tables.OBJECTS) == set(tables.ROOMS)


def test_every_object_of_a_room_has_a_place_in_it() -> None:
    for room, kinds in tables.OBJECTS.items():
        for kind in kinds:
            assert set(tables.PLACES[kind]) & set(tables.RECEPTACLES[room]), (room, kind)


def test_stations_can_change_something_and_stand_in_a_kitchen() -> None:
    for task_type, station in tables.STATIONS.items():
        assert station in tables.RECEPTACLES["kitchen"]
        assert tables.CHANGEABLE[task_type] & set(tables.OBJECTS["kitchen"])


def test_inverting_says_the_same_the_other_way_round() -> None:
    assert tables.inverted({"mug": ("shelf", "desk"), "pen": ("desk",)}) == {
        "desk": frozenset({"mug", "pen"}),
        "shelf": frozenset({"mug"}),
    }
    assert "mug" in tables.CAN_CONTAIN["cabinet"]
    assert "mug" not in tables.CAN_CONTAIN["toilet"]
