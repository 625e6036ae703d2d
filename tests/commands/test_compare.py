import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gtr_turbo.core.lock import DirectoryLock
from gtr_turbo.runstate import LOCK_FILE
from tests.console import Console
from tests.console import console as console
from tests.studies.small import write_study
from tests.studies.test_child import wait_for


def state(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Return content and time of every file of a run, but for the lock's signature."""
    return {
        str(file.relative_to(directory)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in sorted(directory.rglob("*"))
        if file.is_file() and file.name != LOCK_FILE
    }


def command(study: Path, out: Path, jobs: int = 1) -> list[str]:
    options = ["--out", str(out), "--jobs", str(jobs)]
    return [sys.executable, "-m", "gtr_turbo", "compare", str(study), *options]


@pytest.mark.slow
def test_a_study_that_is_killed_and_restarted_repeats_no_finished_work(tmp_path: Path) -> None:
    study, out = write_study(tmp_path / "small.yaml"), tmp_path / "out"
    names = [f"{arm}-seed{seed}" for seed in (0, 1) for arm in ("rl4vlm", "static")]
    runs = [out / "runs" / name for name in names]
    first = subprocess.Popen(command(study, out), stdout=subprocess.PIPE, text=True)
    with first:
        assert wait_for((runs[1] / "config.yaml").is_file, 300)  # the second run has begun
        os.kill(first.pid, signal.SIGKILL)
    assert (runs[0] / "summary.json").is_file()
    assert not (runs[2] / "config.yaml").exists()
    before = state(runs[0])

    done = subprocess.run(command(study, out, 2), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert state(runs[0]) == before
    assert f"started   {names[0]}" not in done.stdout
    finished = [line for line in done.stdout.splitlines() if line.startswith("finished")]
    assert len(finished) == 3
    found: dict[str, Any] = {
        run.name: json.loads((run / "summary.json").read_text()) for run in runs
    }
    assert [found[name]["seed"] for name in names] == [0, 0, 1, 1]
    assert all(one["updates"] == 1 for one in found.values())

    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    for arm in ("rl4vlm", "static"):
        rates = [100 * found[f"{arm}-seed{seed}"]["agent"]["success_rate"] for seed in (0, 1)]
        row = next(row for row in rows if row[0] == f"| {arm}")
        assert row[1] == "2"
        assert row[3].startswith(f"{sum(rates) / 2:.1f} (")
        assert row[6] == f"{rates[0]:.1f}, {rates[1]:.1f} |"
    assert (out / "report.md").read_text() in done.stdout
    assert all((out / name).is_file() for name in ("report.html", "arms.csv", "runs.csv"))

    again = {run.name: state(run) for run in runs}
    assert not subprocess.run([*command(study, out), "--report-only"], check=False).returncode
    assert {run.name: state(run) for run in runs} == again


def test_a_dry_run_says_what_would_be_run_and_writes_nothing(
    console: Console, tmp_path: Path
) -> None:
    study = write_study(tmp_path / "small.yaml", overrides={"sft.num_steps": 3})
    code, out, _ = console.run("compare", study, "--dry-run", "--out", tmp_path / "out")
    assert code == 0
    assert "rl4vlm               guidance.kind none" in out
    assert "small: 4 runs of 2 seeds in " in out
    assert "4 of them missing (2 shared starts)." in out.replace("\n", " ")
    assert not (tmp_path / "out").exists()
    write_study(study, overrides={"sft.num_steps": 3}, samples=3)
    _, out, _ = console.run("compare", study, "--dry-run", "--out", tmp_path / "out")
    assert "(2 shared starts, 4 panels of 3 samples)." in out.replace("\n", " ")
    code, out, _ = console.run("compare", study, "--dry-run", "--only", "static")
    assert "small: 2 runs of 2 seeds in runs/studies/small" in out


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (["--only", "statik"], 'the study "small" has no arm "statik".', 'did you mean "static"?'),
        (["--jobs", "0"], "`--jobs` must be at least 1, got 0.", ""),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(
    console: Console, tmp_path: Path, options: list[str], message: str, hint: str
) -> None:
    study = write_study(tmp_path / "small.yaml")
    error = console.refused("compare", study, "--out", tmp_path / "out", *options)
    assert message in error
    assert hint in error
    assert not (tmp_path / "out").exists()


def test_one_process_works_on_a_study(console: Console, tmp_path: Path) -> None:
    lock = DirectoryLock.take(tmp_path / "out", LOCK_FILE, create=True)
    try:
        lock.sign()
        study = write_study(tmp_path / "small.yaml")
        error = console.refused("compare", study, "--out", tmp_path / "out")
    finally:
        lock.release()
    assert f"RunLockedError: {tmp_path / 'out'} is in use by process {os.getpid()}" in error
    assert "choose another --out" in error


def test_runs_of_other_settings_are_not_mixed_in(console: Console, tmp_path: Path) -> None:
    study = write_study(tmp_path / "small.yaml")
    run = tmp_path / "out" / "runs" / "static-seed1"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("ppo: {clip: 0.4}\n")
    error = console.refused("compare", study, "--out", tmp_path / "out", "--report-only")
    assert "ResumeError: the run static-seed1 was made under other settings:" in error
    assert "ppo.clip: 0.4 → 0.1" in error


def test_a_study_to_reuse_that_is_not_there_is_told(console: Console, tmp_path: Path) -> None:
    study = write_study(tmp_path / "small.yaml")
    there = tmp_path / "nowhere"
    options = ("--out", tmp_path / "out", "--report-only", "--reuse", there)
    code, out, _ = console.run("compare", study, *options)
    assert code == 0
    assert f"note      {there} holds no study: nothing is copied from it" in out


def test_a_failed_run_is_told_and_the_exit_code_says_so(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def doomed(arguments: Any) -> list[str]:
        return [sys.executable, "-c", "raise SystemExit('no luck')"]

    monkeypatch.setattr("gtr_turbo.studies.runner.arguments_of", doomed)
    study = write_study(tmp_path / "small.yaml", seeds=[0])
    start = time.monotonic()
    code, out, _ = console.run("compare", study, "--out", tmp_path / "out", "--jobs", "2")
    assert code == 1
    assert "rl4vlm-seed0 failed: it ended with exit code 1" in out
    assert "\n  no luck\n" in out
    assert time.monotonic() - start < 20
