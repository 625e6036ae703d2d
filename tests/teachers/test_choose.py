"""From a configuration to whoever guides."""

from pathlib import Path
from typing import Any

import pytest
import torch

from gtr_turbo.errors import ConfigError
from gtr_turbo.report.console import NullProgress
from gtr_turbo.teachers.choose import check_guide, make_guide
from gtr_turbo.teachers.constant import ConstantTeacher
from gtr_turbo.teachers.corrected import CorrectedThoughts
from gtr_turbo.teachers.merged import WeightTeacher
from gtr_turbo.teachers.writer import ThoughtWriter
from gtr_turbo.train.pipeline import run_training
from tests.world import tiny_config


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"guidance__kind": "none"}, WeightTeacher),
        ({"guidance__kind": "kl"}, WeightTeacher),
        ({"guidance__kind": "distillation", "guidance__teacher": "static"}, WeightTeacher),
        ({"guidance__kind": "constant"}, ConstantTeacher),
        ({"guidance__kind": "sft"}, ThoughtWriter),
        ({"guidance__kind": "sft", "guidance__teacher": "corrector"}, CorrectedThoughts),
    ],
)
def test_each_kind_has_its_teacher(fields: dict[str, Any], kind: type, tmp_path: Path) -> None:
    config = tiny_config("unused", **fields)
    weights = WeightTeacher(config.guidance, 1.0, 4)
    guide = make_guide(config, weights, torch.Generator(), tmp_path)
    assert type(guide) is kind
    is_asked = kind is WeightTeacher and config.guidance.kind != "none"
    assert (guide is weights) == is_asked
    assert guide.is_ready == (kind in (ConstantTeacher, CorrectedThoughts))
    guide.close()


CORRECTED = {"guidance__kind": "sft", "guidance__teacher": "corrector"}


def test_a_corrector_without_its_key_is_noticed_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    config = tiny_config(
        "no/such/model",
        corrector__url="http://127.0.0.1:9/v1",
        corrector__api_key_variable="NO_SUCH_KEY",
        **CORRECTED,
    )
    path = tmp_path / "run"
    with pytest.raises(ConfigError, match="NO_SUCH_KEY, which is to hold the key"):
        run_training(config, path, NullProgress(), resume=False)
    assert not path.exists()
    monkeypatch.setenv("NO_SUCH_KEY", "EMPTY")
    check_guide(config)


@pytest.mark.parametrize("fields", [CORRECTED, {"guidance__kind": "sft"}, {}])
def test_who_needs_no_key_is_ready(fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    check_guide(tiny_config("unused", **fields))
