"""Merging of directories: models in shards, PEFT adapters, whole runs."""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import torch
from torch import Tensor

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging.adapter_files import AdapterFiles, is_adapter
from gtr_turbo.merging.adapter_output import write_adapter
from gtr_turbo.merging.api import check_method, merge_stream
from gtr_turbo.merging.arrays.directories import is_model
from gtr_turbo.merging.arrays.manifests import sync_directory
from gtr_turbo.merging.model_card import write_card
from gtr_turbo.merging.model_files import ModelFiles, find_stored_name
from gtr_turbo.merging.model_output import (
    Written,
    apply_changes,
    copy_companions,
    verify,
    write_change,
    write_model,
)
from gtr_turbo.merging.problem import MergeProblem, make_problem
from gtr_turbo.merging.requests import OUTPUT_DTYPES, Form, MergeReport, MergeRequest
from gtr_turbo.merging.sources import AbstractTensorSource

Progress = Callable[[str, int, int], None]
"""Gets (phase, tensors done, tensors in all); the phases are "merge" and "verify"."""

_UPDATE: Final = re.compile(r"update-\d+")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    """The opened checkpoints of a request."""

    base: ModelFiles | None
    problem: MergeProblem
    paths: tuple[Path, ...]
    adapters: tuple[AdapterFiles, ...]
    """Empty when the checkpoints are models."""
    base_names: Mapping[str, str]
    """What each merged weight is called in the base's files."""


def run_merge(request: MergeRequest, progress: Callable[[str, int, int], None]) -> MergeReport:
    """Merge directories into `request.out`, verify what was written, and return a report.

    The result appears whole or not at all: it is written beside `out` and renamed at the end. One
    tensor is in memory at a time, besides its sums.

    Args:
        request: What to merge.
        progress: Called after each tensor with (phase, done, total).

    Raises:
        MergeError: the checkpoints must not be merged, or the form cannot hold the result.
        CheckpointError: a file is missing or damaged.
    """
    check_method(request.method, request.options)
    inputs = _open(request)
    form = _form(request, inputs)
    request.out.parent.mkdir(parents=True, exist_ok=True)
    beside = request.out.with_name(f".{request.out.name}.new")
    if beside.exists():
        shutil.rmtree(beside)
    beside.mkdir()
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, beside)
        written = _write(request, inputs, form, beside, progress)
        report = _report(request, inputs, form, written)
        write_card(beside, request, report, [str(path) for path in inputs.paths])
        beside.rename(request.out)
        undo.pop_all()
    sync_directory(request.out.parent)
    return report


def expand_checkpoints(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the directories of models and adapters behind `paths`, runs spelled out in order."""
    found: list[Path] = []
    for path in paths:
        inside = path / "checkpoints"
        if is_model(path) or is_adapter(path):
            found.append(path)
        elif inside.is_dir():
            updates = sorted(
                (entry for entry in inside.iterdir() if _UPDATE.fullmatch(entry.name)),
                key=lambda entry: int(entry.name.removeprefix("update-")),
            )
            found += [_policy_of(update) for update in updates]
        elif not path.exists():
            raise CheckpointError(
                f"there is no checkpoint at {path}.", hint="check the spelling of the path."
            )
        else:
            ModelFiles(path)
    if not found:
        raise CheckpointError(
            f"the runs {', '.join(str(path) for path in paths)} have no checkpoints yet.",
            hint="a run's checkpoints are in checkpoints/update-NNNN.",
        )
    return tuple(found)


def _policy_of(update: Path) -> Path:
    """Return the directory with the weights of a run's checkpoint: itself, or `policy` inside."""
    inner = update / "policy"
    return inner if is_model(inner) or is_adapter(inner) else update


def _open(request: MergeRequest) -> _Inputs:
    paths = expand_checkpoints(request.checkpoints)
    base = None if request.base is None else ModelFiles(request.base, "the base")
    kinds = {is_adapter(path) for path in paths}
    if len(kinds) > 1:
        raise MergeError(
            "some of the checkpoints are adapters, others whole models.",
            hint="merge the adapters into their base first, or merge each kind by itself.",
        )
    if kinds == {True}:
        return _open_adapters(request, paths, base)
    if request.reference is not None:
        raise MergeError(
            f"a reference adapter ({request.reference}) was given, but the checkpoints are models.",
            hint="the reference of models is their base.",
        )
    known = () if base is None else base.names()
    sources = [ModelFiles(path, _label(path), known) for path in paths]
    return _Inputs(
        base=base,
        problem=_problem(request, base, sources, _dtype(request)),
        paths=paths,
        adapters=(),
        base_names={name: name for name in sources[0].names()},
    )


def _open_adapters(
    request: MergeRequest, paths: tuple[Path, ...], base: ModelFiles | None
) -> _Inputs:
    known = frozenset(() if base is None else base.names())

    def base_tensor(name: str) -> Tensor:
        assert base is not None
        return base.read(_stored_name(name, known))

    reader = None if base is None else base_tensor
    adapters = tuple(AdapterFiles(path, _label(path), reader) for path in paths)
    _check_one_base(adapters)
    start = None
    if request.reference is not None:
        start = AdapterFiles(request.reference, "the reference adapter", reader)
    names = adapters[0].names()
    stored = {name: _stored_name(name, known) if known else name for name in names}
    return _Inputs(
        base=base,
        problem=_problem(request, start, adapters),
        paths=paths,
        adapters=adapters,
        base_names=stored,
    )


def _problem(
    request: MergeRequest,
    base: AbstractTensorSource | None,
    sources: Sequence[AbstractTensorSource],
    dtype: torch.dtype | None = None,
) -> MergeProblem:
    return make_problem(base, sources, weights=request.weights, scale=request.scale, dtype=dtype)


def _dtype(request: MergeRequest) -> torch.dtype | None:
    return None if request.dtype is None else OUTPUT_DTYPES[request.dtype]


def _label(path: Path) -> str:
    return f"checkpoint {path}"


def _stored_name(name: str, known: frozenset[str]) -> str:
    found = find_stored_name(name, known)
    if found is None:
        raise MergeError(
            f'the adapters change "{name}", which the base does not have.',
            hint="give the base that the adapters were trained on.",
        )
    return found


def _check_one_base(adapters: tuple[AdapterFiles, ...]) -> None:
    bases = {str(adapter.config.get("base_model_name_or_path")) for adapter in adapters}
    if len(bases) > 1:
        raise MergeError(
            f"the adapters were trained on different models: {', '.join(sorted(bases))}.",
            hint="only adapters of one base can be merged.",
        )


def _form(request: MergeRequest, inputs: _Inputs) -> Form:
    form = request.form
    if form is None:
        form = "model" if inputs.base is not None or not inputs.adapters else "adapter"
    if form == "model" and inputs.adapters and inputs.base is None:
        raise MergeError(
            "a merged model of adapters needs the base model.",
            hint="give --base, or write an adapter or the dense change.",
        )
    if form != "model" and not inputs.adapters:
        raise MergeError(
            f'the form "{form}" is for adapters, but the checkpoints are models.',
            hint='models merge into a model: leave the form out or use "model".',
        )
    return form


def _write(
    request: MergeRequest, inputs: _Inputs, form: Form, out: Path, progress: Progress
) -> Written:
    options = {"density": request.density} | dict(request.options)
    merged = merge_stream(inputs.problem, request.method, options)
    if form == "adapter":
        return write_adapter(request, inputs.problem, inputs.adapters, merged, out, progress)
    if form == "change":
        return write_change(inputs.problem, merged, out, progress)
    first = inputs.base or ModelFiles(inputs.paths[0])
    dtype = _dtype(request)
    if inputs.adapters:
        merged = apply_changes(first, _named(merged, inputs.base_names), dtype)
    num_changed = write_model(first, merged, out, dtype, progress)
    copy_companions(first.path, out, dtype)
    return verify(first, out, dtype, num_changed, progress)


def _named(
    merged: Iterator[tuple[str, Tensor]], names: Mapping[str, str]
) -> Iterator[tuple[str, Tensor]]:
    for name, tensor in merged:
        yield names[name], tensor


def _report(request: MergeRequest, inputs: _Inputs, form: Form, written: Written) -> MergeReport:
    return MergeReport(
        out=request.out,
        form=form,
        method=request.method,
        num_checkpoints=len(inputs.paths),
        num_tensors=written.num_tensors,
        num_parameters=written.num_parameters,
        num_changed_tensors=written.num_changed_tensors,
        fingerprint=written.fingerprint,
        residual=written.residual,
        merged_names=tuple(path.name for path in inputs.paths),
    )


def no_progress(phase: str, done: int, total: int) -> None:
    """Do nothing with progress."""
    del phase, done, total
