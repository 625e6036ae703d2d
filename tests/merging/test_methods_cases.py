"""Every case of tests/cases/merging_cases.json, of every kind, with every field it may have."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gtr_turbo.errors import MergeError
from gtr_turbo.merging import (
    LinearAccumulator,
    TiesAccumulator,
    ema_weights,
    lora_delta,
    make_accumulator,
    merge,
)

CASES = Path(__file__).parents[1] / "cases" / "merging_cases.json"
SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
Case = Mapping[str, Any]


def numbers(value: Any) -> Any:
    """Return nested lists with the three special strings as floats."""
    if isinstance(value, list):
        return [numbers(part) for part in value]
    return SPECIAL[value] if isinstance(value, str) else value


def tensor(value: Any, dtype: str) -> Tensor:
    if isinstance(value, Mapping):
        return torch.tensor(numbers(value["data"]), dtype=getattr(torch, value["dtype"]))
    return torch.tensor(numbers(value), dtype=getattr(torch, dtype))


def model(values: Mapping[str, Any], case: Case) -> dict[str, Tensor]:
    found = {name: tensor(value, case.get("dtype", "float32")) for name, value in values.items()}
    for group in case.get("tied", ()):
        found |= dict.fromkeys(group, found[group[0]])
    return found


def flattened() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (id, case), each subcase as a case of its own."""
    for case in json.loads(CASES.read_text(encoding="utf-8"))["cases"]:
        subcases = case.pop("subcases", None)
        if subcases is None:
            yield case["id"], case
        for index, override in enumerate(subcases or ()):
            yield f"{case['id']}-{index}", case | override


ALL = list(flattened())
IDS = [name for name, _ in ALL]


def options_of(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = {"scale": case.get("lam", 1.0)}
    found |= {key: case[key] for key in ("density", "weights", "scope", "window") if key in case}
    if "alpha" in case:
        found |= {"alpha": case["alpha"], "ema_init": case.get("init", "first")}
    return found


def masks_of(case: Case, checkpoints: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
    return [
        {name: torch.tensor(kept).reshape(value.shape) for name, value in checkpoint.items()}
        if isinstance(kept, list)
        else {name: torch.tensor(own) for name, own in kept.items()}
        for kept, checkpoint in zip(case["masks"], checkpoints, strict=True)
    ]


def run(case: Case, **more: Any) -> dict[str, Tensor]:
    """Return the merged model of a case that has whole checkpoints."""
    base = model(case["base"], case) if "base" in case else None
    checkpoints = [model(values, case) for values in case["checkpoints"]]
    options = options_of(case) | more
    if "masks" in case:
        options["masks"] = masks_of(case, checkpoints)
    if "tied" in case:
        options["tied"] = case["tied"]
    return merge(base, checkpoints, method=case["kind"], **options)


def check(found: Mapping[str, Tensor], expected: Mapping[str, Any], case: Case) -> None:
    """Check names, types and values: exact for 16-bit types, to 1e-6 for the rest."""
    wanted = {name: tensor(value, case.get("dtype", "float32")) for name, value in expected.items()}
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        if value.dtype == torch.float32:
            torch.testing.assert_close(found[name], value, rtol=1e-6, atol=1e-12)
        else:
            assert torch.equal(found[name], value)


def of_kinds(*kinds: str, field: str = "expect") -> Any:
    chosen = [(name, case) for name, case in ALL if case["kind"] in kinds and field in case]
    return pytest.mark.parametrize(
        "case", [case for _, case in chosen], ids=[name for name, _ in chosen]
    )


WHOLE = ("ties", "linear", "sma", "ema", "ema_ties", "window_ties", "dare_linear", "dare_ties")


def test_every_case_is_run_by_some_test() -> None:
    run_by_others = ("lora_ties", "lora_linear")
    for name, case in ALL:
        assert case["kind"] in (*WHOLE, *run_by_others), name
        assert {"expect", "expect_after_each", "expect_delta"} & case.keys(), name
    assert len(ALL) >= 22


@of_kinds(*WHOLE)
def test_whole_checkpoints(case: Case) -> None:
    if case["expect"] == "error":
        with pytest.raises(MergeError):
            run(case)
    else:
        check(run(case), case["expect"], case)


@of_kinds("ties", "ema_ties", "linear", "sma")
def test_the_accumulator_gives_the_same(case: Case) -> None:
    def accumulate() -> dict[str, Tensor]:
        base = model(case["base"], case)
        options = {"scale": case.get("lam", 1.0), "tied": case.get("tied", ())}
        decay = case.get("alpha")
        if case["kind"] in ("linear", "sma"):
            running = LinearAccumulator(base, decay=decay, **options)
        else:
            running = TiesAccumulator(base, case["density"], decay=decay, **options)
        weights = case.get("weights") or [1.0] * len(case["checkpoints"])
        for values, weight in zip(case["checkpoints"], weights, strict=True):
            running.add(model(values, case), weight)
        return running.merged()

    if case.get("scope") == "global":
        pytest.skip("the accumulators' global scope has tests of its own")
    if case["expect"] == "error":
        with pytest.raises(MergeError):
            accumulate()
    else:
        check(accumulate(), case["expect"], case)


@of_kinds("ties", field="expect_global")
def test_global_scope(case: Case) -> None:
    check(run(case, scope="global"), case["expect_global"], case)


@of_kinds(*WHOLE, field="normalised_expect")
def test_normalised(case: Case) -> None:
    check(run(case, normalize=True), case["normalised_expect"], case)


@of_kinds(*WHOLE, field="expect_normalised")
def test_normalised_by_its_other_name(case: Case) -> None:
    check(run(case, normalize=True), case["expect_normalised"], case)


@of_kinds(*WHOLE, field="exact_before_rounding")
def test_results_before_rounding(case: Case) -> None:
    wide = {key: value for key, value in case.items() if key != "dtype"}
    check(run(wide), case["exact_before_rounding"], wide)


@of_kinds(*WHOLE, field="expect_after_each")
def test_streams_step_by_step(case: Case) -> None:
    kind = case["kind"]
    values = [torch.tensor(numbers(entry), dtype=torch.float32) for entry in case["stream"]]
    (name,) = case.get("base", {"w": None})
    base = {name: tensor(case["base"][name], "float32")} if "base" in case else None
    running = make_accumulator(
        "linear" if kind in ("linear", "sma", "ema") else "ties",
        base=base,
        density=case.get("density", 1.0),
        ema_alpha=case.get("alpha"),
        window=case.get("window"),
        scale=case.get("lam", 1.0),
    )
    for index, expected in enumerate(case["expect_after_each"]):
        weight = case["weights"][index] if "weights" in case else 1.0
        running.add({name: values[index]}, weight)
        check(running.merged(), {name: expected}, {})
        options = options_of(case)
        if "weights" in options:
            options["weights"] = options["weights"][: index + 1]
        seen = [{name: value} for value in values[: index + 1]]
        check(merge(base, seen, method=kind, **options), {name: expected}, {})


@of_kinds(*WHOLE, field="equivalent_weights")
def test_closed_form_weights(case: Case) -> None:
    num = len(case["equivalent_weights"])
    found = ema_weights(num, case["alpha"], case.get("init", "first"))
    assert found == pytest.approx(case["equivalent_weights"], rel=1e-12)


@of_kinds(*WHOLE, field="bias_corrected_weights")
def test_bias_corrected_weights(case: Case) -> None:
    wanted = case["bias_corrected_weights"]
    found = ema_weights(len(wanted), case["alpha"], "corrected")
    assert found == pytest.approx([weight / sum(wanted) for weight in wanted], rel=1e-6)


@of_kinds("lora_ties", "lora_linear", field="expect_delta")
def test_adapters(case: Case) -> None:
    deltas = [
        lora_delta(
            tensor(adapter["A"], "float32"),
            tensor(adapter["B"], "float32"),
            adapter.get("scaling", case.get("scaling", 1.0)),
        )
        for adapter in case["adapters"]
    ]
    for found, wanted in zip(deltas, case.get("deltas", deltas), strict=True):
        check(
            {"d": found}, {"d": wanted} if isinstance(wanted, list) else {"d": found.tolist()}, {}
        )
    merged = merge(
        None,
        [{"d": delta} for delta in deltas],
        method=case["kind"].removeprefix("lora_"),
        **options_of(case),
    )
    check(merged, {"d": case["expect_delta"]}, {})
    if "factor_space_result_is_wrong" in case:
        wrong = torch.tensor(case["factor_space_result_is_wrong"])
        assert not torch.allclose(merged["d"], wrong)
