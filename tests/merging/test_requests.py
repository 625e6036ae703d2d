from pathlib import Path

import pytest

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import MergeRequest


def test_defaults_are_the_paper_s(tmp_path: Path) -> None:
    request = MergeRequest(checkpoints=(tmp_path,), out=tmp_path / "out")
    assert (request.method, request.density, request.weights) == ("ties", 0.8, None)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    with pytest.raises(MergeError, match="exists already"):
        MergeRequest(checkpoints=(tmp_path,), out=tmp_path)
