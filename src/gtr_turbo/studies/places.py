"""Where a study's parts lie, and which of its runs are finished.

    LOCK, study.yaml            who works on it; the file that was run
    configs/ARM-seed0.yaml      what a run is started with
    starts/HASH/                supervised starts, shared by the runs that have the same one
    runs/ARM-seed0/             run directories
    logs/ARM-seed0.log          what a run printed
    report.md, report.html, …   the comparison

All of it is below the study's own directory.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from gtr_turbo.core.combinations import SCRIPTED_CORRECTOR
from gtr_turbo.core.config import Config, differences, parse_config, read_yaml
from gtr_turbo.errors import ConfigError, ResumeError
from gtr_turbo.metrics import METRICS_FILE, read_metrics
from gtr_turbo.report.records import SUMMARY_FILE
from gtr_turbo.runstate import CONFIG_FILE
from gtr_turbo.studies.study import StudyRun


@final
@dataclass(frozen=True, slots=True)
class StudyPlaces:
    """The paths of a study."""

    home: Path

    def run(self, name: str) -> Path:
        """Return a run's directory."""
        return self.home / "runs" / name

    def config(self, name: str) -> Path:
        """Return the file that a run or a start is started with."""
        return self.home / "configs" / f"{name}.yaml"

    def log(self, name: str) -> Path:
        """Return the file that a run's output goes to."""
        return self.home / "logs" / f"{name}.log"

    def start(self, key: str) -> Path:
        """Return the directory of a shared start."""
        return self.home / "starts" / key


SAMPLES_FILE: Final = "samples.json"
"""In a run: its agent's panel, every hand played several times."""


def has_samples(directory: Path, count: int) -> bool:
    """Return whether a run's agent, as it is, has played every hand of the panel `count` times."""
    file, summary = directory / SAMPLES_FILE, directory / SUMMARY_FILE
    if not (file.is_file() and summary.is_file()):
        return False
    found = json.loads(file.read_bytes())
    agent = json.loads(summary.read_bytes())["agent"]
    return (
        found.get("weights_sha256") == agent["weights_sha256"]  # the run may have gone on
        and len(found.get("samples", [])) == count
    )


def is_finished(directory: Path, run: StudyRun) -> bool:
    """Return whether a run is there, of this configuration and with all of its updates.

    Raises ResumeError when there is a run of other settings: old and new are never mixed.
    """
    own = directory / CONFIG_FILE
    if not own.is_file():
        return False
    hint = f"give the study another --out, or delete {directory}."
    try:
        found = parse_config(read_yaml(own))
    except ConfigError as error:
        raise ResumeError(
            f"the run {run.name} was made under other settings: {error.message}", hint=hint
        ) from None
    changed = differences(found, run.config) + _other_corrector(found, run.config)
    if changed:
        lines = "\n".join(f"  {line}" for line in changed)
        raise ResumeError(f"the run {run.name} was made under other settings:\n{lines}", hint=hint)
    summary = directory / SUMMARY_FILE
    updates = json.loads(summary.read_bytes())["updates"] if summary.is_file() else 0
    done = max(updates, _newest_update(directory))
    if done > run.config.run.num_updates:
        raise ResumeError(
            f"the run {run.name} has {done} updates already, but the study asks for"
            f" {run.config.run.num_updates}.",
            hint=hint,
        )
    return summary.is_file() and updates == run.config.run.num_updates


def _newest_update(directory: Path) -> int:
    """Return the newest update that was logged: it may be beyond the one of the summary."""
    file = directory / METRICS_FILE
    lines = read_metrics(file) if file.is_file() else []
    return lines[-1]["update"] if lines else 0


def _other_corrector(found: Config, wanted: Config) -> list[str]:
    """Return the line of the corrector where one of the two is scripted and the other is not.

    A resumed run may ask the same corrector at another address; a study's arm is another arm with
    another corrector.
    """
    old, new = found.corrector.url, wanted.corrector.url
    if found.guidance.teacher != "corrector" or old == new or SCRIPTED_CORRECTOR not in (old, new):
        return []
    return [f"corrector.url: {old} → {new}"]
