"""Merging of a run's own checkpoints: exact, and at a cost constant in their number.

Names are loaded when they are first used: `arrays`, which needs no torch, then comes without it.
"""

from typing import TYPE_CHECKING

from gtr_turbo.core.lazy import lazy_names

if TYPE_CHECKING:
    from gtr_turbo.errors import MergeError
    from gtr_turbo.merging.accumulate import (
        ACCUMULATORS,
        AbstractAccumulator,
        LinearAccumulator,
        TiesAccumulator,
        load_accumulator,
        make_accumulator,
        restore_accumulator,
    )
    from gtr_turbo.merging.api import merge, merge_stream
    from gtr_turbo.merging.directories import run_merge
    from gtr_turbo.merging.io import fingerprint
    from gtr_turbo.merging.lora import (
        LoraFactors,
        concatenate_adapters,
        lora_delta,
        lora_scaling,
        merge_adapters,
    )
    from gtr_turbo.merging.mergekit_recipes import read_mergekit
    from gtr_turbo.merging.methods import METHODS
    from gtr_turbo.merging.problem import MergeProblem, make_problem
    from gtr_turbo.merging.requests import MergeReport, MergeRequest
    from gtr_turbo.merging.rounding import MergeWarning
    from gtr_turbo.merging.settings import TiesOptions
    from gtr_turbo.merging.weights import ema_weights, sma_weights

__all__ = [
    "ACCUMULATORS",
    "METHODS",
    "AbstractAccumulator",
    "LinearAccumulator",
    "LoraFactors",
    "MergeError",
    "MergeProblem",
    "MergeReport",
    "MergeRequest",
    "MergeWarning",
    "TiesAccumulator",
    "TiesOptions",
    "concatenate_adapters",
    "ema_weights",
    "fingerprint",
    "load_accumulator",
    "lora_delta",
    "lora_scaling",
    "make_accumulator",
    "make_problem",
    "merge",
    "merge_adapters",
    "merge_stream",
    "read_mergekit",
    "restore_accumulator",
    "run_merge",
    "sma_weights",
]

_HOMES = {
    "gtr_turbo.errors": ("MergeError",),
    "gtr_turbo.merging.accumulate": (
        "ACCUMULATORS",
        "AbstractAccumulator",
        "LinearAccumulator",
        "TiesAccumulator",
        "load_accumulator",
        "make_accumulator",
        "restore_accumulator",
    ),
    "gtr_turbo.merging.api": ("merge", "merge_stream"),
    "gtr_turbo.merging.directories": ("run_merge",),
    "gtr_turbo.merging.io": ("fingerprint",),
    "gtr_turbo.merging.lora": (
        "LoraFactors",
        "concatenate_adapters",
        "lora_delta",
        "lora_scaling",
        "merge_adapters",
    ),
    "gtr_turbo.merging.mergekit_recipes": ("read_mergekit",),
    "gtr_turbo.merging.methods": ("METHODS",),
    "gtr_turbo.merging.problem": ("MergeProblem", "make_problem"),
    "gtr_turbo.merging.requests": ("MergeReport", "MergeRequest"),
    "gtr_turbo.merging.rounding": ("MergeWarning",),
    "gtr_turbo.merging.settings": ("TiesOptions",),
    "gtr_turbo.merging.weights": ("ema_weights", "sma_weights"),
}
__getattr__, __dir__ = lazy_names(globals(), _HOMES)
