import json
from pathlib import Path

import numpy as np
import pytest

from gtr_turbo.studies.comparison import compare_arms
from gtr_turbo.studies.results import read_results
from gtr_turbo.studies.statistics import success
from tests.studies.fake_study import OUTCOMES, made_results, make_study


def test_each_arm_has_its_numbers(tmp_path: Path) -> None:
    comparison = compare_arms(made_results(tmp_path))
    plain, guided = comparison.rows
    assert [row.arm for row in comparison.rows] == list(OUTCOMES)
    assert (guided.seeds, guided.rates) == ((0, 1), (0.375, 0.75))
    table = np.array([[int(m) for m in marks] for marks in OUTCOMES["gtr-turbo-kl"]["agent"]])
    assert guided.agent == success(table)
    assert guided.interquartile is not None
    assert guided.interquartile.value == pytest.approx(9 / 16)
    assert plain.teacher is None
    assert guided.teacher is not None
    assert guided.teacher.value == pytest.approx(7 / 16)
    assert (guided.cost.num_updates, guided.cost.env_steps) == (2, 16)
    assert (guided.cost.minutes, guided.cost.start_minutes) == (1.5, 0.5)
    assert (guided.cost.num_tokens, guided.cost.money) == ((168 + 184) / 2, 0.5)


def test_an_arm_is_compared_with_the_baseline_seed_by_seed(tmp_path: Path) -> None:
    plain, guided = compare_arms(made_results(tmp_path)).rows
    assert plain.against is None
    assert guided.against is not None
    assert guided.against.difference.estimate.value == pytest.approx((1 + 2) / 16)
    assert guided.against.difference.p_value == 0.5  # 2 of the 4 sign patterns
    # 0.375 beats 0.25, loses to 0.5; 0.75 beats both.
    assert guided.against.improvement.value == 0.75


def test_without_common_seeds_there_is_no_comparison(tmp_path: Path) -> None:
    study, runs, places = make_study(tmp_path)
    (places.run("rl4vlm-seed0") / "summary.json").unlink()
    rows = compare_arms(read_results(study, runs, places)).rows
    assert [row.against for row in rows] == [None, None]


def test_several_tries_give_pass_at_k(tmp_path: Path) -> None:
    study, runs, places = make_study(tmp_path, samples=2)
    for run, low in zip(runs, (0.25, 0.375, 0.5, 0.75), strict=True):
        rates = {"1": low, "2": low + 0.1}
        file = places.run(run.name) / "samples.json"
        found = {"samples": ["1", "0"], "weights_sha256": f"{run.name}-weights"}
        file.write_text(json.dumps(found | {"pass_at": rates}))
    rows = compare_arms(read_results(study, runs, places)).rows
    assert {k: round(e.value, 4) for k, e in rows[0].pass_at.items()} == {1: 0.375, 2: 0.475}
    assert (rows[0].pass_at[1].low, rows[0].pass_at[1].high) == (0.25, 0.5)
    (places.run(runs[0].name) / "samples.json").unlink()
    assert compare_arms(read_results(study, runs, places)).rows[0].pass_at == {}
