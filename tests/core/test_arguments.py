import dataclasses
from pathlib import Path

import pytest
import tyro

from gtr_turbo.core import arguments
from gtr_turbo.core.arguments import EvalArguments, MergeArguments, SftArguments, TrainArguments
from gtr_turbo.core.config import Config

KINDS = [kind for name, kind in vars(arguments).items() if name.endswith("Arguments")]


def test_each_command_has_its_arguments() -> None:
    assert sorted(kind.__name__ for kind in KINDS) == [
        "CompareArguments",
        "EnvCheckArguments",
        "EnvListArguments",
        "EvalArguments",
        "JudgeArguments",
        "MergeArguments",
        "PlayArguments",
        "ReportArguments",
        "SftArguments",
        "TrainArguments",
    ]


@pytest.mark.parametrize("kind", [TrainArguments, SftArguments])
def test_no_option_is_named_like_a_section_of_the_configuration(kind: type) -> None:
    # `--section VALUE` sets a whole section, so the two must not meet.
    assert not {field.name for field in dataclasses.fields(kind)} & Config.model_fields.keys()


def test_hyphens_and_underscores_are_the_same() -> None:
    expected = TrainArguments(run_dir=Path("x"), dry_run=True)
    for words in (["--run-dir", "x", "--dry-run"], ["--run_dir=x", "--dry_run"]):
        assert tyro.cli(TrainArguments, args=words) == expected


def test_checkpoints_stand_first_and_weights_take_several_numbers() -> None:
    found = tyro.cli(MergeArguments, args=["a", "b", "--weights", "2", "1", "--out", "c"])
    assert found.checkpoints == (Path("a"), Path("b"))
    assert found.weights == (2.0, 1.0)
    assert found.out == Path("c")


def test_arguments_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        EvalArguments(run_dir=Path("x")).who = "teacher"  # pyright: ignore[reportAttributeAccessIssue]
