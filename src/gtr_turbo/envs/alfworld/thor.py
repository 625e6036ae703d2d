"""ALFWorld in THOR: camera pictures, from a process of its own.

Needs ``alfworld[vis]`` (ai2thor 2.1.0, OpenCV), the Unity build that ai2thor fetches to
``~/.ai2thor`` on its first start, an X display (``DISPLAY``), and ALFWorld's own games, whose
``traj_data.json`` holds the poses of all things. Tested against the real `AlfredThorEnv` of
ALFWorld 0.4.2 over a stand-in for Unity; it was never run with Unity itself.

What differs from TextWorld is translated here: placements that THOR lists as "move X to Y" but
only reads as "put X in/on Y", pictures in BGR, answers as 4-tuples of lists, an end past the limit
(the task counts its own steps, so THOR's limit is out of reach).
"""

import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any, Final, final

import numpy as np

from gtr_turbo.envs.alfworld.world import AbstractWorld, Scene
from gtr_turbo.errors import TaskError

_NO_LIMIT: Final = 10**9
_MAX_HEAD: Final = 1_000_000
"""Bytes of an answer's first line; a scene has some hundred commands."""
_TAIL: Final = 2_000
"""Characters of the worker's last words that an error repeats."""
_MOVE: Final = re.compile(r"move (\S+ \d+) to (\S+ \d+)")
_TASK: Final = re.compile(r"\s*Your task is to:.*", re.DOTALL)

_HINT: Final = (
    'THOR needs `pip install "alfworld[vis]==0.4.2"`, an X display (is DISPLAY set?) and, on its '
    "first start, the network for its Unity build. `world: text` needs none of them."
)


def thor_config(size: int) -> dict[str, Any]:
    """Return what `AlfredThorEnv` reads, for pictures of `size` × `size` pixels.

    The oracle controller is used: the detector's weights are not needed. Steps are not limited.
    """
    return {
        "env": {
            "goal_desc_human_anns_prob": 0.0,
            "task_types": [1, 2, 3, 4, 5, 6],
            "thor": {
                "screen_height": size,
                "screen_width": size,
                "smooth_nav": False,
                "save_frames_to_disk": False,
                "save_frames_path": "",
            },
        },
        "controller": {"type": "oracle", "load_receps": False, "debug": False},
        "general": {"training_method": "dqn"},
        "rl": {"training": {"max_nb_steps_per_episode": _NO_LIMIT}},
        "dataset": {"eval_id_data_path": "", "num_eval_games": -1},
    }


def to_thor(command: str) -> str:
    """Return a command in the words that THOR's controller reads.

    >>> to_thor("move mug 1 to shelf 2")
    'put mug 1 in/on shelf 2'
    """
    placement = _MOVE.fullmatch(command)
    return command if placement is None else "put {} in/on {}".format(*placement.groups())


@final
class ThorWorld(AbstractWorld):
    """A game in THOR. Its process starts with the first game and ends with `close`."""

    def __init__(self, *, size: int = 300, timeout_seconds: float = 600.0) -> None:
        """Play with pictures of `size` × `size` pixels; a slower answer is an error."""
        self._size = size
        self._timeout_seconds = timeout_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._words: IO[bytes] | None = None

    def start(self, game: Path) -> Scene:
        """Start a game; the first one starts THOR. Raises TaskError when it fails."""
        if self._process is None:
            self._words = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
            command = ["-m", "gtr_turbo.envs.alfworld.worker", json.dumps(thor_config(self._size))]
            self._process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                bufsize=0,
            )
        return self._ask({"game": str(game)})

    def do(self, command: str) -> Scene:
        """Carry out a command. An admissible one may still do nothing: THOR lists too many."""
        return self._ask({"command": to_thor(command)})

    def plan(self) -> tuple[str, ...] | None:
        """Raise TaskError: THOR has no planner, and its handcoded expert never puts things down."""
        raise TaskError(
            "there is no expert in THOR.",
            hint="draw demonstrations from `world: text`, whose games are the same.",
        )

    def close(self) -> None:
        """End THOR's process."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._words is not None:
            self._words.close()
            self._words = None

    def _ask(self, request: dict[str, str]) -> Scene:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise TaskError("THOR is not running.", hint="`start` a game first.")
        limit = time.monotonic() + self._timeout_seconds
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            head, rest = self._read_head(process.stdout, limit)
            num_bytes = int(np.prod(head["shape"]))
            pixels = rest + self._read(process.stdout, num_bytes - len(rest), limit)
        except (OSError, EOFError) as error:
            words = self._last_words()
            self.close()
            raise TaskError(f"THOR gave no answer ({error}). {words}", hint=_HINT) from error
        frame = np.frombuffer(pixels, np.uint8).reshape(head["shape"])
        return Scene(
            text=_TASK.sub("", head["text"]),
            commands=tuple(sorted(set(head["commands"]))),
            won=head["won"],
            goal_rate=head["goal_rate"],
            frame=frame,
        )

    def _read_head(self, pipe: IO[bytes], limit: float) -> tuple[dict[str, Any], bytes]:
        """Return the first line of an answer, and what was read beyond it."""
        data = b""
        while b"\n" not in data:
            data += self._read_some(pipe, 65_536, limit)
            if b"\n" not in data and len(data) > _MAX_HEAD:
                raise EOFError("its answer has no end")
        line, _, rest = data.partition(b"\n")
        return json.loads(line), rest

    def _read(self, pipe: IO[bytes], num_bytes: int, limit: float) -> bytes:
        data = bytearray()
        while len(data) < num_bytes:
            data += self._read_some(pipe, num_bytes - len(data), limit)
        return bytes(data)

    def _read_some(self, pipe: IO[bytes], num_bytes: int, limit: float) -> bytes:
        ready, _, _ = select.select([pipe], [], [], max(0.0, limit - time.monotonic()))
        if not ready:
            raise EOFError(f"for {self._timeout_seconds:g} seconds")
        data = os.read(pipe.fileno(), num_bytes)
        if not data:
            raise EOFError("its process has ended")
        return data

    def _last_words(self) -> str:
        if self._words is None:
            return ""
        self._words.seek(0)
        text = self._words.read().decode(errors="replace").strip()
        return f"Its last words: …{text[-_TAIL:]}" if text else "It said nothing."
