"""Writing of a merge as a PEFT adapter: exactly for means, by the best low rank for all others."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from gtr_turbo.merging.adapter_files import ADAPTER_CONFIG, ADAPTER_FILE, AdapterFiles
from gtr_turbo.merging.forms import residual, to_low_rank
from gtr_turbo.merging.io import write_tensors
from gtr_turbo.merging.lora import LoraFactors, concatenate_adapters
from gtr_turbo.merging.mean_family import exponential, last_of
from gtr_turbo.merging.model_output import Written, written_file
from gtr_turbo.merging.problem import MergeProblem
from gtr_turbo.merging.requests import MergeRequest

EXACT_METHODS: Final = ("linear", "sma", "ema", "uniform_soup", "window_linear")
"""Methods whose merge of adapters is an adapter again, with the ranks added up."""


def write_adapter(
    request: MergeRequest,
    problem: MergeProblem,
    adapters: Sequence[AdapterFiles],
    merged: Iterator[tuple[str, Tensor]],
    out: Path,
    progress: Callable[[str, int, int], None],
) -> Written:
    """Write the merge as an adapter and return it with its residual.

    A mean of adapters is written exactly, by concatenation, unless the request sets a rank. Any
    other merge is of full rank, so the adapter is its best approximation of the given rank, and the
    residual says what was lost.
    """
    is_exact = request.method in EXACT_METHODS and request.rank is None and problem.base is None
    names = problem.layout.merged_names
    if is_exact:
        factors = _concatenated(request, problem, adapters, progress)
        lost = 0.0
    else:
        rank = request.rank or _first_rank(adapters)
        generator = torch.Generator().manual_seed(request.seed)
        factors, lost = _approximated(merged, rank, generator, progress, len(names))
    rank = max(own.rank for own in factors.values())
    tensors: dict[str, Tensor] = {}
    for name, own in factors.items():
        module = f"base_model.model.{name.removesuffix('.weight')}"
        extra = rank - own.rank
        pad = torch.nn.functional.pad
        tensors[f"{module}.lora_A.weight"] = pad(own.a, (0, 0, 0, extra))
        tensors[f"{module}.lora_B.weight"] = pad(own.b * own.scaling, (0, extra))
    write_tensors(out / ADAPTER_FILE, tensors, {"format": "pt"})
    config = _config(adapters[0].config, rank)
    (out / ADAPTER_CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    num_changed = sum(bool(own.b.any()) and bool(own.a.any()) for own in factors.values())
    return written_file(out / ADAPTER_FILE, num_changed, lost)


def _concatenated(
    request: MergeRequest,
    problem: MergeProblem,
    adapters: Sequence[AdapterFiles],
    progress: Callable[[str, int, int], None],
) -> dict[str, LoraFactors]:
    weighted = problem
    if request.method == "ema":
        alpha = request.options.get("alpha", 0.5)
        weighted = exponential(problem, "ema", alpha, request.options.get("ema_init", "first"))
    if request.method == "window_linear":
        weighted = last_of(problem, request.options["window"])
    inside = adapters[-len(weighted.checkpoints) :]
    names = problem.layout.merged_names
    found: dict[str, LoraFactors] = {}
    for count, name in enumerate(names, start=1):
        one = [{name: adapter.factors(name)} for adapter in inside]
        own = concatenate_adapters(one, weighted.weights)[name]
        found[name] = LoraFactors(a=own.a, b=own.b, scaling=own.scaling * request.scale)
        progress("merge", count, len(names))
    return found


def _approximated(
    merged: Iterator[tuple[str, Tensor]],
    rank: int,
    generator: torch.Generator,
    progress: Callable[[str, int, int], None],
    num_names: int,
) -> tuple[dict[str, LoraFactors], float]:
    found: dict[str, LoraFactors] = {}
    missed = whole = 0.0
    for count, (name, change) in enumerate(merged, start=1):
        low = to_low_rank(change, rank, generator)
        here, all_here = residual(change, low.dense())
        missed, whole = missed + here, whole + all_here
        found[name] = low.factors
        progress("merge", count, num_names)
    return found, math.sqrt(missed / whole) if whole > 0.0 else 0.0


def _first_rank(adapters: Sequence[AdapterFiles]) -> int:
    return int(adapters[0].config["r"])


def _config(first: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """Return the first adapter's configuration with one rank for all modules and scaling 1."""
    return dict(first) | {
        "r": rank,
        "lora_alpha": rank,
        "rank_pattern": {},
        "alpha_pattern": {},
        "use_rslora": False,
        "init_lora_weights": True,
        "modules_to_save": None,
        "inference_mode": True,
    }
