import errno
import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gtr_turbo.core.faultline import FAULT_VARIABLE, InjectedFaultError, forget_passings
from gtr_turbo.core.files import (
    dump_json,
    file_sha256,
    is_disk_full,
    write_bytes_atomically,
    write_text_atomically,
)
from gtr_turbo.errors import CheckpointError, NonFiniteError


@contextmanager
def files_limited_to(num_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size: what a full disk looks like, without root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_text_is_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_text_atomically(path, "old")
    write_text_atomically(path, "new ½")
    assert path.read_text(encoding="utf-8") == "new ½"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("point", ["file.written", "file.synced"])
@pytest.mark.parametrize(
    ("action", "error"), [("raise", InjectedFaultError), ("enospc", CheckpointError)]
)
def test_a_failure_leaves_the_old_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    action: str,
    error: type[Exception],
) -> None:
    path = tmp_path / "x"
    write_text_atomically(path, "old")
    forget_passings()
    monkeypatch.setenv(FAULT_VARIABLE, f"{point}:1:{action}")
    with pytest.raises(error):
        write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_full_disk_is_named_with_needed_and_free_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_text_atomically(path, "old")
    with (
        files_limited_to(10_000),
        pytest.raises(
            CheckpointError, match=r"/x: it needs 20,000 bytes, and [\d,]+ bytes are free"
        ),
    ):
        write_bytes_atomically(path, bytes(20_000))
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1.0, float("nan")]}, "a.1"),
        ({"a": {"b": float("inf")}}, "a.b"),
        (float("-inf"), "value"),
        ([0, (1, float("nan"))], "1.1"),
        ({"a": 0.5, float("nan"): 1}, "a key"),
    ],
)
def test_non_finite_numbers_are_refused_by_place(value: object, place: str) -> None:
    with pytest.raises(NonFiniteError, match=f"`{place}` is not a finite number"):
        dump_json(value)  # type: ignore[arg-type]


def test_json_keeps_floats_exactly_and_half_characters_safely() -> None:
    value = {"third": 1 / 3, "half": "\ud800", "text": "½"}
    text = dump_json(value)
    assert json.loads(text) == value
    assert text.encode("utf-8")


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(errno.ENOSPC, "x"), True),
        (OSError(errno.EFBIG, "x"), True),
        (OSError(errno.EACCES, "No space left for jokes"), False),
        (RuntimeError("I/O error: No space left on device (os error 28)"), True),
        (RuntimeError("something else"), False),
    ],
)
def test_what_counts_as_a_full_disk(error: Exception, full: bool) -> None:
    assert is_disk_full(error) is full


def test_sha256_of_a_known_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")  # FIPS 180-2, appendix B.1
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_sha256(tmp_path / "x") == expected
