"""A `Controller` that keeps a kitchen in a dict: no Unity, no display.

Receptacles are those of ALFWorld's layout of the scene; teleporting to the pose that the layout
gives for one makes it and what it holds visible, each as a stripe of its own colour.
"""

import json
from collections import Counter
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import numpy as np

FIRST_COLOR = 10
OPENABLE = ("Fridge", "Microwave", "Cabinet", "Drawer")
PLACED = {"Mug|+01.00|+01.00|+01.00": "CounterTop", "Potato|+02.00|+01.00|+01.00": "Fridge"}
"""Object id → kind of the receptacle that holds it at the start."""


class Controller:
    """What `alfworld.env.thor_env.ThorEnv` needs of ai2thor 2.1.0's."""

    def __init__(self, quality: str) -> None:
        self.counts: Counter[str] = Counter()
        self.size = 0

    def start(self, x_display: Any, player_screen_height: int, player_screen_width: int) -> None:
        assert player_screen_height == player_screen_width
        self.size = player_screen_height

    def stop(self) -> None:
        self.counts["stop"] += 1

    def reset(self, scene: str) -> Any:
        layout = files("alfworld.gen") / "layouts" / f"{scene}-openable.json"
        self.poses: dict[str, list[float]] = json.loads(layout.read_text())
        self.poses["Faucet|+00.00|+01.00|+00.00"] = next(
            pose for name, pose in self.poses.items() if "SinkBasin" in name
        )
        self.inside = {
            thing: next(name for name in self.poses if name.startswith(kind))
            for thing, kind in PLACED.items()
        }
        self.opened: set[str] = set()
        self.toggled: set[str] = set()
        self.hand: str | None = None
        self.here: list[float] = []
        return self._show(success=True)

    def step(self, action: dict[str, Any]) -> Any:
        handler = getattr(self, f"_{action['action']}", None)
        return self._show(success=handler is None or handler(action))

    def _TeleportFull(self, action: dict[str, Any]) -> bool:
        self.here = [action[key] for key in ("x", "z", "rotation", "horizon")]
        return True

    def _PickupObject(self, action: dict[str, Any]) -> bool:
        if self.hand is not None:
            return False
        thing: str = action["objectId"]
        self.hand = thing
        del self.inside[thing]
        return True

    def _PutObject(self, action: dict[str, Any]) -> bool:
        target = action["receptacleObjectId"]
        thing: str = action["objectId"]
        if self.hand != thing or self.poses[target] != self.here:
            return False
        if target.split("|")[0] in OPENABLE and target not in self.opened:
            return False
        self.inside[thing], self.hand = target, None
        return True

    def _OpenObject(self, action: dict[str, Any]) -> bool:
        self.opened.add(action["objectId"])
        return True

    def _CloseObject(self, action: dict[str, Any]) -> bool:
        self.opened.discard(action["objectId"])
        return True

    def _ToggleObjectOn(self, action: dict[str, Any]) -> bool:
        self.toggled.add(action["objectId"])
        return True

    def _ToggleObjectOff(self, action: dict[str, Any]) -> bool:
        self.toggled.discard(action["objectId"])
        return True

    def _visible(self, name: str) -> bool:
        holder = self.inside.get(name, name)
        if self.poses.get(holder) != self.here:
            return False
        closed = holder.split("|")[0] in OPENABLE and holder not in self.opened
        return holder == name or not closed

    def _show(self, *, success: bool) -> Any:
        things = [*self.poses, *PLACED]
        colors = {name: (FIRST_COLOR + i, i, 255 - i) for i, name in enumerate(things)}
        visible = [name for name in things if self._visible(name)]
        segments = np.zeros((self.size, self.size, 3), np.uint8)
        for row, name in enumerate(visible):
            segments[4 * row : 4 * row + 4] = colors[name]
        metadata = {
            "objects": [self._describe(name) for name in things],
            "agent": {"position": {"x": 0.0, "y": 0.9, "z": 0.0}, "rotation": {"y": 0.0}},
            "inventoryObjects": [] if self.hand is None else [self._describe(self.hand)],
            "lastActionSuccess": success,
            "errorMessage": "" if success else "that does not work",
        }
        frame = np.zeros((self.size, self.size, 3), np.uint8)
        frame[..., 0] = 200  # red, as ai2thor's `frame` is RGB
        frame[0, 0, 2] = len(visible)
        self.last_event = SimpleNamespace(
            frame=frame,
            instance_segmentation_frame=segments,
            color_to_object_id={color: name for name, color in colors.items()},
            metadata=metadata,
        )
        return self.last_event

    def _describe(self, name: str) -> dict[str, Any]:
        kind = name.split("|")[0] + ("Basin" if "Basin" in name else "")
        is_thing = name in PLACED
        return {
            "objectId": name,
            "objectType": kind,
            "visible": self._visible(name),
            "pickupable": is_thing,
            "receptacle": not is_thing,
            "parentReceptacles": [self.inside[name]] if name in self.inside else [],
            "receptacleObjectIds": [thing for thing, at in self.inside.items() if at == name],
            "toggleable": kind in ("Microwave", "Faucet"),
            "isToggled": name in self.toggled,
            "dirtyable": False,
            "isDirty": False,
            "position": {"x": 0.0, "y": 0.0, "z": 0.0},
        }
