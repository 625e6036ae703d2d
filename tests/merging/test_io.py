import hashlib
import json
from pathlib import Path

import torch

from gtr_turbo.merging.io import (
    file_sha256,
    fingerprint,
    load_state,
    save_state,
    write_tensors,
)


def test_a_fingerprint_covers_names_types_shapes_and_bytes() -> None:
    one = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([3])}
    variants = [
        {"a": torch.tensor([1.0, 2.0]), "c": torch.tensor([3])},
        {"a": torch.tensor([[1.0, 2.0]]), "b": torch.tensor([3])},
        {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([3], dtype=torch.int32)},
        {"a": torch.tensor([1.0, 2.5]), "b": torch.tensor([3])},
        {"a": torch.tensor([1.0, 2.0])},
    ]
    assert len({fingerprint(own) for own in [one, *variants]}) == 6
    assert fingerprint(dict(reversed(one.items()))) == fingerprint(one)
    strided = {"a": torch.tensor([[1.0, 9.0], [2.0, 9.0]])[:, 0], "b": torch.tensor([3])}
    assert fingerprint(strided) == fingerprint(one)


def test_a_fingerprint_by_hand() -> None:
    head = json.dumps(["w", "torch.uint8", [2]]).encode() + b"\n"
    expected = hashlib.sha256(head + bytes([1, 2])).hexdigest()
    assert fingerprint({"w": torch.tensor([1, 2], dtype=torch.uint8)}) == expected


def test_files_are_hashed_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"ab" * 2_000_000)
    assert file_sha256(path) == hashlib.sha256(b"ab" * 2_000_000).hexdigest()


def test_shared_and_strided_tensors_are_written_apart(tmp_path: Path) -> None:
    whole = torch.arange(6.0).reshape(2, 3)
    tensors = {"a": whole, "b": whole, "c": whole[:, 1], "d": whole[0], "e": torch.zeros(0)}
    write_tensors(tmp_path / "x.safetensors", tensors)
    save_state(tmp_path / "state", tensors, {"k": 1})
    found, manifest = load_state(tmp_path / "state")
    assert manifest == {"k": 1}
    assert all(torch.equal(found[name], value) for name, value in tensors.items())
