"""What there is in a house: kinds of rooms, receptacles and objects, and what can be done to them.

These are our own tables. The kinds and the powers of things (what can be heated, cleaned, sliced)
follow ALFWorld's vocabulary; how many there are of each, and where things lie, is our choice.
"""

from collections.abc import Iterable, Mapping
from typing import Final


def _words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


PICK_AND_PLACE: Final = "pick_and_place_simple"
LOOK_IN_LIGHT: Final = "look_at_obj_in_light"
CLEAN_AND_PLACE: Final = "pick_clean_then_place_in_recep"
HEAT_AND_PLACE: Final = "pick_heat_then_place_in_recep"
COOL_AND_PLACE: Final = "pick_cool_then_place_in_recep"
PICK_TWO: Final = "pick_two_obj_and_place"

TASK_TYPES: Final = (
    PICK_AND_PLACE,
    LOOK_IN_LIGHT,
    CLEAN_AND_PLACE,
    HEAT_AND_PLACE,
    COOL_AND_PLACE,
    PICK_TWO,
)
"""The six sorts of goals, named as in ALFRED."""

ROOMS: Final = ("kitchen", "living room", "bedroom", "bathroom")

STATIONS: Final = {
    CLEAN_AND_PLACE: "sinkbasin",
    HEAT_AND_PLACE: "microwave",
    COOL_AND_PLACE: "fridge",
}
"""Task type → the kind of receptacle at which its change is made. A bathtub cleans nothing."""

LAMP: Final = "desklamp"
"""The lamp that our games have; games described from outside may name another kind."""
LAMP_PLACES: Final = ("desk", "sidetable", "dresser", "shelf", "coffeetable")
"""Where a lamp stands, the likeliest first."""
KNIVES: Final = frozenset({"knife", "butterknife"})

OPENABLE: Final = frozenset(
    {"cabinet", "drawer", "fridge", "microwave", "safe", "laundryhamper"},
)
"""Receptacles with a door or a lid; each is closed at the start."""

HEATABLE: Final = frozenset(_words("apple bread cup egg mug plate potato tomato"))
COOLABLE: Final = frozenset(
    _words("apple bowl bread cup egg lettuce mug pan plate pot potato tomato winebottle")
)
CLEANABLE: Final = frozenset(
    _words(
        "apple bowl butterknife cloth cup dishsponge egg fork kettle knife ladle lettuce mug pan "
        "plate pot potato soapbar spatula spoon tomato"
    )
)
SLICEABLE: Final = frozenset(_words("apple bread lettuce potato tomato"))
TOGGLEABLE: Final = frozenset({"desklamp", "floorlamp"})

CHANGEABLE: Final = {
    CLEAN_AND_PLACE: CLEANABLE,
    HEAT_AND_PLACE: HEATABLE,
    COOL_AND_PLACE: COOLABLE,
}
"""Task type → kinds of objects that its change can be made to."""

RECEPTACLES: Final[Mapping[str, Mapping[str, tuple[int, int]]]] = {
    "kitchen": {
        "countertop": (1, 3),
        "cabinet": (4, 9),
        "drawer": (2, 6),
        "fridge": (1, 1),
        "microwave": (1, 1),
        "sinkbasin": (1, 1),
        "stoveburner": (2, 4),
        "coffeemachine": (1, 1),
        "toaster": (1, 1),
        "garbagecan": (1, 1),
        "diningtable": (0, 2),
        "sidetable": (0, 1),
        "shelf": (0, 3),
    },
    "living room": {
        "sofa": (1, 2),
        "armchair": (0, 2),
        "coffeetable": (1, 2),
        "sidetable": (1, 3),
        "tvstand": (0, 1),
        "shelf": (0, 4),
        "drawer": (1, 5),
        "desk": (0, 1),
        "dresser": (0, 1),
        "cabinet": (0, 3),
        "diningtable": (0, 1),
        "ottoman": (0, 1),
        "safe": (0, 1),
        "garbagecan": (1, 1),
    },
    "bedroom": {
        "bed": (1, 1),
        "desk": (1, 2),
        "drawer": (2, 6),
        "sidetable": (1, 2),
        "dresser": (0, 1),
        "shelf": (0, 4),
        "armchair": (0, 1),
        "safe": (0, 1),
        "laundryhamper": (0, 1),
        "garbagecan": (1, 1),
    },
    "bathroom": {
        "toilet": (1, 1),
        "sinkbasin": (1, 2),
        "bathtubbasin": (0, 1),
        "countertop": (1, 1),
        "cabinet": (2, 4),
        "drawer": (0, 4),
        "shelf": (0, 2),
        "towelholder": (1, 1),
        "handtowelholder": (1, 2),
        "toiletpaperhanger": (1, 1),
        "sidetable": (0, 1),
        "laundryhamper": (0, 1),
        "garbagecan": (1, 1),
    },
}
"""Room → kind of receptacle → fewest and most in one room."""

RECEPTACLE_KINDS: Final = tuple(dict.fromkeys(kind for room in ROOMS for kind in RECEPTACLES[room]))
"""Every kind of receptacle, in a fixed order."""

_KITCHEN_PLACES: Mapping[str, str] = {
    "apple": "countertop diningtable fridge sinkbasin sidetable garbagecan microwave",
    "bowl": "cabinet countertop diningtable shelf fridge sinkbasin microwave sidetable",
    "bread": "countertop diningtable fridge sidetable garbagecan microwave",
    "butterknife": "drawer countertop diningtable sinkbasin sidetable",
    "cup": "cabinet countertop diningtable sinkbasin shelf fridge microwave sidetable",
    "dishsponge": "sinkbasin countertop drawer cabinet garbagecan sidetable",
    "egg": "fridge countertop sinkbasin diningtable garbagecan microwave sidetable",
    "fork": "drawer countertop diningtable sinkbasin sidetable",
    "glassbottle": "cabinet countertop diningtable shelf garbagecan sinkbasin fridge",
    "kettle": "stoveburner cabinet countertop sinkbasin diningtable shelf",
    "knife": "drawer countertop diningtable sinkbasin sidetable",
    "ladle": "drawer countertop diningtable cabinet sinkbasin",
    "lettuce": "fridge countertop diningtable sinkbasin garbagecan sidetable",
    "mug": "coffeemachine cabinet countertop shelf diningtable sinkbasin fridge microwave drawer",
    "pan": "stoveburner countertop cabinet diningtable sinkbasin fridge",
    "peppershaker": "cabinet countertop drawer diningtable shelf sidetable",
    "plate": "cabinet countertop diningtable sinkbasin shelf fridge microwave sidetable",
    "pot": "stoveburner cabinet countertop sinkbasin fridge diningtable shelf",
    "potato": "countertop fridge sinkbasin diningtable garbagecan microwave sidetable",
    "saltshaker": "cabinet countertop drawer diningtable shelf sidetable",
    "soapbottle": "countertop cabinet sinkbasin drawer garbagecan",
    "spatula": "drawer countertop diningtable sinkbasin sidetable",
    "spoon": "drawer countertop diningtable sinkbasin sidetable",
    "tomato": "countertop fridge diningtable sinkbasin garbagecan microwave sidetable",
    "winebottle": "cabinet countertop fridge diningtable shelf garbagecan",
}
_HOUSE_PLACES: Mapping[str, str] = {
    "alarmclock": "desk sidetable dresser shelf",
    "baseballbat": "bed sofa armchair desk",
    "basketball": "bed sofa armchair ottoman desk",
    "book": "desk shelf bed sofa coffeetable sidetable drawer dresser armchair",
    "box": "coffeetable sofa sidetable desk diningtable shelf dresser ottoman cabinet armchair",
    "cd": "desk drawer shelf dresser sidetable safe garbagecan",
    "cellphone": "bed desk sofa sidetable drawer coffeetable dresser armchair safe shelf",
    "creditcard": "desk drawer sidetable coffeetable dresser shelf armchair sofa tvstand",
    "keychain": "sidetable drawer coffeetable dresser desk sofa armchair safe shelf tvstand",
    "laptop": "desk bed sofa coffeetable diningtable armchair sidetable ottoman dresser",
    "newspaper": "coffeetable sofa sidetable armchair ottoman garbagecan drawer diningtable",
    "pen": "desk drawer shelf dresser sidetable garbagecan",
    "pencil": "desk drawer shelf dresser sidetable garbagecan",
    "pillow": "sofa bed armchair ottoman",
    "remotecontrol": "tvstand sofa coffeetable sidetable armchair dresser ottoman drawer desk",
    "statue": "shelf sidetable coffeetable dresser tvstand desk diningtable cabinet safe",
    "teddybear": "bed sofa armchair",
    "tennisracket": "bed desk dresser",
    "tissuebox": "sidetable coffeetable desk dresser toilet countertop cabinet drawer shelf",
    "vase": "shelf coffeetable sidetable diningtable dresser desk cabinet safe tvstand",
    "watch": "sidetable drawer coffeetable shelf dresser desk safe sofa tvstand armchair",
    "wateringcan": "sidetable coffeetable shelf cabinet diningtable drawer",
}
_BATHROOM_PLACES: Mapping[str, str] = {
    "candle": "toilet countertop shelf cabinet drawer sidetable",
    "cloth": "cabinet drawer countertop laundryhamper sinkbasin bathtubbasin toilet sidetable",
    "handtowel": "handtowelholder countertop sinkbasin cabinet sidetable laundryhamper garbagecan",
    "papertowelroll": "countertop cabinet toilet drawer garbagecan sidetable",
    "plunger": "cabinet countertop",
    "soapbar": "sinkbasin toilet countertop bathtubbasin cabinet drawer shelf garbagecan",
    "soapbottle": "countertop toilet cabinet sinkbasin shelf drawer garbagecan",
    "spraybottle": "cabinet countertop toilet drawer shelf garbagecan sidetable",
    "tissuebox": "countertop toilet cabinet drawer sidetable shelf",
    "toiletpaper": "toiletpaperhanger toilet cabinet countertop drawer garbagecan sidetable",
    "towel": "towelholder bathtubbasin laundryhamper",
}

OBJECTS: Final[Mapping[str, tuple[str, ...]]] = {
    "kitchen": tuple(_KITCHEN_PLACES),
    "living room": _words(
        "book box cd cellphone creditcard keychain laptop newspaper pillow remotecontrol "
        "statue tissuebox vase watch wateringcan"
    ),
    "bedroom": _words(
        "alarmclock baseballbat basketball book box cd cellphone creditcard keychain laptop "
        "pen pencil pillow teddybear tennisracket tissuebox watch"
    ),
    "bathroom": tuple(_BATHROOM_PLACES),
}
"""Room → kinds of objects that may lie about in it."""


def _joined(*tables: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return kind → places; where two tables name a kind, the later adds to the earlier."""
    places: dict[str, tuple[str, ...]] = {}
    for table in tables:
        for kind, line in table.items():
            places[kind] = tuple(dict.fromkeys((*places.get(kind, ()), *_words(line))))
    return places


PLACES: Final[Mapping[str, tuple[str, ...]]] = _joined(
    _KITCHEN_PLACES, _HOUSE_PLACES, _BATHROOM_PLACES
)
"""Kind of object → kinds of receptacles that can hold it, the likeliest first."""

OBJECT_KINDS: Final = tuple(PLACES)
"""Every kind of object that can be picked up, in a fixed order."""


def inverted(places: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """Return kind of receptacle → kinds of objects that it can hold."""
    holders = {holder for kinds in places.values() for holder in kinds}
    return {
        holder: frozenset(kind for kind, kinds in places.items() if holder in kinds)
        for holder in sorted(holders)
    }


CAN_CONTAIN: Final[Mapping[str, frozenset[str]]] = inverted(PLACES)
"""Kind of receptacle → kinds of objects that can be put into it."""
