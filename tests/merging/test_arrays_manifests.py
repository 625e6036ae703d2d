from pathlib import Path

import pytest

from gtr_turbo.errors import CheckpointError
from gtr_turbo.merging.arrays.manifests import read_manifest, sync_directory, write_json


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"k": [1, 0.1]})
    write_json(tmp_path / "x.json", {"k": [2]})
    sync_directory(tmp_path)
    assert read_manifest(tmp_path / "x.json") == {"k": [2]}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_manifest_has_no_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"k": float("nan")})
    assert not (tmp_path / "x.json").exists()


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"manifest\.json is missing"):
        read_manifest(tmp_path / "manifest.json")


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(CheckpointError, match="is not JSON"):
        read_manifest(tmp_path / "manifest.json")
