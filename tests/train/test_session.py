"""Whole runs under the settings that decide who teaches, and when."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from gtr_turbo.errors import ResumeError
from gtr_turbo.merging import fingerprint
from gtr_turbo.report.console import NullProgress
from gtr_turbo.runstate import RunDirectory
from gtr_turbo.teachers.merged import zero_change
from gtr_turbo.train.pipeline import open_session
from tests.train.runs import numbers, run, session_of
from tests.world import World, tiny_config

QUICK: dict[str, Any] = {
    "rollout__turns_per_update": 8,
    "rollout__max_new_tokens": 24,
    "evaluation__num_episodes": 1,
    "critic__warmup_updates": 0,
}


def metrics(world: World, path: Path, **fields: Any) -> list[dict[str, Any]]:
    run(tiny_config(world.trained, **{**QUICK, **fields}), path)
    return numbers(path)["metrics"]


def column(lines: list[dict[str, Any]], name: str) -> list[Any]:
    return [line[name] for line in lines]


def test_the_first_update_has_no_guidance(world: World, tmp_path: Path) -> None:
    lines = metrics(world, tmp_path / "run")
    assert column(lines, "teacher_fingerprint")[0] is None
    assert column(lines, "guided_share")[0] == 0
    assert column(lines, "guidance_kl")[0] is None
    assert all(share > 0 for share in column(lines, "guided_share")[1:])
    assert column(lines, "teacher_updates") == [0, 1, 2]
    assert len(set(column(lines, "teacher_fingerprint"))) == 3
    for line in lines:
        assert line["logprob_gap"] < 1e-5
    assert column(lines, "picture_effect_agent")[0] > 0
    assert column(lines, "picture_effect_teacher")[:2][1] > 0


def test_no_guidance_is_guidance_of_weight_zero(world: World, tmp_path: Path) -> None:
    """Subtracting 0 · KL changes no bit, so both arms are one until the coefficient is not 0."""
    shas = {}
    for name, fields in {
        "none": {"guidance__kind": "none"},
        "zero": {"guidance__coef": 0.0},
        "kl": {"guidance__coef": 5.0},
    }.items():
        path = tmp_path / name
        metrics(world, path, **fields, run__num_updates=2, guidance__into="advantage")
        shas[name] = numbers(path)["summary"]["agent"]["weights_sha256"]
    assert shas["none"] == shas["zero"]
    assert shas["kl"] != shas["none"]


def test_a_baseline_run_has_no_teacher(world: World, tmp_path: Path) -> None:
    lines = metrics(world, tmp_path / "run", guidance__kind="none", run__num_updates=2)
    assert column(lines, "teacher_updates") == [0, 0]
    assert numbers(tmp_path / "run")["summary"]["teacher"] is None
    assert not (tmp_path / "run" / "teacher").exists()


def test_a_static_teacher_is_the_start_of_the_run(world: World, tmp_path: Path) -> None:
    config = tiny_config(world.trained, **QUICK, guidance__teacher="static")
    session = session_of(config, tmp_path / "own")
    start = fingerprint(zero_change(session.policy.change()))
    session.run.close()
    lines = metrics(world, tmp_path / "run", guidance__teacher="static")
    assert column(lines, "teacher_fingerprint") == [None, start, start]
    assert column(lines, "guided_share")[1] > 0


def test_a_frozen_teacher_stays_the_first_merge(world: World, tmp_path: Path) -> None:
    lines = metrics(world, tmp_path / "run", merge__freeze_after=1, run__num_updates=4)
    prints = column(lines, "teacher_fingerprint")
    assert prints[0] is None
    assert prints[1] == prints[2] == prints[3]
    assert column(lines, "teacher_updates") == [0, 1, 1, 1]


@pytest.fixture(scope="module")
def plain(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the metrics of a run whose guidance weighs nothing."""
    return metrics(world, tmp_path_factory.mktemp("plain") / "run", guidance__coef=0.0)


@pytest.mark.parametrize(
    "fields",
    [
        {"merge__method": "linear"},
        {"merge__weights": "ema", "merge__ema_alpha": 0.3},
        {"merge__density": 0.2},
        {"merge__scale": 0.5},
    ],
    ids=lambda fields: "-".join(fields),
)
def test_each_merge_setting_makes_another_teacher(
    world: World, plain: list[dict[str, Any]], tmp_path: Path, fields: dict[str, Any]
) -> None:
    """The first two updates are equal, so the teacher of update 3 differs by the merge alone."""
    other = metrics(world, tmp_path / "other", guidance__coef=0.0, **fields)
    assert column(plain, "return") == column(other, "return")
    assert plain[2]["teacher_fingerprint"] != other[2]["teacher_fingerprint"]


def test_the_critics_warm_up_is_not_remembered(world: World, tmp_path: Path) -> None:
    lines = metrics(world, tmp_path / "run", critic__warmup_updates=1, run__num_updates=4)
    assert column(lines, "teacher_updates") == [0, 0, 1, 2]
    assert column(lines, "grad_norm")[0] == 0


def test_a_finished_run_returns_its_summary_again(world: World, tmp_path: Path) -> None:
    config = tiny_config(world.trained, **QUICK, run__num_updates=1)
    first = run(config, tmp_path / "run")
    again = run(config, tmp_path / "run", resume=True)
    assert first["agent"] == again["agent"]
    assert first["teacher"] == again["teacher"]
    assert (tmp_path / "run" / "report.html").is_file()


def test_a_run_without_updates_measures_its_start(world: World, tmp_path: Path) -> None:
    summary = run(tiny_config(world.trained, **QUICK, run__num_updates=0), tmp_path / "run")
    assert summary["updates"] == 0
    assert summary["agent"]["success_rate"] == summary["initial"]["success_rate"]
    assert summary["teacher"] is None


def test_a_checkpoint_without_its_teacher_is_not_guessed(world: World, tmp_path: Path) -> None:
    config = tiny_config(world.trained, **QUICK, run__num_updates=1)
    run(config, tmp_path / "run")
    for update in (0, 1):
        (tmp_path / "run" / "teacher" / f"update-{update:04d}" / "history.json").unlink()
    with (
        RunDirectory.open(tmp_path / "run", config, resume=True) as directory,
        pytest.raises(ResumeError, match=r"no checkpoint in .* has a whole teacher"),
    ):
        open_session(config, directory, NullProgress())


def test_a_damaged_teacher_falls_back_to_the_pair_before(world: World, tmp_path: Path) -> None:
    config = tiny_config(world.trained, **QUICK, run__num_updates=2)
    whole = run(config, tmp_path / "run")
    (tmp_path / "run" / "teacher" / "update-0002" / "history.json").unlink()
    again = run(config, tmp_path / "run", resume=True)
    assert again["agent"]["weights_sha256"] == whole["agent"]["weights_sha256"]


def test_a_longer_run_keeps_the_evaluations_of_the_shorter(world: World, tmp_path: Path) -> None:
    for updates in (1, 2):
        config = tiny_config(world.trained, **QUICK, run__num_updates=updates)
        run(config, tmp_path / "run", resume=updates > 1)
    lines = (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()
    agent = [json.loads(line) for line in lines if json.loads(line)["who"] == "agent"]
    assert [line["update"] for line in agent] == [1, 2]


def test_a_run_leaves_torchs_threads_as_configured(world: World, tmp_path: Path) -> None:
    metrics(world, tmp_path / "run", run__num_updates=0, run__num_threads=1)
    assert torch.get_num_threads() == 1


def test_a_run_whose_agent_takes_no_step_goes_on_with_the_teacher_it_has(
    world: World, tmp_path: Path
) -> None:
    """A babbling teacher writes nothing, and there is no other objective: a gradient of nothing."""
    fields = {**QUICK, "guidance__kind": "sft", "ppo__objective": "none", "run__num_updates": 4}
    run(tiny_config(world.untrained("qwen2_5_vl"), **fields), tmp_path / "run")
    lines = numbers(tmp_path / "run")["metrics"]
    assert column(lines, "grad_norm") == [0.0] * 4
    assert len(set(column(lines, "teacher_fingerprint")[1:])) == 1
