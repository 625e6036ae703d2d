import os
from pathlib import Path

import pytest

from gtr_turbo.core.config import Config, parse_config
from gtr_turbo.errors import ResumeError
from gtr_turbo.runstate import RunDirectory
from gtr_turbo.studies.places import StudyPlaces, has_samples, is_finished
from gtr_turbo.studies.study import StudyRun


def run(**fields: object) -> StudyRun:
    config = parse_config({"run": {"num_updates": 3, **fields}, "ppo": {"clip": 0.2}})
    return StudyRun(arm="kl", seed=1, config=config)


def test_everything_lies_below_the_studys_directory() -> None:
    places = StudyPlaces(Path("s"))
    found = [places.run("kl-seed1"), places.config("kl-seed1"), places.log("kl-seed1")]
    assert found == [Path("s/runs/kl-seed1"), Path("s/configs/kl-seed1.yaml"),
                     Path("s/logs/kl-seed1.log")]  # fmt: skip
    assert places.start("abc") == Path("s/starts/abc")
    assert run().name == "kl-seed1"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    RunDirectory.open(path, run().config, resume=False).close()
    return path


def test_a_run_is_finished_when_all_its_updates_are_in_its_summary(
    directory: Path, tmp_path: Path
) -> None:
    assert not is_finished(tmp_path / "nothing", run())
    assert not is_finished(directory, run())
    (directory / "summary.json").write_text('{"updates": 3}')
    assert is_finished(directory, run())
    assert not is_finished(directory, run(num_updates=5))  # the study has grown: it goes on
    assert is_finished(directory, run(check_interval=7))  # bookkeeping may change


def test_a_run_of_other_settings_is_named_with_the_differences(directory: Path) -> None:
    (directory / "summary.json").write_text('{"updates": 3}')
    other = StudyRun(arm="kl", seed=1, config=Config())
    with pytest.raises(ResumeError) as caught:
        is_finished(directory, other)
    assert caught.value.message == (
        "the run kl-seed1 was made under other settings:\n  ppo.clip: 0.2 → 0.1"
    )
    assert caught.value.hint == f"give the study another --out, or delete {directory}."
    with pytest.raises(ResumeError, match="has 3 updates already, but the study asks for 2"):
        is_finished(directory, run(num_updates=2))


def test_a_run_that_was_carried_further_is_not_finished_with_its_old_summary(
    directory: Path,
) -> None:
    (directory / "summary.json").write_text('{"updates": 3}')
    (directory / "metrics.jsonl").write_text('{"update": 3}\n{"update": 4}\n')
    with pytest.raises(ResumeError, match="has 4 updates already, but the study asks for 3"):
        is_finished(directory, run())
    assert not is_finished(directory, run(num_updates=6))


@pytest.mark.parametrize(
    ("made", "wanted", "other"),
    [
        ("scripted", "https://api.example.org/v1", True),
        ("https://api.example.org/v1", "scripted", True),
        ("https://api.example.org/v1", "https://proxy.example.org/v1", False),
    ],
)
def test_a_scripted_corrector_is_another_arm_than_a_model(
    tmp_path: Path, made: str, wanted: str, other: bool
) -> None:
    def of(url: str) -> StudyRun:
        teacher = {"kind": "sft", "teacher": "corrector"}
        config = parse_config({"guidance": teacher, "corrector": {"url": url}})
        return StudyRun(arm="gtr", seed=0, config=config)

    RunDirectory.open(tmp_path / "run", of(made).config, resume=False).close()
    if other:
        with pytest.raises(ResumeError, match=f"corrector.url: {made} → {wanted}"):
            is_finished(tmp_path / "run", of(wanted))
    else:
        assert not is_finished(tmp_path / "run", of(wanted))


def test_a_run_whose_configuration_cannot_be_read_is_named(directory: Path) -> None:
    (directory / "config.yaml").write_text("ppo: {clop: 1}\n")
    with pytest.raises(ResumeError, match="kl-seed1 was made under other settings: there is no"):
        is_finished(directory, run())


def test_samples_are_those_of_the_finished_agent(directory: Path) -> None:
    samples, summary = directory / "samples.json", directory / "summary.json"
    assert not has_samples(directory, 2)
    summary.write_text('{"updates": 3, "agent": {"weights_sha256": "ab"}}')
    assert not has_samples(directory, 2)
    samples.write_text('{"samples": ["10", "01"], "weights_sha256": "ab"}')
    assert has_samples(directory, 2)
    assert not has_samples(directory, 3)
    os.utime(samples, ns=(0, 0))  # a copy may have any time
    assert has_samples(directory, 2)
    summary.write_text('{"updates": 6, "agent": {"weights_sha256": "cd"}}')
    assert not has_samples(directory, 2)
