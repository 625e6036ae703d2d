"""A study directory as finished runs leave it, made in an instant, with known outcomes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gtr_turbo.core.config import to_yaml
from gtr_turbo.studies.places import StudyPlaces
from gtr_turbo.studies.results import StudyResults, read_results
from gtr_turbo.studies.study import Study, StudyRun, planned_runs, read_study
from tests.studies.small import write_study

OUTCOMES: dict[str, dict[str, tuple[str, str]]] = {
    "rl4vlm": {"initial": ("10000000", "00000000"), "agent": ("11000000", "11110000")},
    "gtr-turbo-kl": {
        "initial": ("10000000", "00000000"),
        "agent": ("11100000", "11111100"),
        "teacher": ("11000000", "11111000"),
    },
}
"""Arm → who → outcomes of the seeds 0 and 1."""


def evaluation(outcomes: str, panel: str = "panel") -> dict[str, Any]:
    rate = outcomes.count("1") / len(outcomes)
    return {
        "success_rate": rate,
        "ci95": [max(rate - 0.1, 0.0), min(rate + 0.1, 1.0)],
        "return": 10 * rate,
        "episodes": len(outcomes),
        "panel_sha256": panel,
        "outcomes": outcomes,
    }


def finish(
    places: StudyPlaces, run: StudyRun, outcomes: Mapping[str, str], panel: str = "panel"
) -> Path:
    """Write what a finished run leaves; its outcomes by who, and return its directory."""
    path = places.run(run.name)
    path.mkdir(parents=True)
    (path / "config.yaml").write_text(to_yaml(run.config))
    found = {who: evaluation(marks, panel) for who, marks in outcomes.items()}
    last = run.config.run.num_updates
    lines = [{"update": 0, "who": "initial", **found["initial"]}] + [
        {"update": last, "who": who, **found[who]} for who in ("agent", "teacher") if who in found
    ]
    (path / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    metrics = [
        {
            "update": update,
            "env_steps": 8 * update,
            "reply_tokens": 10.5 + run.seed,
            "env_steps_per_second": 50.0 if run.arm == "rl4vlm" else 40.0 / update,
            "agent_distance": 0.1 * update,
            "teacher_distance": None,
            "corrector_input_tokens": 3 if run.arm == "gtr-turbo-kl" else None,
            "corrector_cost": 0.25 * update if run.arm == "gtr-turbo-kl" else None,
        }
        for update in range(1, last + 1)
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    summary = {
        "initial": found["initial"],
        "agent": found["agent"] | {"weights_sha256": f"{run.name}-weights"},
        "teacher": found.get("teacher"),
        "seed": run.seed,
        "updates": last,
        "env_steps": 8 * last,
        "wall_seconds": 60.0 * (run.seed + 1),
        "phase_seconds": {"sft": 30.0},
    }
    (path / "summary.json").write_text(json.dumps(summary))
    return path


def make_study(path: Path, **changes: Any) -> tuple[Study, list[StudyRun], StudyPlaces]:
    """Return a study of two arms, two seeds and two updates, all of its runs finished."""
    keys = {"arms": list(OUTCOMES), "baseline": "rl4vlm", "overrides": {"run.num_updates": 2}}
    study = read_study(write_study(path / "study.yaml", **{**keys, **changes}))
    runs, places = planned_runs(study), StudyPlaces(path / "out")
    for run in runs:
        if run.arm in OUTCOMES and run.seed < 2:
            finish(places, run, {who: both[run.seed] for who, both in OUTCOMES[run.arm].items()})
    return study, runs, places


def made_results(path: Path, **changes: Any) -> StudyResults:
    return read_results(*make_study(path, **changes))
