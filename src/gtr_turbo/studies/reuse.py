"""Finished work of other studies: the same run need not be made twice."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from gtr_turbo.core.files import temporary_path
from gtr_turbo.core.lock import DirectoryLock
from gtr_turbo.errors import ResumeError, RunLockedError
from gtr_turbo.runstate import LOCK_FILE
from gtr_turbo.studies.places import StudyPlaces, is_finished
from gtr_turbo.studies.starts import is_whole, start_config, start_key
from gtr_turbo.studies.study import StudyRun


def take_over(places: StudyPlaces, runs: Sequence[StudyRun], others: Sequence[Path]) -> list[str]:
    """Copy what other studies have of a study's runs and starts; return the copied runs' names.

    A run is taken from a study that has one of the same arm, seed and configuration, finished and
    with nobody at work on it. What is here already, begun or finished, stays.
    """
    taken: list[str] = []
    for run in runs:
        here = places.run(run.name)
        for other in map(StudyPlaces, others):
            if not here.exists() and _copy_run(other.run(run.name), run, here):
                taken.append(run.name)
        start = start_config(run.config)
        if start is not None:
            _take_start(places.start(start_key(start)), others)
    return taken


def _copy_run(source: Path, run: StudyRun, target: Path) -> bool:
    """Copy a run, if it is there, whole, at rest, and the one that is wanted."""
    try:
        lock = DirectoryLock.take(source, LOCK_FILE, create=False)
    except RunLockedError:
        return False
    try:
        if not is_finished(source, run):
            return False
        _copy(source, target)
    except ResumeError:  # the same name, but other settings
        return False
    finally:
        lock.release()
    return True


def _take_start(here: Path, others: Sequence[Path]) -> None:
    for other in others:
        there = StudyPlaces(other).start(here.name)
        if not here.exists() and is_whole(there):
            _copy(there, here)


def _copy(source: Path, target: Path) -> None:
    """Copy a directory under its name as a whole; the lock stays with its holder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(target)
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(source, temporary, ignore=shutil.ignore_patterns(LOCK_FILE))
    os.rename(temporary, target)
