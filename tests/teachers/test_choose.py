"""From a configuration to whoever guides."""

from pathlib import Path
from typing import Any

import pytest
import torch

from gtr_turbo.teachers.choose import make_guide
from gtr_turbo.teachers.constant import ConstantTeacher
from gtr_turbo.teachers.corrected import CorrectedThoughts
from gtr_turbo.teachers.merged import WeightTeacher
from gtr_turbo.teachers.writer import ThoughtWriter
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
