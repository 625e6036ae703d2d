"""`gtr-turbo compare`: runs what a study lacks, then says what its arms reached."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from gtr_turbo.commands.env import print_line
from gtr_turbo.core.arguments import CompareArguments
from gtr_turbo.core.files import write_text_atomically
from gtr_turbo.core.lock import DirectoryLock
from gtr_turbo.errors import ConfigError, RunLockedError, UnknownNameError, nearest_hint
from gtr_turbo.runstate import LOCK_FILE
from gtr_turbo.studies.comparison import compare_arms
from gtr_turbo.studies.page import study_page
from gtr_turbo.studies.places import StudyPlaces, is_finished
from gtr_turbo.studies.plots import picture_files
from gtr_turbo.studies.progress import StudyProgress
from gtr_turbo.studies.results import StudyResults, read_results
from gtr_turbo.studies.reuse import take_over
from gtr_turbo.studies.runner import SAMPLES_PREFIX, START_PREFIX, Failure, Runner, plan_jobs
from gtr_turbo.studies.study import Study, StudyRun, arms_of, planned_runs, read_study
from gtr_turbo.studies.tables import arms_csv, markdown, runs_csv

EXIT_FAILED_RUNS: Final = 1
STUDY_FILE: Final = "study.yaml"
PLOTS: Final = "plots"
DEFAULT_HOME: Final = Path("runs/studies")


def compare(arguments: CompareArguments, console: Console) -> int:
    """Run a study and write its comparison; return the exit code: 1 when a run failed."""
    study = read_study(arguments.study)
    runs = planned_runs(study)
    chosen = _chosen(study, runs, arguments.only)
    slots = _slots(arguments)
    places = StudyPlaces(arguments.out or DEFAULT_HOME / study.name)
    if arguments.dry_run:
        _show_plan(study, places, chosen, console)
        return 0
    failures: list[Failure] = []
    lock = _lock(places.home)
    try:
        for run in runs:  # also those that are not asked for: nothing may be mixed
            is_finished(places.run(run.name), run)
        text = arguments.study.read_text(encoding="utf-8")
        write_text_atomically(places.home / STUDY_FILE, text)
        for other in arguments.reuse:
            if not (other / "runs").is_dir() and not (other / "starts").is_dir():
                print_line(console, f"note      {other} holds no study: nothing is copied from it")
        for name in take_over(places, chosen, arguments.reuse):
            print_line(console, f"copied    {name}")
        jobs = plan_jobs(places, [] if arguments.report_only else chosen, study.samples)
        with StudyProgress(len(jobs), console) as progress:
            runner = Runner(places, slots, progress, one_thread=study.threads == 1)
            failures = runner.run(jobs)
        _write_report(read_results(study, runs, places), places, console)
    finally:
        lock.release()
    for failure in failures:
        _show_failure(failure, console)
    return EXIT_FAILED_RUNS if failures else 0


def _chosen(study: Study, runs: Sequence[StudyRun], only: Sequence[str]) -> list[StudyRun]:
    """Return the runs of the arms that are asked for, by default of all."""
    known = arms_of(study)
    for name in only:
        if name not in known:
            raise UnknownNameError(
                f'the study "{study.name}" has no arm "{name}".',
                hint=nearest_hint(name, known, "arms of the study"),
            )
    return [run for run in runs if not only or run.arm in only]


def _slots(arguments: CompareArguments) -> list[Mapping[str, str]]:
    """Return the variables of each process that may run at the same time."""
    jobs = arguments.jobs
    if jobs is None:
        jobs = len(arguments.gpus) or os.cpu_count() or 1
    if jobs < 1:
        raise ConfigError(f"`--jobs` must be at least 1, got {jobs}.")
    if not arguments.gpus:
        return [{}] * jobs
    gpus = arguments.gpus
    return [{"CUDA_VISIBLE_DEVICES": gpus[slot % len(gpus)]} for slot in range(jobs)]


def _lock(home: Path) -> DirectoryLock:
    try:
        lock = DirectoryLock.take(home, LOCK_FILE, create=True)
    except RunLockedError as error:
        raise RunLockedError(
            error.message, hint="wait for that study or stop it, or choose another --out."
        ) from None
    lock.sign()
    return lock


def _show_plan(
    study: Study, places: StudyPlaces, runs: Sequence[StudyRun], console: Console
) -> None:
    """Print each arm with what it sets, and what is still to be run."""
    for arm, own in arms_of(study).items():
        fields = ", ".join(f"{key} {value}" for key, value in own.items())
        print_line(console, f"{arm:20} {fields}")
    jobs = [job for job in plan_jobs(places, runs, study.samples) if not job.is_done()]
    names = {run.name for run in runs}
    missing = sum(job.name in names for job in jobs)
    starts = sum(job.name.startswith(START_PREFIX) for job in jobs)
    panels = sum(job.name.startswith(SAMPLES_PREFIX) for job in jobs)
    also = f", {panels} panels of {study.samples} samples" if panels else ""
    print_line(
        console,
        f"{study.name}: {len(runs)} runs of {len(study.seeds)} seeds in {places.home},"
        f" {missing} of them missing ({starts} shared starts{also}).",
    )


def _write_report(results: StudyResults, places: StudyPlaces, console: Console) -> None:
    """Write the comparison of what is finished, and print it as Markdown."""
    study = results.study
    if not results.arms:
        print_line(console, "no run is finished yet, so there is nothing to compare.")
        return
    comparison = compare_arms(results)
    text = markdown(study.name, study.question, comparison)
    files = {
        "report.md": text,
        "arms.csv": arms_csv(comparison),
        "runs.csv": runs_csv(results),
        "report.html": study_page(
            results, comparison, (places.home / STUDY_FILE).read_text("utf-8")
        ),
    }
    for name, content in files.items():
        write_text_atomically(places.home / name, content)
    (places.home / PLOTS).mkdir(exist_ok=True)
    for name, picture in picture_files(results).items():
        write_text_atomically(places.home / PLOTS / name, picture)
    print_line(console, text)
    print_line(console, f"wrote {', '.join(str(places.home / name) for name in (*files, PLOTS))}")


def _show_failure(failure: Failure, console: Console) -> None:
    print_line(console, f"\n{failure.name} failed: {failure.reason} ({failure.log})")
    for line in failure.last_lines:
        print_line(console, f"  {line}")
