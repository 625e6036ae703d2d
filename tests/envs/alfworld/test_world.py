import inspect

from gtr_turbo.envs.alfworld.text import TextWorld
from gtr_turbo.envs.alfworld.thor import ThorWorld
from gtr_turbo.envs.alfworld.world import AbstractWorld, Scene


def test_both_worlds_are_whole() -> None:
    for world in (TextWorld, ThorWorld):
        assert issubclass(world, AbstractWorld)
        assert not inspect.isabstract(world)


def test_a_scene_needs_neither_a_view_nor_a_frame() -> None:
    scene = Scene(text="", commands=(), won=False, goal_rate=0.0)
    assert (scene.view, scene.frame) == (None, None)
