import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import final

import pytest

from gtr_turbo.core.config import Config
from gtr_turbo.core.lock import DirectoryLock
from gtr_turbo.errors import ResumeError
from gtr_turbo.runstate import LOCK_FILE, RunDirectory
from gtr_turbo.studies import runner
from gtr_turbo.studies.places import StudyPlaces
from gtr_turbo.studies.progress import AbstractStudyProgress, Running
from gtr_turbo.studies.runner import Job, Runner, plan_jobs
from gtr_turbo.studies.study import planned_runs, read_study
from tests.studies.small import write_study
from tests.studies.test_child import is_alive


@final
class Told(AbstractStudyProgress):
    """Keeps what it was told, and does something whenever it is asked to show."""

    def __init__(self, on_show: Callable[[int], None] = lambda number: None) -> None:
        self.lines: list[str] = []
        self.most = 0
        self._on_show, self._num_shown = on_show, 0

    def started(self, name: str) -> None:
        self.lines.append(f"started {name}")

    def finished(self, name: str) -> None:
        self.lines.append(f"finished {name}")

    def failed(self, name: str, reason: str) -> None:
        self.lines.append(f"failed {name}: {reason}")

    def show(self, running: Running) -> None:
        self.most = max(self.most, len(running))
        self._num_shown += 1
        self._on_show(self._num_shown)


@pytest.fixture(autouse=True)
def code_instead_of_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job's command is one line of Python here."""
    monkeypatch.setattr(runner, "arguments_of", lambda command: [sys.executable, "-c", *command])
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.01)


def job(home: Path, name: str, code: str | None = None, needs: str | None = None) -> Job:
    """Return a job that is done when it has written a file of its name."""
    done = home / f"{name}.done"
    return Job(
        name=name,
        config=Config(),
        directory=home / "runs" / name,
        command=(f"open({str(done)!r}, 'w').close()" if code is None else code,),
        needs=needs,
        is_done=done.exists,
        prepare=lambda: None,
    )


def make(home: Path, told: Told, slots: int = 1) -> Runner:
    return Runner(StudyPlaces(home), [{}] * slots, told, one_thread=True)


def test_jobs_run_in_order_and_wait_for_what_they_need(tmp_path: Path) -> None:
    told = Told()
    jobs = [job(tmp_path, "b", needs="a"), job(tmp_path, "c"), job(tmp_path, "a")]
    assert make(tmp_path, told).run(jobs) == []
    assert told.lines == [f"{what} {name}" for name in "cab" for what in ("started", "finished")]
    assert told.most == 1
    assert (tmp_path / "configs" / "a.yaml").is_file()


def test_as_many_run_at_a_time_as_there_are_slots(tmp_path: Path) -> None:
    told = Told()
    sleeps = [job(tmp_path, name, "import time; time.sleep(0.3)") for name in "abc"]
    make(tmp_path, told, slots=2).run(sleeps)
    assert told.most == 2


def test_a_failure_is_told_with_its_last_lines_and_the_rest_goes_on(tmp_path: Path) -> None:
    told = Told()
    broken = job(tmp_path, "a", "print('\\n'.join(map(str, range(40)))); raise SystemExit(3)")
    silent = job(tmp_path, "d", "pass")
    found = make(tmp_path, told).run([broken, job(tmp_path, "b", needs="a"),
                                      job(tmp_path, "c"), silent])  # fmt: skip
    assert [(failure.name, failure.reason) for failure in found] == [
        ("a", "it ended with exit code 3"),
        ("b", "it needs a, which failed"),
        ("d", "it ended with exit code 0"),
    ]
    assert found[0].last_lines == tuple(map(str, range(28, 40)))
    assert found[0].log == tmp_path / "logs" / "a.log"
    assert "finished c" in told.lines


def test_a_run_that_another_process_has_is_waited_for(tmp_path: Path) -> None:
    held = DirectoryLock.take(tmp_path / "runs" / "a", LOCK_FILE, create=True)
    late = 5

    def release(number: int) -> None:
        if number == late:
            (tmp_path / "a.done").touch()  # the other process has finished it
            held.release()

    told = Told(release)
    assert make(tmp_path, told).run([job(tmp_path, "a", "1 / 0"), job(tmp_path, "b")]) == []
    assert told.lines[0] == "started b"
    assert sorted(told.lines[1:]) == ["finished a", "finished b"]


def test_each_process_has_one_thread_and_its_slots_variables(tmp_path: Path) -> None:
    code = (
        "import os; print(*(os.environ[k] for k in ('OMP_NUM_THREADS', 'CUDA_VISIBLE_DEVICES')));"
        "open({!r}, 'w').close(); import time; time.sleep(0.2)"
    )
    jobs = [job(tmp_path, name, code.format(str(tmp_path / f"{name}.done"))) for name in "ab"]
    slots = [{"CUDA_VISIBLE_DEVICES": "5"}, {"CUDA_VISIBLE_DEVICES": "7"}]
    assert Runner(StudyPlaces(tmp_path), slots, Told(), one_thread=True).run(jobs) == []
    printed = {(tmp_path / "logs" / f"{name}.log").read_text() for name in "ab"}
    assert printed == {"1 5\n", "1 7\n"}


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt: a shell starts what runs in its background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("interruptible")
def test_an_end_ends_the_children_too(tmp_path: Path, end: signal.Signals) -> None:
    file = tmp_path / "pid"
    code = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"

    def stop(number: int) -> None:
        if file.exists() and file.read_text():
            os.kill(os.getpid(), end)
            time.sleep(1)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, Told(stop)).run([job(tmp_path, "a", code), job(tmp_path, "b")])
    assert not is_alive(int(file.read_text()))
    assert signal.getsignal(signal.SIGTERM) is before
    assert not (tmp_path / "b.done").exists()


# -------------------------------------------------------------------------------- what is missing


def test_what_is_missing_is_planned_start_by_start(tmp_path: Path) -> None:
    fields = {"sft.num_steps": 2}
    study = read_study(write_study(tmp_path / "study.yaml", overrides=fields))
    places = StudyPlaces(tmp_path / "out")
    jobs = plan_jobs(places, planned_runs(study))
    starts = [made.name for made in jobs if made.needs is None]
    assert len(starts) == 2
    assert [made.name for made in jobs] == [
        starts[0], "rl4vlm-seed0", "static-seed0", starts[1], "rl4vlm-seed1", "static-seed1",
    ]  # fmt: skip
    assert [made.needs for made in jobs] == [None, starts[0], starts[0], None, starts[1], starts[1]]
    without = read_study(write_study(tmp_path / "study.yaml"))
    assert len(plan_jobs(places, planned_runs(without))) == 4


def test_finished_runs_are_left_out_and_others_settings_refused(tmp_path: Path) -> None:
    runs = planned_runs(read_study(write_study(tmp_path / "study.yaml")))
    places = StudyPlaces(tmp_path / "out")
    path = places.run(runs[0].name)
    RunDirectory.open(path, runs[0].config, resume=False).close()
    assert [made.name for made in plan_jobs(places, runs)] == [run.name for run in runs]
    (path / "summary.json").write_text('{"updates": 1}')
    assert [made.name for made in plan_jobs(places, runs)] == [run.name for run in runs[1:]]
    changed = write_study(tmp_path / "study.yaml", overrides={"ppo.clip": 0.3})
    with pytest.raises(ResumeError, match="the run rl4vlm-seed0 was made under other settings"):
        plan_jobs(places, planned_runs(read_study(changed)))


def test_hands_are_played_again_after_each_run(tmp_path: Path) -> None:
    runs = planned_runs(read_study(write_study(tmp_path / "study.yaml", seeds=[0])))
    places = StudyPlaces(tmp_path / "out")
    jobs = plan_jobs(places, runs, 4)
    assert [(made.name, made.needs) for made in jobs] == [
        ("rl4vlm-seed0", None),
        ("samples-rl4vlm-seed0", "rl4vlm-seed0"),
        ("static-seed0", None),
        ("samples-static-seed0", "static-seed0"),
    ]
    path = places.run("rl4vlm-seed0")
    assert jobs[1].command == (
        "eval",
        str(path),
        "--samples",
        "4",
        "--json",
        f"{path}/samples.json",
    )
    RunDirectory.open(path, runs[0].config, resume=False).close()
    (path / "summary.json").write_text('{"updates": 1, "agent": {"weights_sha256": "ab"}}')
    assert plan_jobs(places, runs, 4)[0].name == "samples-rl4vlm-seed0"
    found = '{"samples": ["1", "0", "1", "1"], "weights_sha256": "ab"}'
    (path / "samples.json").write_text(found)
    assert plan_jobs(places, runs, 4)[0].name == "static-seed0"
