from pathlib import Path

from gtr_turbo.metrics import METRICS
from gtr_turbo.report.charts import Series
from gtr_turbo.report.curves import CURVES, PHASES, charts, evaluations, outcome_chart
from gtr_turbo.report.records import RunRecord, read_run
from tests.report.fake_run import evaluation, make_run


def empty(**known: object) -> RunRecord:
    parts = {"metrics": [], "evaluations": [], "summary": None, "config": "", "episodes": {}}
    return RunRecord(**(parts | known))  # type: ignore[arg-type]


def test_curves_name_metrics_that_exist() -> None:
    named = {name for curve in CURVES for name in curve.metrics}
    assert named <= set(METRICS)
    assert {f"seconds_{phase}" for phase in PHASES} <= set(METRICS)


def test_each_chart_of_a_run_is_drawn(tmp_path: Path) -> None:
    page = charts(read_run(make_run(tmp_path / "run")))
    assert page.count("<figure>") == len(CURVES) + 3
    assert page.count('role="img"') == len(CURVES) + 3
    assert "no value yet" not in page
    for who in ("training episodes", "before", "agent, panel", "teacher, panel"):
        assert f"{who}, update" in page


def test_a_run_without_updates_has_empty_charts() -> None:
    page = charts(empty())
    assert page.count("no value yet") == sum(curve.always for curve in CURVES) + 3


def test_a_curve_of_another_kind_of_run_is_left_out() -> None:
    optional = [curve for curve in CURVES if not curve.always]
    assert optional
    without = charts(empty(metrics=[{"update": 1, "entropy": 0.5}]))
    for curve in optional:
        with_it = charts(empty(metrics=[{"update": 1, curve.metrics[0]: 0.5}]))
        assert f"<h3>{curve.title}</h3>" in with_it
        assert f"<h3>{curve.title}</h3>" not in without


def test_the_summary_stands_in_for_missing_evaluations() -> None:
    summary = {"initial": evaluation(0.1), "agent": evaluation(0.7), "updates": 12}
    kept = [{"update": 5, "who": "agent", **evaluation(0.4)}]
    found = evaluations(empty(summary=summary, evaluations=kept))
    assert [(line["update"], line["who"]) for line in found] == [(0, "initial"), (5, "agent")]


def test_the_outcome_is_drawn_with_its_interval() -> None:
    record = empty(evaluations=[{"update": 5, "who": "agent", **evaluation(0.4)}])
    chart = outcome_chart(record, "Success rate", "success_rate", str, (0.0, 1.0))
    assert chart.count('class="whisker"') == 1
    assert "whisker" not in outcome_chart(record, "Return", "return", str, None)


def test_a_critic_worse_than_a_constant_does_not_flatten_the_curve() -> None:
    lines = [{"update": k, "explained_variance": v} for k, v in ((1, -900.0), (2, 0.2), (3, 0.6))]
    page = charts(empty(metrics=lines))
    assert "from -900 at update 1 to 0.6 at update 3" in page
    assert ">-1</text>" in page
    assert ">-900</text>" not in page


def test_a_critic_that_explains_next_to_nothing_has_a_curve() -> None:
    page = charts(empty(metrics=[{"update": 1, "explained_variance": 5.9e-13}]))
    assert "5.9e-13 at update 1" in page


def test_known_leaves_gaps_out() -> None:
    series = Series(name="x", kind="agent", updates=(1, 2, 3), values=(None, 2.0, None))
    assert series.known == [(2, 2.0)]
