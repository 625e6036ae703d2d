"""Three updates of a tiny run, number by number.

The stored numbers may change only together with a line under *Numerics* in the changelog:

    GTR_TURBO_WRITE_GOLDEN=1 python -m pytest tests/golden
"""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from tests.train.runs import numbers, run
from tests.world import tiny_config

STORED = Path(__file__).parent / "golden.json"
RELATIVE, ABSOLUTE = 1e-3, 1e-5
"""Another processor rounds otherwise; the tokens that are drawn stay the same, nearly always."""
NOISE = {"logprob_gap", "teacher_fingerprint"}
"""Rounding errors, and what is made of every bit of the weights."""
# So few supervised steps teach no JSON, and more of them would drift apart between processors: the
# game goes on with seeded random actions, so that rewards and advantages vary.
FIELDS: dict[str, Any] = {
    "sft__num_steps": 3,
    "sft__num_episodes": 20,
    "rollout__turns_per_update": 32,
    "rollout__num_environments": 8,
    "rollout__max_new_tokens": 8,
    "ppo__minibatch_size": 16,
    "critic__warmup_updates": 0,
    "task__rules__unreadable_reply": "random_action",
    "task__rules__end_at_first_penalty": False,
    "guidance__invalid_format_kl": 1.0,
    "run__check_interval": 1,
}


def rounded(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line without noise, its numbers with six digits."""
    return {
        key: float(f"{value:.6g}") if isinstance(value, float) else value
        for key, value in line.items()
        if key not in NOISE
    }


def agree(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return left == right


def test_three_updates_give_the_stored_numbers(tmp_path: Path) -> None:
    run(tiny_config("tiny:qwen2_5_vl", **FIELDS), tmp_path / "run")
    found = [rounded(line) for line in numbers(tmp_path / "run")["metrics"]]
    if os.environ.get("GTR_TURBO_WRITE_GOLDEN"):
        STORED.write_text(json.dumps(found, indent=1) + "\n")
    stored = json.loads(STORED.read_text())
    assert [sorted(line) for line in found] == [sorted(line) for line in stored]
    differing = [
        f"update {line['update']}: {key} is {line[key]}, stored is {old[key]}"
        for line, old in zip(found, stored, strict=True)
        for key in line
        if not agree(line[key], old[key])
    ]
    assert not differing


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(1.0, 1.0005, True), (1.0, 1.002, False), (0.0, 5e-6, True), (None, 0.0, False), (3, 3, True)],
)
def test_what_counts_as_equal(left: Any, right: Any, expected: bool) -> None:
    assert agree(left, right) == expected
