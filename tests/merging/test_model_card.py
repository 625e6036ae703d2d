from pathlib import Path

import torch
import yaml

from gtr_turbo.merging.model_card import recipe_of, write_card
from gtr_turbo.merging.requests import MergeReport, MergeRequest


def report(out: Path) -> MergeReport:
    return MergeReport(
        out=out,
        form="adapter",
        method="dare_ties",
        num_checkpoints=2,
        num_tensors=3,
        num_parameters=40,
        num_changed_tensors=3,
        fingerprint="ab" * 32,
        residual=0.25,
        merged_names=("a", "b"),
    )


def test_the_card_is_a_readable_recipe(tmp_path: Path) -> None:
    request = MergeRequest(
        checkpoints=(tmp_path / "a",),
        out=tmp_path / "out",
        method="dare_ties",
        density=(0.5, 0.5),
        options={"seed": 3, "masks": [{"w": torch.ones(2)}], "score": print},
    )
    write_card(tmp_path, request, report(tmp_path / "out"), ["a", "b"])
    card = (tmp_path / "README.md").read_text()
    _, head, body = card.split("---\n", 2)
    assert yaml.safe_load(head) == {"library_name": "peft", "tags": ["merge", "gtr-turbo"]}
    recipe = yaml.safe_load(body.split("```yaml\n")[1].split("```")[0])
    assert recipe["checkpoints"] == ["a", "b"]
    assert recipe["density"] == [0.5, 0.5]
    assert recipe["options"]["seed"] == 3
    assert "misses 25.00%" in card
    assert (
        recipe_of(request, report(tmp_path), [])["options"]["score"] == "builtin_function_or_method"
    )
