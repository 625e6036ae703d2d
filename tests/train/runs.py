"""Small runs, and what is compared between two of them."""

import json
from pathlib import Path
from typing import Any

import torch

from gtr_turbo.core.config import Config
from gtr_turbo.metrics import TIMING_METRICS
from gtr_turbo.report.console import NullProgress
from gtr_turbo.runstate import RunDirectory
from gtr_turbo.train.pipeline import open_session, run_training
from gtr_turbo.train.session import Session


def run(config: Config, path: Path, *, resume: bool = False) -> dict[str, Any]:
    """Return the summary of a whole run."""
    torch.set_num_threads(1)
    return run_training(config, path, NullProgress(), resume=resume)


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def numbers(path: Path) -> dict[str, Any]:
    """Return everything about a finished run that an equal run must repeat."""
    metrics = [
        {key: value for key, value in line.items() if key not in TIMING_METRICS}
        for line in lines(path / "metrics.jsonl")
    ]
    summary = json.loads((path / "summary.json").read_text())
    timings = {"wall_seconds", "phase_seconds"}
    return {
        "metrics": metrics,
        "evaluations": lines(path / "evaluations.jsonl"),
        "summary": {key: value for key, value in summary.items() if key not in timings},
    }


def session_of(config: Config, path: Path) -> Session:
    """Return a session at its start, in a run directory that stays open."""
    torch.set_num_threads(1)
    return open_session(config, RunDirectory.open(path, config, resume=False), NullProgress())
