import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gtr_turbo.merging.arrays import native
from gtr_turbo.merging.arrays.trimming import SMALLEST_MAGNITUDE
from gtr_turbo.merging.changes import Change
from gtr_turbo.merging.formats import find_format
from gtr_turbo.merging.sums import SignSums

NUM = 70_001
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture
def asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("GTR_TURBO_NATIVE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    native.native_kernels.cache_clear()
    yield tmp_path
    native.native_kernels.cache_clear()


def summed(num_checkpoints: int = 5) -> SignSums:
    generator = torch.Generator().manual_seed(0)
    sums = SignSums(NUM, find_format("fp32"), "matched")
    for index in range(num_checkpoints):
        values = torch.randn(NUM, generator=generator)
        values[::7] = 0.0
        values[1::5] = torch.round(values[1::5])
        change = Change(name="w", label="c", checkpoint=values, base=values * 0.5)
        sums.add(change, 1.0, SMALLEST_MAGNITUDE if index == 0 else 0.1 * index)
    return sums


@needs_compiler
def test_both_loops_give_the_same_bits(asked_for: Path) -> None:
    assert native.native_kernels() is not None
    found = summed()
    merged = found.finish(5.0, None)
    native.native_kernels.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GTR_TURBO_NATIVE")
        expected = summed()
        assert native.native_kernels() is None
        for name, value in expected.tensors().items():
            assert torch.equal(found.tensors()[name], value)
        assert torch.equal(merged, expected.finish(5.0, None))
    assert len(list((asked_for / "gtr-turbo").iterdir())) == 1


@needs_compiler
def test_a_library_is_built_once(tmp_path: Path) -> None:
    compiler = str(shutil.which("cc"))
    first = native.build(compiler, tmp_path)
    changed_at = first.stat().st_mtime_ns
    assert native.build(compiler, tmp_path) == first
    assert first.stat().st_mtime_ns == changed_at


def test_without_a_compiler_there_is_a_warning(
    asked_for: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.warns(UserWarning, match="no C compiler"):
        assert native.native_kernels() is None
    assert not list(asked_for.iterdir())


def test_the_cache_is_the_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert native.cache_directory() == Path.home() / ".cache" / "gtr-turbo"
