import os
import subprocess
import sys

import jaxtyping
import numpy as np
import pytest

import gtr_turbo
from tests.structure.source import SRC

PUBLIC = [
    "AbstractAccumulator",
    "AbstractPolicy",
    "AbstractTask",
    "Config",
    "Demonstration",
    "Episode",
    "GtrTurboError",
    "Guidance",
    "Observation",
    "ParsedReply",
    "Prompt",
    "Reply",
    "Scores",
    "StepResult",
    "TokenRows",
    "Turn",
    "TurnBatch",
    "VlmPolicy",
    "__version__",
    "check_task",
    "list_tasks",
    "make_accumulator",
    "make_preset",
    "make_task",
    "parse_config",
]
MAX_PUBLIC = 30


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )


def test_the_public_surface_is_small_and_changes_on_purpose() -> None:
    assert sorted(gtr_turbo.__all__) == sorted(PUBLIC)
    assert len(PUBLIC) <= MAX_PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_exists(name: str) -> None:
    assert getattr(gtr_turbo, name) is not None
    assert name in dir(gtr_turbo)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Trainer'"):
        gtr_turbo.Trainer  # noqa: B018  the access is what is tested


def test_types_are_shipped() -> None:
    assert (SRC / "py.typed").is_file()


@pytest.mark.parametrize(("switch", "refused"), [("1", True), ("0", False)])
def test_shape_checks_can_be_switched_on_outside_the_tests(switch: str, refused: bool) -> None:
    code = (
        "import numpy as np\n"
        "from gtr_turbo.core.turns import Observation\n"
        "Observation(picture=np.zeros((2, 2), np.uint8), prompt='', state_key='')\n"
    )
    done = run(code, GTR_TURBO_CHECK_SHAPES=switch)
    assert (done.returncode != 0) == refused, done.stderr
    assert ("picture" in done.stderr) == refused


def test_shapes_are_checked_in_this_suite() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="picture"):
        gtr_turbo.Observation(picture=np.zeros((2, 2), np.uint8), prompt="", state_key="")


def test_the_command_line_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gtr_turbo", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "train" in done.stdout
