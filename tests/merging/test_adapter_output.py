import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import MergeRequest, run_merge
from gtr_turbo.merging.directories import no_progress


def adapter(directory: Path, rank: int, value: float, **config: object) -> Path:
    directory.mkdir()
    tensors = {
        "base_model.model.q.lora_A.weight": torch.full((rank, 3), value),
        "base_model.model.q.lora_B.weight": torch.ones(2, rank),
    }
    settings = {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "use_rslora": False}
    save_file(tensors, directory / "adapter_model.safetensors")
    (directory / "adapter_config.json").write_text(json.dumps(settings | config))
    return directory


def product(directory: Path) -> torch.Tensor:
    tensors = load_file(directory / "adapter_model.safetensors")
    config = json.loads((directory / "adapter_config.json").read_text())
    a = tensors["base_model.model.q.lora_A.weight"]
    b = tensors["base_model.model.q.lora_B.weight"]
    assert a.shape[0] == b.shape[1] == config["r"]
    return config["lora_alpha"] / config["r"] * (b @ a)


def test_ranks_add_up_in_an_exact_mean(tmp_path: Path) -> None:
    paths = (adapter(tmp_path / "a", 1, 1.0), adapter(tmp_path / "b", 2, 4.0))
    request = MergeRequest(checkpoints=paths, out=tmp_path / "out", method="linear")
    run_merge(request, no_progress)
    # 1 · 1 from the first, 2 · 4 from the second.
    torch.testing.assert_close(product(tmp_path / "out"), torch.full((2, 3), 4.5))


def test_a_rank_asks_for_an_approximation(tmp_path: Path) -> None:
    paths = (adapter(tmp_path / "a", 1, 1.0), adapter(tmp_path / "b", 2, 4.0))
    request = MergeRequest(checkpoints=paths, out=tmp_path / "out", method="linear", rank=1)
    report = run_merge(request, no_progress)
    torch.testing.assert_close(product(tmp_path / "out"), torch.full((2, 3), 4.5))
    assert 0.0 <= report.residual < 1e-6


def test_a_merge_of_nothing_is_an_adapter_of_zeros(tmp_path: Path) -> None:
    paths = (adapter(tmp_path / "a", 1, 0.0),)
    request = MergeRequest(checkpoints=paths, out=tmp_path / "out")
    report = run_merge(request, no_progress)
    assert not product(tmp_path / "out").any()
    assert (report.residual, report.num_changed_tensors) == (0.0, 0)


def test_modules_trained_in_full_do_not_fit_into_an_adapter(tmp_path: Path) -> None:
    path = adapter(tmp_path / "a", 1, 1.0)
    tensors = load_file(path / "adapter_model.safetensors")
    save_file(
        tensors | {"base_model.model.h.weight": torch.ones(2)}, path / "adapter_model.safetensors"
    )
    save_file({"h.weight": torch.zeros(2), "q.weight": torch.zeros(2, 3)},
              tmp_path / "base.safetensors")  # fmt: skip
    request = MergeRequest(
        checkpoints=(path,),
        base=tmp_path / "base.safetensors",
        out=tmp_path / "out",
        method="linear",
        form="adapter",
    )
    with pytest.raises(MergeError, match="trained in full"):
        run_merge(request, no_progress)
