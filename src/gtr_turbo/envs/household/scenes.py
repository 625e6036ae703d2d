"""The 120 rooms, thirty of each kind, each made from its number alone.

Numbers are 1 to 30 for kitchens, 201 to 230 for living rooms, 301 to 330 for bedrooms and 401 to
430 for bathrooms. The last five of each kind are held out from training (`valid_unseen`).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, final

from gtr_turbo.envs.episodes import make_generator
from gtr_turbo.envs.household.tables import LAMP_PLACES, OBJECTS, RECEPTACLES, ROOMS

NUM_SCENES_PER_ROOM: Final = 30
NUM_UNSEEN_PER_ROOM: Final = 5

_FIRST_NUMBERS: Final[dict[str, int]] = dict(zip(ROOMS, (1, 201, 301, 401), strict=True))
_SCENE_SALT: Final = 7_340_321
"""Keeps the generators of scenes apart from those of episodes."""
_OBJECT_SHARE: Final = 0.8
"""How probable it is that a kind of object belongs to a scene of its room."""
_LAMP_ROOMS: Final = ("living room", "bedroom")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A room without the things that lie about in it."""

    number: int
    room: str
    receptacles: tuple[tuple[str, int], ...]
    """(kind, how many), in the order of the tables; no count is 0."""
    object_kinds: tuple[str, ...]
    """Kinds of objects that games in this scene may have."""

    @property
    def has_lamp(self) -> bool:
        """Whether a lamp stands in every game of this scene."""
        return self.room in _LAMP_ROOMS and any(kind in LAMP_PLACES for kind, _ in self.receptacles)

    def restricted(self, kinds: Collection[str]) -> "Scene":
        """Return the scene with receptacles of these kinds only."""
        kept = tuple((kind, count) for kind, count in self.receptacles if kind in kinds)
        return replace(self, receptacles=kept)


@lru_cache(maxsize=256)
def make_scene(room: str, index: int) -> Scene:
    """Return one of the thirty scenes of a room, counted from 0."""
    number = _FIRST_NUMBERS[room] + index
    generator = make_generator(_SCENE_SALT + number)
    counts = [
        (kind, int(generator.integers(fewest, most + 1)))
        for kind, (fewest, most) in RECEPTACLES[room].items()
    ]
    receptacles = tuple((kind, count) for kind, count in counts if count > 0)
    chosen = generator.random(len(OBJECTS[room])) < _OBJECT_SHARE
    kinds = tuple(kind for kind, is_in in zip(OBJECTS[room], chosen, strict=True) if is_in)
    return Scene(number=number, room=room, receptacles=receptacles, object_kinds=kinds)


def scenes_of(split: str, room: str, num_scenes: int) -> tuple[Scene, ...]:
    """Return the scenes of a room in a split, at most `num_scenes` of them."""
    num_seen = NUM_SCENES_PER_ROOM - NUM_UNSEEN_PER_ROOM
    is_unseen = split == "valid_unseen"
    indices = range(num_seen, NUM_SCENES_PER_ROOM) if is_unseen else range(num_seen)
    return tuple(make_scene(room, index) for index in indices[:num_scenes])
