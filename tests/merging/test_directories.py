import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gtr_turbo.errors import CheckpointError, MergeError
from gtr_turbo.merging import fingerprint, merge
from gtr_turbo.merging.adapter_files import AdapterFiles
from gtr_turbo.merging.directories import expand_checkpoints, no_progress, run_merge
from gtr_turbo.merging.requests import MergeReport, MergeRequest
from tests.merging.models_on_disk import (
    RANK,
    files_of,
    load,
    load_adapted,
    logits_of,
    write_adapter,
    write_base,
    write_moved,
)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sharded base, three moved copies, three adapters."""
    root = tmp_path_factory.mktemp("shelf")
    write_base(root / "base")
    for index in range(3):
        write_moved(root / "base", root / f"full-{index}", index)
        write_adapter(root / "base", root / f"adapter-{index}", index)
    return root


def fulls(shelf: Path) -> tuple[Path, ...]:
    return tuple(shelf / f"full-{index}" for index in range(3))


def adapters(shelf: Path) -> tuple[Path, ...]:
    return tuple(shelf / f"adapter-{index}" for index in range(3))


def run(request: MergeRequest) -> MergeReport:
    return run_merge(request, no_progress)


def dense(adapter: Path) -> dict[str, Tensor]:
    files = AdapterFiles(adapter)
    return {name: files.read(name) for name in files.names()}


def test_a_sharded_model_merges_to_what_memory_gives(shelf: Path, tmp_path: Path) -> None:
    base = files_of(shelf / "base")
    assert len(list((shelf / "base").glob("*.safetensors"))) == 2
    steps: list[tuple[str, int, int]] = []
    request = MergeRequest(checkpoints=fulls(shelf), base=shelf / "base", out=tmp_path / "out")
    report = run_merge(request, lambda *step: steps.append(step))
    expected = merge(base, [files_of(path) for path in fulls(shelf)])
    found = files_of(tmp_path / "out")
    assert fingerprint(found) == fingerprint(expected) == report.fingerprint
    num = len(base)
    assert steps == [(p, at, num) for p in ("merge", "verify") for at in range(1, num + 1)]
    assert report.num_tensors == report.num_changed_tensors == num
    assert report.num_parameters == sum(value.numel() for value in base.values())
    assert report.residual == 0.0
    assert report.merged_names == ("full-0", "full-1", "full-2")
    assert any("visual" in name for name in found)


def test_a_merged_model_loads_with_transformers(shelf: Path, tmp_path: Path) -> None:
    run(MergeRequest(checkpoints=fulls(shelf), base=shelf / "base", out=tmp_path / "out"))
    by_hand = load(shelf / "base")
    merged = merge(
        dict(by_hand.state_dict()), [dict(load(path).state_dict()) for path in fulls(shelf)]
    )
    by_hand.load_state_dict(merged)
    torch.testing.assert_close(logits_of(load(tmp_path / "out")), logits_of(by_hand))
    assert not torch.allclose(logits_of(by_hand), logits_of(load(shelf / "base")))


def test_one_model_at_density_one_comes_back(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(
        checkpoints=fulls(shelf)[:1], base=shelf / "base", out=tmp_path / "out", density=1.0
    )
    run(request)
    assert fingerprint(files_of(tmp_path / "out")) == fingerprint(files_of(shelf / "full-0"))


def test_a_plain_mean_needs_no_base(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(checkpoints=fulls(shelf), out=tmp_path / "out", method="linear")
    report = run(request)
    expected = merge(None, [files_of(path) for path in fulls(shelf)], method="linear")
    assert report.fingerprint == fingerprint(expected)


def test_global_scope_streams(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(
        checkpoints=fulls(shelf),
        base=shelf / "base",
        out=tmp_path / "out",
        density=0.3,
        options={"scope": "global"},
    )
    found = run(request).fingerprint
    models = [files_of(path) for path in fulls(shelf)]
    expected = merge(files_of(shelf / "base"), models, density=0.3, scope="global")
    assert found == fingerprint(expected)


def test_another_type_is_written_with_one_rounding(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(
        checkpoints=fulls(shelf), base=shelf / "base", out=tmp_path / "out", dtype="bfloat16"
    )
    run(request)
    expected = merge(files_of(shelf / "base"), [files_of(path) for path in fulls(shelf)])
    rounded = {name: value.to(torch.bfloat16) for name, value in expected.items()}
    assert fingerprint(files_of(tmp_path / "out")) == fingerprint(rounded)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["dtype"] == "bfloat16"
    assert config["text_config"]["dtype"] == "bfloat16"


def test_adapters_merge_into_a_model(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(checkpoints=adapters(shelf), base=shelf / "base", out=tmp_path / "out")
    report = run(request)
    changes = merge(None, [dense(path) for path in adapters(shelf)])
    model = load(shelf / "base")
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name, change in changes.items():
            weights[name].add_(change)
    torch.testing.assert_close(logits_of(load(tmp_path / "out")), logits_of(model))
    assert report.num_changed_tensors == len(changes)


def test_one_adapter_at_density_one_acts_as_itself(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(
        checkpoints=adapters(shelf)[:1], base=shelf / "base", out=tmp_path / "out", density=1.0
    )
    run(request)
    expected = logits_of(load_adapted(shelf / "base", shelf / "adapter-0"))
    torch.testing.assert_close(logits_of(load(tmp_path / "out")), expected, rtol=1e-4, atol=1e-5)


def test_a_mean_of_adapters_is_an_exact_adapter(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(
        checkpoints=adapters(shelf),
        out=tmp_path / "out",
        method="linear",
        weights=(1.0, 2.0, 5.0),
        scale=0.5,
    )
    report = run(request)
    assert (report.form, report.residual) == ("adapter", 0.0)
    config = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert config["r"] == config["lora_alpha"] == 3 * RANK
    model = load(shelf / "base")
    weights = dict(model.named_parameters())
    own = [dense(path) for path in adapters(shelf)]
    with torch.no_grad():
        for name in own[0]:
            mean = (own[0][name] + 2.0 * own[1][name] + 5.0 * own[2][name]) / 8.0
            weights[name].add_(0.5 * mean)
    found = logits_of(load_adapted(shelf / "base", tmp_path / "out"))
    torch.testing.assert_close(found, logits_of(model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("ema", {"alpha": 0.25, "ema_init": "corrected"}),
        ("ema", {}),
        ("window_linear", {"window": 2}),
        ("uniform_soup", {}),
    ],
)
def test_every_mean_concatenates_exactly(
    method: str, options: dict[str, Any], shelf: Path, tmp_path: Path
) -> None:
    request = MergeRequest(
        checkpoints=adapters(shelf), out=tmp_path / "out", method=method, options=options
    )
    assert run(request).residual == 0.0
    expected = merge(None, [dense(path) for path in adapters(shelf)], method=method, **options)
    for name, change in dense(tmp_path / "out").items():
        torch.testing.assert_close(change, expected[name], rtol=1e-4, atol=1e-6)


def test_a_ties_merge_becomes_the_nearest_adapter(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(checkpoints=adapters(shelf), out=tmp_path / "out")
    report = run(request)
    expected = merge(None, [dense(path) for path in adapters(shelf)])
    missed = whole = 0.0
    for name, change in dense(tmp_path / "out").items():
        missed += float((change - expected[name]).square().sum())
        whole += float(expected[name].square().sum())
        values = torch.linalg.svdvals(expected[name])
        best = float(values[RANK:].square().sum())
        assert float((change - expected[name]).square().sum()) == pytest.approx(best, rel=1e-3)
    assert report.residual == pytest.approx((missed / whole) ** 0.5, rel=1e-3)
    assert 0.1 < report.residual < 1.0
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"misses {report.residual:.2%}" in card
    wide = run(replace(request, out=tmp_path / "wide", rank=200))
    assert wide.residual < 1e-5


def test_the_dense_change_can_be_written(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(
        checkpoints=adapters(shelf), base=shelf / "base", out=tmp_path / "out", form="change"
    )
    report = run(request)
    expected = merge(None, [dense(path) for path in adapters(shelf)])
    assert fingerprint(files_of(tmp_path / "out")) == report.fingerprint == fingerprint(expected)


def test_changes_can_be_relative_to_a_first_adapter(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(
        checkpoints=adapters(shelf)[1:],
        reference=shelf / "adapter-0",
        out=tmp_path / "out",
        form="change",
    )
    run(request)
    first, *rest = (dense(path) for path in adapters(shelf))
    expected = merge(first, rest)
    assert fingerprint(files_of(tmp_path / "out")) == fingerprint(expected)


@pytest.fixture(scope="module")
def runs(shelf: Path) -> Path:
    """A run of adapters and a run of whole models, under the names of the network."""
    for number, index in ((2, 0), (10, 1), (1, 2)):
        update = shelf / "run" / "checkpoints" / f"update-{number:04d}"
        shutil.copytree(shelf / f"adapter-{index}", update)
    (shelf / "run" / "checkpoints" / "update-0011.new").mkdir()
    return shelf


def test_a_run_stands_for_its_checkpoints_in_order(runs: Path, tmp_path: Path) -> None:
    request = MergeRequest(
        checkpoints=(runs / "run",), out=tmp_path / "out", form="change", method="ema"
    )
    report = run(request)
    assert report.merged_names == ("update-0001", "update-0002", "update-0010")
    expected = merge(None, [dense(adapters(runs)[at]) for at in (2, 0, 1)], method="ema")
    assert report.fingerprint == fingerprint(expected)


def test_weights_stored_by_module_name_find_their_place(shelf: Path, tmp_path: Path) -> None:
    update = tmp_path / "run" / "checkpoints" / "update-0001"
    update.mkdir(parents=True)
    model = load(shelf / "full-0")
    save_file(
        {name: value.detach().clone() for name, value in model.named_parameters()},
        update / "model.safetensors",
    )
    request = MergeRequest(
        checkpoints=(tmp_path / "run",), base=shelf / "base", out=tmp_path / "out", density=1.0
    )
    run(request)
    assert fingerprint(files_of(tmp_path / "out")) == fingerprint(files_of(shelf / "full-0"))


def test_a_module_trained_in_full_counts_with_its_difference(shelf: Path, tmp_path: Path) -> None:
    for index in range(2):
        write_adapter(
            shelf / "base",
            tmp_path / f"a{index}",
            index,
            target_modules=["q_proj"],
            modules_to_save=["merger.mlp.0"],
        )
    paths = (tmp_path / "a0", tmp_path / "a1")
    with pytest.raises(MergeError, match="a module trained in full"):
        run(MergeRequest(checkpoints=paths, out=tmp_path / "out", form="change"))
    run(MergeRequest(checkpoints=paths, base=shelf / "base", out=tmp_path / "out"))
    found, base = files_of(tmp_path / "out"), files_of(shelf / "base")
    assert torch.equal(found["visual.merger.mlp.0.weight"], base["visual.merger.mlp.0.weight"])
    changed = "model.layers.0.self_attn.q_proj.weight"
    assert not torch.equal(found[changed], base[changed])


def test_nothing_is_left_of_a_failed_merge(shelf: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    moved = write_moved(shelf / "base", broken, 5)
    last = max(moved)
    for path in broken.glob("*.safetensors"):
        tensors = load_file(path)
        if last in tensors:
            tensors[last].view(-1)[3] = float("inf")
            save_file(tensors, path)
    request = MergeRequest(
        checkpoints=(shelf / "full-0", broken), base=shelf / "base", out=tmp_path / "out"
    )
    with pytest.raises(MergeError, match=rf'"{last}" of checkpoint .*broken has 1 NaN'):
        run(request)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken"]


def test_what_a_killed_merge_left_is_replaced(shelf: Path, tmp_path: Path) -> None:
    (tmp_path / ".out.new").mkdir()
    (tmp_path / ".out.new" / "half.safetensors").write_text("half")
    run(MergeRequest(checkpoints=fulls(shelf), base=shelf / "base", out=tmp_path / "out"))
    assert not (tmp_path / "out" / "half.safetensors").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_requests_that_cannot_be_met(shelf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    base = shelf / "base"
    with pytest.raises(MergeError, match="no checkpoint to merge"):
        MergeRequest(checkpoints=(), out=out)
    with pytest.raises(MergeError, match='output type named "bf16"'):
        MergeRequest(checkpoints=fulls(shelf), out=out, dtype="bf16")
    with pytest.raises(MergeError, match="exists already"):
        MergeRequest(checkpoints=fulls(shelf), out=tmp_path)
    for checkpoints, more, message in [
        ((shelf / "full-0", shelf / "adapter-0"), {"base": base}, "others whole models"),
        (fulls(shelf), {"base": base, "reference": adapters(shelf)[0]}, "are models"),
        (fulls(shelf), {"base": base, "form": "adapter"}, 'form "adapter" is for adapters'),
        (adapters(shelf), {"form": "model"}, "needs the base model"),
        (fulls(shelf), {"base": base, "method": "tise"}, "no merge method"),
        (fulls(shelf), {"base": base, "options": {"scopes": 1}}, "no option named"),
        (adapters(shelf), {"base": shelf / "one.safetensors"}, "does not have"),
    ]:
        if "one.safetensors" in str(more.get("base")):
            save_file({"w": torch.zeros(2)}, shelf / "one.safetensors")
        with pytest.raises(MergeError, match=message):
            run(MergeRequest(checkpoints=checkpoints, out=out, **more))
    with pytest.raises(CheckpointError, match="there is no checkpoint at"):
        run(MergeRequest(checkpoints=(tmp_path / "nowhere",), out=out))
    (tmp_path / "empty" / "checkpoints").mkdir(parents=True)
    with pytest.raises(CheckpointError, match="have no checkpoints yet"):
        expand_checkpoints((tmp_path / "empty",))
    with pytest.raises(CheckpointError, match="there is no model in"):
        expand_checkpoints((tmp_path,))
    assert not out.exists()


def test_adapters_of_different_models_are_refused(shelf: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(shelf / "adapter-1", other)
    config = json.loads((other / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "elsewhere"
    (other / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(MergeError, match="trained on different models"):
        run(MergeRequest(checkpoints=(shelf / "adapter-0", other), out=tmp_path / "out"))


def test_an_adapter_of_another_shape_is_refused(shelf: Path, tmp_path: Path) -> None:
    tensors = files_of(shelf / "base")
    name = "model.layers.0.self_attn.q_proj.weight"
    tensors[name] = torch.zeros(48, 47)
    save_file(tensors, tmp_path / "model.safetensors")
    request = MergeRequest(checkpoints=adapters(shelf), base=tmp_path, out=tmp_path / "out")
    with pytest.raises(MergeError, match=r"by a tensor of shape \(48, 48\), the base has"):
        run(request)


def test_the_card_and_the_recipe_tell_how_it_was_made(shelf: Path, tmp_path: Path) -> None:
    request = MergeRequest(
        checkpoints=fulls(shelf),
        base=shelf / "base",
        out=tmp_path / "out",
        weights=(1, 2, 3),
        options={"denominator": "total"},
    )
    report = run(request)
    recipe = json.loads((tmp_path / "out" / "merge_recipe.json").read_text())
    assert recipe["fingerprint"] == report.fingerprint
    assert recipe["weights"] == [1, 2, 3]
    assert recipe["options"] == {"denominator": "total"}
    assert len(recipe["checkpoints"]) == 3
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("---\n")
    assert "method: ties" in card
    assert "exact" in card
