"""The README.md of a merged directory: what it is, and the recipe to make it again."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from gtr_turbo.merging.requests import MergeReport, MergeRequest

RECIPE_FILE: Final = "merge_recipe.json"


def write_card(
    out: Path, request: MergeRequest, report: MergeReport, checkpoints: Sequence[str]
) -> None:
    """Write README.md and the recipe as JSON into `out`."""
    recipe = recipe_of(request, report, checkpoints)
    (out / RECIPE_FILE).write_text(
        json.dumps(recipe, indent=2, default=str) + "\n", encoding="utf-8"
    )
    (out / "README.md").write_text(_card(recipe, report), encoding="utf-8")


def recipe_of(
    request: MergeRequest, report: MergeReport, checkpoints: Sequence[str]
) -> dict[str, Any]:
    """Return everything that decides the result, and the fingerprint to check it by."""
    return {
        "method": request.method,
        "density": request.density,
        "weights": request.weights,
        "scale": request.scale,
        "options": {key: _plain(value) for key, value in request.options.items()},
        "base": None if request.base is None else str(request.base),
        "reference": None if request.reference is None else str(request.reference),
        "checkpoints": list(checkpoints),
        "form": report.form,
        "dtype": request.dtype,
        "residual": report.residual,
        "num_parameters": report.num_parameters,
        "fingerprint": report.fingerprint,
    }


def _plain(value: Any) -> Any:
    is_plain = isinstance(value, str | int | float | bool | list | tuple | None)
    return value if is_plain else type(value).__name__


def _card(recipe: dict[str, Any], report: MergeReport) -> str:
    library = "peft" if report.form == "adapter" else "transformers"
    head = yaml.safe_dump({"library_name": library, "tags": ["merge", "gtr-turbo"]})
    shown = yaml.safe_dump(json.loads(json.dumps(recipe, default=str)), sort_keys=False)
    loss = (
        "The written form is exact."
        if report.residual == 0.0
        else f"The written form misses {report.residual:.2%} of the merged change (norm)."
    )
    return (
        f"---\n{head}---\n\n# Merged checkpoint\n\n"
        f"{report.num_checkpoints} checkpoints, merged by the method `{report.method}` with"
        f" gtr-turbo. {report.num_tensors} tensors, {report.num_parameters} parameters. {loss}\n\n"
        f"## Recipe\n\n```yaml\n{shown}```\n"
    )
