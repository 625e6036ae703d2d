"""A run without torch that is killed at every fault point, one after the other.

    python tests/crash_run.py FOLDER SCENARIO      writes FOLDER/result.json

Each attempt is a fork of this process, so that an attempt costs milliseconds.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gtr_turbo.core.config import Config
from gtr_turbo.core.faultline import FAULT_VARIABLE, TRACE_VARIABLE, forget_passings
from gtr_turbo.core.files import file_sha256
from gtr_turbo.metrics import MetricsLog
from gtr_turbo.runstate import RunDirectory, newest_checkpoint

NUM_UPDATES = 3
Work = Callable[[Path], None]


def number_of(name: str | None) -> int:
    """Return the update of a checkpoint's name, 0 for none."""
    return int(name.rpartition("-")[2]) if name else 0


def fill_with(text: str) -> Callable[[Path], None]:
    """Return a function that writes two files whose content follows from `text`."""

    def fill(directory: Path) -> None:
        (directory / "state.json").write_text(json.dumps({"text": text}))
        (directory / "weights.safetensors").write_bytes(text.encode() * 1000)

    return fill


def train(run: Path) -> None:
    """Start or continue a run of three updates, in the order of the real loop."""
    with RunDirectory.open(run, Config(), resume=True) as directory:
        done = number_of(directory.newest_checkpoint())
        if done:
            finish(directory, done)  # a kill may have come between the checkpoint and these
        with MetricsLog(run / "metrics.jsonl", tensorboard=False, resume_after=done) as log:
            for update in range(done + 1, NUM_UPDATES + 1):
                log.append({"update": update, "return": update / 3})
                for folder in ("teacher", "checkpoints"):
                    name = f"{folder}/update-{update:04d}"
                    directory.write_directory(name, fill_with(name), {"update": update})
                finish(directory, update)
        directory.write_json("summary.json", {"updates": NUM_UPDATES})


def finish(directory: RunDirectory, update: int) -> None:
    """Do what follows a checkpoint: point to it, report it as saved, prune."""
    directory.set_latest(f"checkpoints/update-{update:04d}")
    with (directory.path.parent / "reported.txt").open("a") as file:
        file.write(f"{update}\n")
    directory.prune("checkpoints", 2)
    directory.prune("teacher", {f"update-{update:04d}"})


def replace(run: Path) -> None:
    """Write a directory over one of another content."""
    with RunDirectory.open(run, Config(), resume=True) as directory:
        directory.write_directory("sft", fill_with("new"), {"text": "new"})


def state_of(run: Path) -> dict[str, str]:
    """Return name → sha256 of everything that a run holds, its lock left out."""
    files = [path for path in sorted(run.rglob("*")) if path.is_file() and path.name != "LOCK"]
    return {path.relative_to(run).as_posix(): file_sha256(path) for path in files}


def attempt(work: Work, run: Path, plan: str | None) -> int:
    """Return the status of a forked child that does `work` under a fault plan."""
    child = os.fork()
    if child == 0:
        forget_passings()
        if plan is not None:
            os.environ[FAULT_VARIABLE] = plan
        work(run)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def look_at(run: Path) -> dict[str, Any]:
    """Return what a reader finds right after a kill, and what was reported as saved before it."""
    reported = run.parent / "reported.txt"
    lines = reported.read_text().split() if reported.is_file() else []
    return {
        "newest": number_of(newest_checkpoint(run)),
        "reported": int(lines[-1]) if lines else 0,
    }


def look_at_replaced(run: Path) -> dict[str, Any]:
    """Return the content of the replaced directory once the run has been opened again."""
    with RunDirectory.open(run, Config(), resume=True) as directory:
        return {"text": directory.read_manifest("sft")["text"]}


def prepare(run: Path, scenario: str) -> None:
    """Make a fresh folder in which a scenario can start."""
    shutil.rmtree(run.parent, ignore_errors=True)
    run.parent.mkdir(parents=True)
    if scenario == "replace":
        with RunDirectory.open(run, Config(), resume=False) as directory:
            directory.write_directory("sft", fill_with("old"), {"text": "old"})


def enumerate_kills(folder: Path, scenario: str) -> dict[str, Any]:
    """Return what was found after a kill at each point, and after going on from there."""
    work, look = {"train": (train, look_at), "replace": (replace, look_at_replaced)}[scenario]
    run = folder / "attempt" / "run"
    prepare(run, scenario)
    os.environ[TRACE_VARIABLE] = str(folder / "points.txt")
    assert attempt(work, run, None) == 0
    del os.environ[TRACE_VARIABLE]
    whole = state_of(run)
    points = (folder / "points.txt").read_text().split()
    found = []
    for k, point in enumerate(points, start=1):
        prepare(run, scenario)
        killed = os.WTERMSIG(attempt(work, run, f"*:{k}:kill")) == signal.SIGKILL
        seen = look(run)
        went_on = attempt(work, run, None) == 0
        same = state_of(run) == whole
        found.append({"point": point, "killed": killed, **seen, "went_on": went_on, "same": same})
    return {"files": sorted(whole), "found": found, "torch": "torch" in sys.modules}


if __name__ == "__main__":
    here = Path(sys.argv[1])
    (here / "result.json").write_text(json.dumps(enumerate_kills(here, sys.argv[2])))
