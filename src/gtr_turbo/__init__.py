"""GTR-Turbo: a vision-language agent taught by a merge of its own past checkpoints.

The names below are the public ones; each is loaded when it is first used, so that importing the
package is cheap and the environments work without torch. With `GTR_TURBO_CHECK_SHAPES=1` in the
process environment every annotated shape and type is checked while the program runs.
"""

import os
from typing import TYPE_CHECKING

from gtr_turbo.core.lazy import lazy_names

if TYPE_CHECKING:
    from gtr_turbo.core.batch import Guidance, Scores, TokenRows, TurnBatch
    from gtr_turbo.core.config import Config, parse_config
    from gtr_turbo.core.turns import (
        Episode,
        Observation,
        ParsedReply,
        Prompt,
        Reply,
        StepResult,
        Turn,
    )
    from gtr_turbo.envs import AbstractTask, Demonstration, check_task, list_tasks, make_task
    from gtr_turbo.errors import GtrTurboError
    from gtr_turbo.merging import AbstractAccumulator, make_accumulator
    from gtr_turbo.policies.base import AbstractPolicy
    from gtr_turbo.policies.vlm import VlmPolicy
    from gtr_turbo.presets import make_preset

__version__ = "0.1.0"

__all__ = [
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

_HOMES = {
    "gtr_turbo.core.batch": ("Guidance", "Scores", "TokenRows", "TurnBatch"),
    "gtr_turbo.core.config": ("Config", "parse_config"),
    "gtr_turbo.core.turns": (
        "Episode",
        "Observation",
        "ParsedReply",
        "Prompt",
        "Reply",
        "StepResult",
        "Turn",
    ),
    "gtr_turbo.envs": ("AbstractTask", "Demonstration", "check_task", "list_tasks", "make_task"),
    "gtr_turbo.errors": ("GtrTurboError",),
    "gtr_turbo.merging": ("AbstractAccumulator", "make_accumulator"),
    "gtr_turbo.policies.base": ("AbstractPolicy",),
    "gtr_turbo.policies.vlm": ("VlmPolicy",),
    "gtr_turbo.presets": ("make_preset",),
}
__getattr__, __dir__ = lazy_names(globals(), _HOMES)


if os.environ.get("GTR_TURBO_CHECK_SHAPES") == "1":
    from jaxtyping import install_import_hook

    install_import_hook("gtr_turbo", "beartype.beartype")
