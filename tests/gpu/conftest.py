"""The tiny world, for the tests of this folder."""

from tests.world import world as world
