"""From a configuration to whoever guides."""

from pathlib import Path

import torch

from gtr_turbo.core.config import Config
from gtr_turbo.teachers.base import AbstractTeacher
from gtr_turbo.teachers.constant import ConstantTeacher
from gtr_turbo.teachers.corrected import CorrectedThoughts
from gtr_turbo.teachers.corrector import Corrector, check_client
from gtr_turbo.teachers.merged import WeightTeacher
from gtr_turbo.teachers.writer import ThoughtWriter

ANSWERS = "corrector"
"""Folder of a run that keeps a corrector's answers."""


def check_guide(config: Config) -> None:
    """Raise ConfigError for what `make_guide` would miss, before a model is loaded or trained."""
    if config.guidance.kind == "sft" and config.guidance.teacher == "corrector":
        check_client(config.corrector)


def make_guide(
    config: Config, weights: WeightTeacher, generator: torch.Generator, run: Path
) -> AbstractTeacher:
    """Return who guides: the weights by comparison, the weights by writing, or somebody else.

    `weights` are those of the last merge, which may have been made for the guard alone: under kind
    "none" nobody guides all the same. `generator` draws what is written.
    """
    guidance = config.guidance
    if guidance.kind == "none":
        return WeightTeacher(guidance, guidance.temperature, config.ppo.micro_batch_size)
    if guidance.kind == "constant":
        return ConstantTeacher(guidance.coef)
    if guidance.kind == "sft":
        if guidance.teacher == "corrector":
            return CorrectedThoughts(Corrector(config.corrector, run / ANSWERS))
        return ThoughtWriter(weights, config, generator)
    return weights
