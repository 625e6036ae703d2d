from pathlib import Path

import pytest

from gtr_turbo.errors import MergeError
from gtr_turbo.merging.mergekit_recipes import read_mergekit

TIES = """
merge_method: ties
base_model: base
models:
  - model: base
  - model: one
    parameters: {weight: 1, density: 0.5}
  - model: two
    parameters: {weight: 0.3}
parameters:
  density: 0.8
  lambda: 0.9
  int8_mask: true
dtype: float32
out_dtype: bfloat16
"""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    for name in ("base", "one", "two"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_ties_recipe(shelf: Path) -> None:
    request = read_mergekit(TIES, shelf / "out", shelf)
    assert request.checkpoints == (shelf / "one", shelf / "two")
    assert (request.base, request.out) == (shelf / "base", shelf / "out")
    assert (request.method, request.options) == ("ties", {"denominator": "matched"})
    assert request.density == (0.5, 0.8)
    assert request.weights == (1.0, 0.3)
    assert (request.scale, request.dtype) == (0.9, "bfloat16")


@pytest.mark.parametrize(
    ("method", "extra", "options"),
    [
        ("ties", "normalize: false", {"denominator": "none"}),
        ("dare_ties", "random_seed: 7", {"normalize": False, "seed": 7}),
        ("dare_linear", "normalize: true", {"normalize": True, "seed": 0}),
        ("task_arithmetic", "weight: 0.5", {"normalize": False}),
        ("linear", "weight: 0.5", {}),
    ],
)
def test_other_methods(method: str, extra: str, options: dict[str, object], shelf: Path) -> None:
    text = (
        f"merge_method: {method}\nbase_model: base\ndtype: float16\n"
        f"models: [{{model: one}}, {{model: two}}]\nparameters: {{{extra}}}\n"
    )
    request = read_mergekit(text, shelf / "out", shelf)
    assert (request.method, request.options, request.dtype) == (method, options, "float16")


def test_in_a_plain_mean_the_base_is_a_model_like_any_other(shelf: Path) -> None:
    text = "merge_method: linear\nbase_model: base\nmodels: [{model: base}, {model: one}]"
    request = read_mergekit(text, shelf / "out", shelf)
    assert request.checkpoints == (shelf / "base", shelf / "one")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("merge_method: [", "not YAML"),
        ("- 1", "the recipe must be a mapping, got list"),
        ("merge_method: slerp", 'method "slerp" of a mergekit recipe is not supported'),
        ("merge_method: ties\nmodels: []", "lists no models"),
        ("merge_method: ties\nbase_model: a\nmodels: [{model: a}]", "only its base"),
        ("merge_method: ties\nmodels: [3]", "a model must be a mapping, got int"),
        ("merge_method: ties\nmodels: [{model: one}]\nextra: 1", 'the field "extra"'),
        ("merge_method: ties\nslices: [1]\nmodels: [{model: one}]", "sets `slices`"),
        (
            "merge_method: ties\nmodels: [{model: one, parameters: {weight: [0, 1]}}]",
            r"`weight` must be a number, got \[0, 1\]",
        ),
        ("merge_method: ties\nmodels: [{model: some/where}]", "is not a local directory"),
        (
            "merge_method: linear\nmodels: [{model: one}]\nparameters: {normalize: false}",
            "without normalisation",
        ),
    ],
)
def test_recipes_that_cannot_be_followed(text: str, message: str, shelf: Path) -> None:
    with pytest.raises(MergeError, match=message):
        read_mergekit(text, shelf / "out", shelf)
