"""mergekit's YAML recipes, read as merge requests for the methods that both have."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from gtr_turbo.errors import MergeError, nearest_hint
from gtr_turbo.merging.requests import MergeRequest

# mergekit divides by the sum of the weights unless told otherwise in these.
_NORMALISED: Final[Mapping[str, bool]] = {
    "linear": True,
    "ties": True,
    "dare_ties": False,
    "dare_linear": False,
    "task_arithmetic": False,
}
_TOP: Final = ("merge_method", "base_model", "models", "parameters", "dtype", "out_dtype")
_GLOBAL_PARAMETERS: Final = ("normalize", "int8_mask", "lambda", "density", "weight", "random_seed")
_MODEL_PARAMETERS: Final = ("weight", "density")


def read_mergekit(text: str, out: Path, directory: Path) -> MergeRequest:
    """Return the request that a mergekit recipe describes.

    Arithmetic is float32 whatever `dtype` says; `out_dtype`, or else `dtype`, is the type of the
    written weights. mergekit's random drops cannot be reproduced, so DARE drops other entries.

    Args:
        text: The recipe.
        out: Directory to write.
        directory: Where relative model paths start.

    Raises:
        MergeError: the recipe uses a method or a field that is not supported, or names no local
            directory.
    """
    recipe = _parsed(text)
    method = recipe.get("merge_method")
    if method not in _NORMALISED:
        raise MergeError(
            f'the merge method "{method}" of a mergekit recipe is not supported.',
            hint=nearest_hint(str(method), _NORMALISED, "methods"),
        )
    shared = _mapping(recipe.get("parameters") or {}, "parameters", _GLOBAL_PARAMETERS)
    base = recipe.get("base_model")
    models = _models(recipe, base)
    normalize = bool(shared.get("normalize", _NORMALISED[method]))
    options, name = _options(method, normalize, shared)
    dtype = recipe.get("out_dtype", recipe.get("dtype"))
    return MergeRequest(
        checkpoints=tuple(_local(path, directory) for path, _ in models),
        out=out,
        base=None if base is None else _local(base, directory),
        method=name,
        density=tuple(_number(own, shared, "density", 1.0) for _, own in models),
        weights=tuple(_number(own, shared, "weight", 1.0) for _, own in models),
        scale=_plain_number(shared.get("lambda", 1.0), "lambda"),
        options=options,
        dtype=None if dtype is None else str(dtype),
    )


def _parsed(text: str) -> dict[str, Any]:
    try:
        recipe = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise MergeError(
            f"the recipe is not YAML: {error}.", hint="check the indentation."
        ) from error
    return _mapping(recipe, "the recipe", (*_TOP, "tokenizer_source", "tokenizer", "slices"))


def _mapping(value: Any, where: str, known: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise MergeError(
            f"{where} must be a mapping, got {type(value).__name__}.", hint="see mergekit's README."
        )
    found: dict[str, Any] = {str(key): own for key, own in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for key in found:
        if key not in known:
            raise MergeError(
                f'{where} has the field "{key}", which is not supported.',
                hint=nearest_hint(key, known, "fields"),
            )
    for key in ("slices", "tokenizer_source", "tokenizer"):
        if found.get(key) not in (None, "base"):
            raise MergeError(
                f"{where} sets `{key}`; only whole models with the base's tokenizer are merged.",
                hint="run mergekit itself for this recipe.",
            )
    return found


def _models(recipe: Mapping[str, Any], base: Any) -> list[tuple[str, dict[str, Any]]]:
    listed = recipe.get("models")
    if not isinstance(listed, list) or not listed:
        raise MergeError("the recipe lists no models.", hint="add a `models:` list.")
    found: list[tuple[str, dict[str, Any]]] = []
    for entry in listed:  # pyright: ignore[reportUnknownVariableType]
        own = _mapping(entry, "a model", ("model", "parameters"))
        given = own.get("parameters") or {}
        parameters = _mapping(given, "a model's parameters", _MODEL_PARAMETERS)
        # Recipes often list the base among the models; its change is 0 and does not count. In a
        # plain mean it is a model like any other.
        if own.get("model") != base or recipe["merge_method"] == "linear":
            found.append((str(own.get("model")), parameters))
    if not found:
        raise MergeError("the recipe lists only its base.", hint="add the models to merge.")
    return found


def _options(method: str, normalize: bool, shared: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the options and the name of the method here."""
    if method == "linear" and not normalize:
        raise MergeError(
            "a linear merge without normalisation is not supported.",
            hint="give weights that sum to 1 and leave `normalize` out.",
        )
    if method == "linear":
        return {}, method
    if method == "ties":
        return {"denominator": "matched" if normalize else "none"}, "ties"
    options: dict[str, Any] = {"normalize": normalize}
    if method.startswith("dare"):
        options["seed"] = int(shared.get("random_seed", 0))
    return options, method


def _number(own: Mapping[str, Any], shared: Mapping[str, Any], name: str, default: float) -> float:
    return _plain_number(own.get(name, shared.get(name, default)), name)


def _plain_number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MergeError(
            f"`{name}` must be a number, got {value!r}.",
            hint="gradients over layers and per-filter values are not supported.",
        )
    return float(value)


def _local(model: str, directory: Path) -> Path:
    path = directory / Path(model).expanduser()
    if not path.exists():
        raise MergeError(
            f'the model "{model}" is not a local directory below {directory}.',
            hint="fetch models before merging; adapters are written as directories of their own.",
        )
    return path
