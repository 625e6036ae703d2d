import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gtr_turbo.core.manifest import (
    MANIFEST_FILE,
    damage,
    move_into_place,
    remove_directory,
    write_manifest,
)
from gtr_turbo.errors import CheckpointError


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "update-0001"
    (path / "inner").mkdir(parents=True)
    numbers = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    save_file({"weight": numbers}, path / "weights.safetensors")
    (path / "state.json").write_text(json.dumps({"generators": list(range(200))}))
    (path / "inner" / "config.json").write_text("{}")
    write_manifest(path, {"update": 1})
    return path


def resign(directory: Path, **changes: object) -> None:
    """Change a manifest and give it a sha256 that fits: what a clever forger would do."""
    path = directory / MANIFEST_FILE
    manifest = json.loads(path.read_text()) | changes
    del manifest["sha256"]
    digest = hashlib.sha256(json.dumps(manifest, indent=1).encode()).hexdigest()
    path.write_text(json.dumps({**manifest, "sha256": digest}, indent=1) + "\n")


def test_a_manifest_names_every_file_with_size_and_sha256(directory: Path) -> None:
    assert damage(directory) is None
    manifest = json.loads((directory / MANIFEST_FILE).read_text())
    assert manifest["version"] == 1
    assert manifest["update"] == 1
    assert set(manifest["files"]) == {"weights.safetensors", "state.json", "inner/config.json"}
    empty_object = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # of "{}"
    assert manifest["files"]["inner/config.json"] == [2, empty_object]


def test_truncations_and_flipped_bits_are_all_noticed(directory: Path) -> None:
    generator = np.random.default_rng(1)
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    assert len(files) == 4
    unnoticed = []
    for number in range(60 + 200):
        path = files[number % len(files)]
        whole = path.read_bytes()
        spoilt = bytearray(whole)
        place = int(generator.integers(len(whole)))
        if number < 60:
            del spoilt[place:]
        else:
            spoilt[place] ^= 1 << int(generator.integers(8))
        path.write_bytes(bytes(spoilt))
        if damage(directory) is None:
            unnoticed.append((path.name, number, place))
        path.write_bytes(whole)
    assert not unnoticed
    assert damage(directory) is None


def test_missing_and_extra_files_are_named(directory: Path) -> None:
    extra = directory / "extra.json"
    extra.write_text("{}")
    assert damage(directory) == "extra.json is not in the manifest"
    extra.unlink()
    (directory / "state.json").unlink()
    assert damage(directory) == "state.json is missing"
    (directory / MANIFEST_FILE).unlink()
    assert damage(directory) == "MANIFEST.json is missing"
    assert damage(directory / "nowhere") == "MANIFEST.json is missing"


@pytest.mark.parametrize("suffix", [".bin", ".pt", ".pkl", ".pth", ".npy", ".py", ""])
def test_formats_that_could_run_something_are_refused(directory: Path, suffix: str) -> None:
    (directory / f"weights{suffix}").write_bytes(b"\x80\x04.")
    assert "neither safetensors nor JSON" in (damage(directory) or "")
    (directory / MANIFEST_FILE).unlink()
    with pytest.raises(CheckpointError, match=f"weights{suffix} is neither safetensors nor JSON"):
        write_manifest(directory, {})


def test_links_are_refused(directory: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text((directory / "state.json").read_text())
    (directory / "state.json").unlink()
    (directory / "state.json").symlink_to(outside)
    assert damage(directory) == "state.json is a link or a special file"


def test_a_linked_directory_is_refused(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "update-0002").symlink_to(directory)
    assert damage(tmp_path / "update-0002") is not None


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"files": {"../../outside.json": [2, "x"]}}, "is missing"),
        ({"files": {"state.json": [1, "x"]}}, "is not in the manifest"),
        ({"files": ["state.json"]}, "lists no files"),
        ({"version": 2}, "has version 2, not 1"),
    ],
)
def test_forged_manifests_are_refused(
    directory: Path, changes: dict[str, object], complaint: str
) -> None:
    resign(directory, **changes)
    assert complaint in (damage(directory) or "")


def test_forged_sizes_are_refused(directory: Path) -> None:
    files = json.loads((directory / MANIFEST_FILE).read_text())["files"]
    resign(directory, files=files | {"state.json": 7})
    assert damage(directory) == "state.json does not match its size and sha256"
    resign(directory, files=files)
    assert damage(directory) is None


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "\xff"])
def test_a_manifest_that_is_no_manifest_is_refused(directory: Path, text: str) -> None:
    (directory / MANIFEST_FILE).write_bytes(text.encode("latin-1"))
    assert damage(directory) is not None


def test_removal_takes_the_manifest_first(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[str] = []
    unlink = Path.unlink

    def recording(path: Path, missing_ok: bool = False) -> None:
        gone.append(path.name)
        unlink(path, missing_ok=missing_ok)

    (directory / "ADAPTER.json").write_text("{}")  # before MANIFEST.json in the alphabet
    monkeypatch.setattr(Path, "unlink", recording)
    remove_directory(directory)
    assert gone[0] == MANIFEST_FILE
    assert not directory.exists()


def test_what_stood_there_comes_back_when_the_rename_fails(directory: Path) -> None:
    missing = directory.parent / "missing"
    for target in (directory, directory.parent / "update-0002"):
        with pytest.raises(FileNotFoundError):
            move_into_place(missing, target)
    assert damage(directory) is None
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]
