import json
from pathlib import Path

import numpy as np
import pytest

from gtr_turbo.errors import ConfigError, ResumeError
from gtr_turbo.studies.results import evaluation_curve, metric_curve, read_results
from tests.studies.fake_study import OUTCOMES, finish, made_results, make_study


def test_finished_runs_are_read_arm_by_arm(tmp_path: Path) -> None:
    results = made_results(tmp_path)
    assert list(results.arms) == list(OUTCOMES)
    assert results.seeds("gtr-turbo-kl") == (0, 1)
    assert (results.missing, results.baseline) == ([], "rl4vlm")
    table = results.outcomes("gtr-turbo-kl", "teacher")
    assert table is not None
    assert table.tolist() == [[1, 1, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0, 0]]
    second = results.outcomes("gtr-turbo-kl", "teacher", [1])
    assert second is not None
    assert second.tolist() == table[1:].tolist()
    assert results.outcomes("rl4vlm", "teacher") is None
    assert results.rates("rl4vlm", "teacher") is None
    rates = results.rates("rl4vlm", "agent")
    assert rates is not None
    assert rates.tolist() == [0.25, 0.5]


def test_what_a_run_took_is_told(tmp_path: Path) -> None:
    results = made_results(tmp_path)
    plain, guided = results.arms["rl4vlm"][1], results.arms["gtr-turbo-kl"][1]
    assert (plain.minutes, plain.start_minutes) == (2.0, 0.5)
    assert plain.num_tokens == round(2 * 8 * 11.5)
    assert (plain.cost, plain.num_corrector_tokens) == (0.0, 0)
    assert (guided.cost, guided.num_corrector_tokens) == (0.5, 6)


def test_missing_runs_are_named_and_arms_without_one_left_out(tmp_path: Path) -> None:
    results = made_results(tmp_path, arms=[*OUTCOMES, "static"], seeds=[0, 1, 2])
    assert list(results.arms) == list(OUTCOMES)
    missing = {"static-seed0", "static-seed1", "static-seed2", "rl4vlm-seed2", "gtr-turbo-kl-seed2"}
    assert set(results.missing) == missing


def test_runs_without_outcomes_by_hand_are_no_table(tmp_path: Path) -> None:
    study, runs, places = make_study(tmp_path)
    file = places.run(runs[0].name) / "summary.json"
    summary = json.loads(file.read_text())
    del summary["agent"]["outcomes"]
    file.write_text(json.dumps(summary))
    assert read_results(study, runs, places).outcomes("rl4vlm", "agent") is None


def test_other_panels_and_other_settings_are_not_compared(tmp_path: Path) -> None:
    study, runs, places = make_study(tmp_path, seeds=[0, 1, 2])
    finish(places, runs[-1], {"initial": "1", "agent": "1"}, panel="another")
    with pytest.raises(ConfigError, match="gtr-turbo-kl-seed2 were measured on different panels"):
        read_results(study, runs, places)
    (places.run(runs[-1].name) / "config.yaml").write_text("ppo: {clip: 0.5}\n")
    with pytest.raises(ResumeError, match="gtr-turbo-kl-seed2 was made under other settings"):
        read_results(study, runs, places)


def test_curves_hold_the_updates_that_all_runs_have(tmp_path: Path) -> None:
    results = made_results(tmp_path)
    runs = list(results.arms["gtr-turbo-kl"])
    agent = evaluation_curve(runs, "agent")
    assert [(point.update, point.values.tolist()) for point in agent] == [
        (0, [0.125, 0.0]),
        (2, [0.375, 0.75]),
    ]
    assert [point.update for point in evaluation_curve(runs, "teacher")] == [2]
    distance = metric_curve(runs, "agent_distance")
    assert np.allclose([point.values for point in distance], [[0.1, 0.1], [0.2, 0.2]])
    assert metric_curve(runs, "teacher_distance") == []
    assert metric_curve(runs, "never_logged") == []
    assert metric_curve([], "agent_distance") == []
