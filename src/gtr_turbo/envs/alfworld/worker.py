"""The process in which THOR runs: ``python -m gtr_turbo.envs.alfworld.worker CONFIG``.

ALFWorld's THOR environment imports torch and starts Unity, so it lives in a process of its own; no
other process of a run pays for either. CONFIG is one JSON object, as `AlfredThorEnv` reads it.
Requests are JSON objects, one a line, on standard input:

    {"game": "/path/of/a/game"}        start the game in this directory
    {"command": "go to fridge 1"}      carry out a command

Each answer is one line of JSON on standard output and then the bytes of its picture (RGB, its shape
is in the line). Whatever the libraries print goes to standard error. The worker ends when its input
ends, or when something goes wrong: what it says then is on standard error.
"""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gtr_turbo.envs.alfworld.extra import load


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    threading.excepthook = _die
    serve(json.loads(sys.argv[1]), sys.stdin.buffer, answers)


def serve(config: dict[str, Any], requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer each request; `config` is that of `AlfredThorEnv`, but for the place of the data."""
    env: Any = None
    for line in requests:
        request = json.loads(line)
        if "game" in request:
            config["dataset"]["eval_id_data_path"] = request["game"]
            if env is None:
                module = load("alfworld.agents.environment.alfred_thor_env")
                env = module.AlfredThorEnv(config, train_eval="eval_in_distribution").init_env(1)
            env.get_env_paths()
            texts, infos = env.reset()
        else:
            before = env.envs[0].get_results()
            texts, _, _, infos = env.step([request["command"]])
            if env.envs[0].get_results() is before:
                raise RuntimeError("the thread of the environment did not answer.")
        _answer(answers, texts[0], infos, env)


def _answer(answers: BinaryIO, text: str, infos: dict[str, list[Any]], env: Any) -> None:
    picture = np.ascontiguousarray(env.get_frames()[0][:, :, ::-1], dtype=np.uint8)
    params = env.envs[0].traj_data
    head = {
        "text": text,
        "commands": list(infos["admissible_commands"][0]),
        "won": bool(infos["won"][0]),
        "goal_rate": float(infos["goal_condition_success_rate"][0]),
        "game": str(Path(infos["extra.gamefile"][0])),
        "task_type": params["task_type"],
        "shape": picture.shape,
    }
    answers.write(json.dumps(head).encode() + b"\n" + picture.tobytes())
    answers.flush()


def _die(fault: threading.ExceptHookArgs) -> None:
    """End the process: without its thread the environment would wait for ever."""
    sys.__excepthook__(fault.exc_type, fault.exc_value or SystemExit(), fault.exc_traceback)
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    main()
