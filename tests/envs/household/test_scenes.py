from gtr_turbo.envs.household.scenes import make_scene, scenes_of
from gtr_turbo.envs.household.tables import RECEPTACLES, ROOMS


def test_there_are_120_scenes_with_numbers_of_their_own() -> None:
    scenes = [make_scene(room, index) for room in ROOMS for index in range(30)]
    assert len({scene.number for scene in scenes}) == 120
    assert [scenes[i].number for i in (0, 29, 30, 60, 119)] == [1, 30, 201, 301, 430]


def test_a_scene_keeps_within_its_rooms_table() -> None:
    for room in ROOMS:
        for index in range(30):
            scene = make_scene(room, index)
            for kind, count in scene.receptacles:
                fewest, most = RECEPTACLES[room][kind]
                assert max(fewest, 1) <= count <= most


def test_a_scene_follows_from_its_number() -> None:
    made = make_scene.__wrapped__("kitchen", 3)
    assert made == make_scene("kitchen", 3)
    assert made.receptacles != make_scene("kitchen", 4).receptacles


def test_held_out_scenes_are_no_training_scenes() -> None:
    for room in ROOMS:
        train = scenes_of("train", room, 30)
        unseen = scenes_of("valid_unseen", room, 30)
        assert (len(train), len(unseen)) == (25, 5)
        assert not {scene.number for scene in train} & {scene.number for scene in unseen}
        assert scenes_of("valid_seen", room, 30) == train
        assert scenes_of("train", room, 2) == train[:2]


def test_a_restricted_scene_has_no_other_receptacles() -> None:
    scene = make_scene("bedroom", 0)
    assert scene.has_lamp
    bare = scene.restricted(("bed", "drawer"))
    assert {kind for kind, _ in bare.receptacles} == {"bed", "drawer"}
    assert not bare.has_lamp
    assert not make_scene("kitchen", 0).has_lamp
