import os
from pathlib import Path
from typing import Any

import pytest

from gtr_turbo.core.config import Config, flatten, parse_config
from gtr_turbo.core.overrides import put
from gtr_turbo.presets import make_preset
from gtr_turbo.report.console import NullProgress
from gtr_turbo.runstate import RunDirectory
from gtr_turbo.studies.starts import give_start, is_whole, start_config, start_key
from gtr_turbo.train import pipeline
from tests.studies.small import FIELDS
from tests.train.runs import numbers, run


def config(**fields: Any) -> Config:
    values = make_preset("ezpoints-tiny").model_dump(mode="json")
    given = {key.replace("__", "."): value for key, value in fields.items()}
    for key, value in {**FIELDS, "evaluation.num_episodes": 2, "sft.num_steps": 2, **given}.items():
        put(values, key, value)
    return parse_config(values)


def key(**fields: Any) -> str:
    start = start_config(config(**fields))
    assert start is not None
    return start_key(start)


def test_arms_share_a_start_and_what_it_depends_on_does_not() -> None:
    same = [
        {"guidance__kind": "none"},
        {"merge__method": "linear"},
        {"ppo__clip": 0.3},
        {"model__finetuning": "lora"},
        {"rollout__temperature": 0.3},
        {"run__num_updates": 0},
        {"evaluation__num_episodes": 5},
    ]
    other = [
        {"run__seed": 1},
        {"sft__num_steps": 3},
        {"sft__mistake_rate": 0.1},
        {"task__rules": {"max_steps": 3}},
        {"model__path": "tiny:qwen3_vl"},
        {"critic__hidden_sizes": [9]},
        {"ppo__micro_batch_size": 4},
        {"run__num_threads": 2},
        {"sft__finetuning": "lora"},
    ]
    assert {key(**fields) for fields in same} == {key()}
    assert len({key(**fields) for fields in other} | {key()}) == len(other) + 1


def test_a_start_knows_nothing_of_the_arm() -> None:
    start = start_config(config(guidance__kind="none", ppo__clip=0.3, merge__density=0.1))
    assert start is not None
    assert (start.guidance, start.merge) == (Config().guidance, Config().merge)
    assert start.ppo == Config().ppo.model_copy(update={"micro_batch_size": 8})
    assert flatten(start.model_dump())["task.rules.picture"] == "compact"


def test_a_run_without_supervised_steps_has_no_start_to_share() -> None:
    assert start_config(config(sft__num_steps=0)) is None


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a start, made as `gtr-turbo sft` makes it."""
    path = tmp_path_factory.mktemp("starts") / "start"
    start = start_config(config())
    assert start is not None
    with RunDirectory.open(path, start, resume=False) as directory:
        pipeline.start_config(start, directory, NullProgress())
    return path


def test_a_run_with_a_shared_start_is_the_run_that_makes_its_own(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = config(guidance__teacher="static", run__num_updates=2)
    run(own, tmp_path / "alone")
    give_start(shared, tmp_path / "given")
    monkeypatch.delattr(pipeline, "_run_sft")
    monkeypatch.delattr(pipeline, "_make_tiny")
    run(own, tmp_path / "given", resume=True)
    assert numbers(tmp_path / "given") == numbers(tmp_path / "alone")
    for name in ("model/model.safetensors", "sft/model.safetensors"):
        alone, given = tmp_path / "alone" / name, tmp_path / "given" / name
        assert given.read_bytes() == alone.read_bytes()
        assert os.path.samefile(given, shared / name)  # linked, so it takes no room


def test_a_start_is_whole_or_made_again(shared: Path, tmp_path: Path) -> None:
    assert is_whole(shared)
    assert not is_whole(tmp_path)
    give_start(shared, tmp_path / "run")
    copy = tmp_path / "run"
    assert is_whole(copy)
    weights = copy / "sft" / "model.safetensors"
    data = weights.read_bytes()
    weights.unlink()  # a link: the shared file must stay as it is
    weights.write_bytes(data[:-1] + b"\0")
    assert not is_whole(copy)
    give_start(shared, copy)
    assert not is_whole(copy)  # what is there is left to the run, which verifies it
    assert is_whole(shared)


def test_files_are_copied_where_they_cannot_be_linked(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    give_start(shared, tmp_path / "run")
    assert is_whole(tmp_path / "run")
    weights = "sft/model.safetensors"
    assert not os.path.samefile(tmp_path / "run" / weights, shared / weights)
