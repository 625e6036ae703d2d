"""Merges of files without torch give what merges of tensors give, bit for bit."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging import MergeWarning, TiesAccumulator, TiesOptions
from gtr_turbo.merging.arrays.kernels import CHUNK
from gtr_turbo.merging.arrays.merge import ArrayMerge
from gtr_turbo.merging.arrays.sources import ArrayFiles
from gtr_turbo.merging.model_files import ModelFiles
from gtr_turbo.merging.settings import MergeSettings
from gtr_turbo.merging.streamed import StreamedMerge
from gtr_turbo.merging.tensors import as_tensor

SHAPES = {"a": (CHUNK + 40, 2), "b": (3,), "c": ()}


def settings(density: float = 0.7, scale: float = 1.0) -> MergeSettings:
    return MergeSettings(
        method="ties",
        density=density,
        scale=scale,
        decay=None,
        window=None,
        options=TiesOptions(),
    )


def write_models(root: Path, num: int, dtype: torch.dtype) -> list[Path]:
    generator = torch.Generator().manual_seed(0)
    paths = [root / f"{index}.safetensors" for index in range(num)]
    at = {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
    for path in paths:
        save_file({name: value.to(dtype) for name, value in at.items()}, path)
        for value in at.values():
            value.add_(torch.randn(value.shape, generator=generator), alpha=0.1)
    return paths


def added(merge: ArrayMerge, base: Path | None, path: Path) -> dict[str, torch.Tensor]:
    own = None if base is None else ArrayFiles(base, "the base")
    stream = merge.add(own, ArrayFiles(path, path.stem))
    return {name: as_tensor(value.copy()) for name, value in stream}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize(("density", "scale"), [(0.7, 1.0), (1.0, 1.0), (0.7, 0.3)])
@pytest.mark.parametrize("with_base", [True, False])
def test_files_merge_as_tensors_do(
    dtype: torch.dtype, density: float, scale: float, with_base: bool, tmp_path: Path
) -> None:
    base, *paths = write_models(tmp_path, 5, dtype)
    start = load_file(base) if with_base else None
    in_memory = TiesAccumulator(start, density=density, scale=scale)
    own = settings(density, scale)
    for path in paths:
        found = added(ArrayMerge(tmp_path / "arrays", own), base if with_base else None, path)
        in_memory.add(load_file(path))
        expected = in_memory.merged()
        stream = StreamedMerge(tmp_path / "tensors", own)
        both = dict(stream.add(ModelFiles(base) if with_base else None, ModelFiles(path)))
        for name, value in expected.items():
            assert torch.equal(found[name], value)
            assert torch.equal(both[name], value)
    (arrays,) = (tmp_path / "arrays").glob("*.safetensors")
    (tensors,) = (tmp_path / "tensors").glob("*.safetensors")
    assert arrays.read_bytes() == tensors.read_bytes()


def test_a_state_may_change_hands(tmp_path: Path) -> None:
    base, first, second = write_models(tmp_path, 3, torch.float32)
    state = tmp_path / "state"
    dict(StreamedMerge(state, settings()).add(ModelFiles(base), ModelFiles(first)))
    found = added(ArrayMerge(state, settings()), base, second)
    in_memory = TiesAccumulator(load_file(base), density=0.7)
    for path in (first, second):
        in_memory.add(load_file(path))
    assert all(torch.equal(found[name], value) for name, value in in_memory.merged().items())
    assert ArrayMerge(state, settings()).names_inside == ("checkpoint-0", "checkpoint-1")


def test_stopping_half_way_changes_nothing(tmp_path: Path) -> None:
    base, first, second = write_models(tmp_path, 3, torch.bfloat16)
    state = tmp_path / "state"
    added(ArrayMerge(state, settings()), base, first)
    shutil.copytree(state, tmp_path / "copy")
    stream = ArrayMerge(state, settings()).add(ArrayFiles(base), ArrayFiles(second))
    assert isinstance(stream, Iterator)
    next(stream)
    del stream
    again = added(ArrayMerge(state, settings()), base, second)
    expected = added(ArrayMerge(tmp_path / "copy", settings()), base, second)
    assert all(torch.equal(again[name], value) for name, value in expected.items())


def test_what_must_not_be_merged_is_refused(tmp_path: Path) -> None:
    base, first = write_models(tmp_path, 2, torch.float32)
    broken = tmp_path / "broken.safetensors"
    save_file(load_file(first) | {"c": torch.tensor(torch.nan)}, broken)
    state = tmp_path / "state"
    with pytest.raises(MergeError, match='"c" of broken has 1 NaN'):
        added(ArrayMerge(state, settings()), base, broken)
    added(ArrayMerge(state, settings()), base, first)
    with pytest.raises(MergeError, match="was made with"):
        ArrayMerge(state, settings(density=0.5))
    save_file({"z": torch.ones(1)}, broken)
    with pytest.raises(MergeError, match='broken lacks "a"'):
        added(ArrayMerge(state, settings()), base, broken)
    with pytest.raises(CheckpointError, match="belong to other tensors"):
        added(ArrayMerge(state, settings()), None, broken)


def test_a_change_lost_to_rounding_warns(tmp_path: Path) -> None:
    (base,) = write_models(tmp_path, 1, torch.bfloat16)
    with pytest.warns(MergeWarning, match=r"100\.0%"):
        added(ArrayMerge(tmp_path / "state", settings()), base, base)


def test_one_checkpoint_at_density_one_comes_back_in_the_type_of_the_base(tmp_path: Path) -> None:
    (base,) = write_models(tmp_path, 1, torch.bfloat16)
    moved = tmp_path / "moved.safetensors"
    save_file({name: value.float() + 0.5 for name, value in load_file(base).items()}, moved)
    found = added(ArrayMerge(tmp_path / "state", settings(1.0)), base, moved)
    for name, value in load_file(moved).items():
        assert torch.equal(found[name], value.to(torch.bfloat16))


def test_merging_files_needs_no_torch() -> None:
    code = (
        "import gtr_turbo.merging.arrays.merge, gtr_turbo.merging.arrays.sources, sys\n"
        "print([name for name in ('torch', 'jaxtyping', 'safetensors') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_arrays_are_good_until_the_next_one(tmp_path: Path) -> None:
    base, first = write_models(tmp_path, 2, torch.float32)
    stream = ArrayMerge(tmp_path / "state", settings()).add(None, ArrayFiles(first))
    shapes = {name: (value.shape, value.dtype) for name, value in stream}
    assert shapes == {name: (shape, np.float32) for name, shape in SHAPES.items()}
    assert base.is_file()
