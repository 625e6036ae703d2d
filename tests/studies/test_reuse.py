from pathlib import Path

from gtr_turbo.core.lock import DirectoryLock
from gtr_turbo.core.manifest import write_manifest
from gtr_turbo.studies.places import StudyPlaces, is_finished
from gtr_turbo.studies.reuse import take_over
from gtr_turbo.studies.starts import start_config, start_key
from gtr_turbo.studies.study import planned_runs, read_study
from tests.studies.fake_study import make_study
from tests.studies.small import write_study


def test_finished_runs_of_the_same_settings_are_taken_over(tmp_path: Path) -> None:
    _, runs, there = make_study(tmp_path / "one")
    (there.run("rl4vlm-seed0") / "LOCK").write_text("held")
    (there.run("gtr-turbo-kl-seed1") / "summary.json").unlink()  # not finished
    here = StudyPlaces(tmp_path / "two")
    assert take_over(here, runs, [tmp_path / "nowhere", there.home]) == [
        "rl4vlm-seed0",
        "gtr-turbo-kl-seed0",
        "rl4vlm-seed1",
    ]
    assert [is_finished(here.run(run.name), run) for run in runs] == [True, True, True, False]
    summary = "runs/rl4vlm-seed0/summary.json"
    assert (here.home / summary).read_bytes() == (there.home / summary).read_bytes()
    assert not (here.run("rl4vlm-seed0") / "LOCK").exists()
    assert take_over(here, runs, [there.home]) == []


def test_a_run_that_somebody_is_at_work_on_is_left_alone(tmp_path: Path) -> None:
    _, runs, there = make_study(tmp_path / "one")
    here = StudyPlaces(tmp_path / "two")
    lock = DirectoryLock.take(there.run("rl4vlm-seed0"), "LOCK", create=True)
    try:
        assert "rl4vlm-seed0" not in take_over(here, runs, [there.home])
    finally:
        lock.release()
    assert take_over(here, runs, [there.home]) == ["rl4vlm-seed0"]


def test_runs_of_other_settings_are_left_where_they_are(tmp_path: Path) -> None:
    _, _, there = make_study(tmp_path / "one")
    fields = {"run.num_updates": 2, "ppo.clip": 0.3}
    file = write_study(tmp_path / "two.yaml", arms=["rl4vlm"], overrides=fields)
    here = StudyPlaces(tmp_path / "two")
    assert take_over(here, planned_runs(read_study(file)), [there.home]) == []
    assert not here.home.exists()


def test_whole_starts_are_taken_over_too(tmp_path: Path) -> None:
    runs = planned_runs(
        read_study(write_study(tmp_path / "s.yaml", overrides={"sft.num_steps": 2}))
    )
    here, there = StudyPlaces(tmp_path / "two"), StudyPlaces(tmp_path / "one")
    starts = [start_config(run.config) for run in runs if run.arm == "rl4vlm"]
    keys = [start_key(start) for start in starts if start is not None]
    for key in keys:
        (there.start(key) / "sft").mkdir(parents=True)
    write_manifest(there.start(keys[1]) / "sft", {})
    assert take_over(here, runs, [there.home]) == []
    assert not here.start(keys[0]).exists()  # the other study has not finished it
    assert here.start(keys[1]).is_dir()
