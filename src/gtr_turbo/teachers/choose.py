"""From a configuration to whoever guides."""

from pathlib import Path

import torch

from gtr_turbo.core.config import Config
from gtr_turbo.teachers.base import AbstractTeacher
from gtr_turbo.teachers.constant import ConstantTeacher
from gtr_turbo.teachers.corrected import CorrectedThoughts
from gtr_turbo.teachers.corrector import Corrector
from gtr_turbo.teachers.merged import WeightTeacher
from gtr_turbo.teachers.writer import ThoughtWriter

ANSWERS = "corrector"
"""Folder of a run that keeps a corrector's answers."""


def make_guide(
    config: Config, weights: WeightTeacher, generator: torch.Generator, run: Path
) -> AbstractTeacher:
    """Return who guides: the weights by comparison, the weights by writing, or somebody else.

    `weights` never get any where nobody with weights guides. `generator` draws what is written.
    """
    guidance = config.guidance
    if guidance.kind == "constant":
        return ConstantTeacher(guidance.coef)
    if guidance.kind == "sft":
        if guidance.teacher == "corrector":
            return CorrectedThoughts(Corrector(config.corrector, run / ANSWERS))
        return ThoughtWriter(weights, config, generator)
    return weights
