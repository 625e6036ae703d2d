"""Runs that are killed and resumed, each attempt in a fork of this process.

    python -m tests.train.crash_worker PLAN      PLAN is JSON: {"folder": …, "jobs": [JOB, …]}

A job is {"name", "fields", "kills"}: a run under the tiny configuration with `fields`, started over
and over; attempt i dies (SIGKILL) at kills[i], the last attempt finishes. The reply on standard
output is JSON: name → what `numbers` finds in the end, and what each death left behind. Importing
torch takes seconds, a fork milliseconds; a fork is a process of its own all the same.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from gtr_turbo.core.faultline import FAULT_VARIABLE, forget_passings
from gtr_turbo.runstate import newest_checkpoint
from tests.train.runs import numbers, run
from tests.world import tiny_config


def attempt(path: Path, fields: dict[str, Any], kill: str | None) -> int:
    """Start or continue a run in a fork, and return its wait status."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    status = 1
    try:
        forget_passings()
        os.environ.pop(FAULT_VARIABLE, None)
        if kill is not None:
            os.environ[FAULT_VARIABLE] = f"{kill}:kill"
        run(tiny_config(**fields), path, resume=path.exists())
        status = 0
    finally:
        os._exit(status)  # no cleaning up: the parent's files are not the child's


def weights_of(path: Path) -> dict[str, str]:
    """Return the weights' sha256 by checkpoint name, for whole checkpoints."""
    manifests = sorted(path.glob("checkpoints/update-*/MANIFEST.json"))
    return {file.parent.name: json.loads(file.read_text())["weights_sha256"] for file in manifests}


def work(path: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Return what a job leaves behind: after each death, and in the end."""
    deaths: list[dict[str, Any]] = []
    for kill in job["kills"]:
        status = attempt(path, job["fields"], kill)
        deaths.append(
            {
                "kill": kill,
                "killed": os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL,
                "newest": newest_checkpoint(path),
                "weights": weights_of(path),
            }
        )
    status = attempt(path, job["fields"], None)
    if status:
        return {"deaths": deaths, "failed": status}
    return {"deaths": deaths, "end": numbers(path), "weights": weights_of(path)}


def main() -> None:
    """Work through the plan."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(plan["folder"])
    found = {job["name"]: work(folder / job["name"], job) for job in plan["jobs"]}
    Path(plan["result"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
