import csv
import io
import json
from dataclasses import replace
from pathlib import Path

from gtr_turbo.studies.comparison import compare_arms
from gtr_turbo.studies.results import read_results
from gtr_turbo.studies.tables import arms_csv, cost_table, markdown, runs_csv, tables
from tests.studies.fake_study import made_results, make_study


def test_the_markdown_holds_every_arm_with_its_interval(tmp_path: Path) -> None:
    results = made_results(tmp_path, arms=["rl4vlm", "gtr-turbo-kl", "static"])
    text = markdown("small", "Does it run?", compare_arms(results))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert text.startswith("# small\n\nDoes it run?\n\n## Success\n\n")
    assert rows[1].startswith("| rl4vlm | 2 | 6.2 (")
    assert rows[1].endswith(" | – | 25.0, 50.0 |")
    assert rows[2].endswith(" | 37.5, 75.0 |")
    against = next(row for row in rows if row.startswith("| gtr-turbo-kl | 2 | +18.8 ("))
    assert " | 0.5 | 0.75 (" in against
    assert "smallest possible value is 0.5 of 2 seeds" in text
    assert "| rl4vlm | 2 | 16 | 1.5 | 0.5 | 20.0 (1.00) | 176 | 0 | 0.00 |" in rows
    assert "| gtr-turbo-kl | 2 | 16 | 1.5 | 0.5 | 37.5 (1.88) | 176 | 6 | 0.50 |" in rows
    assert text.endswith("Not finished: static-seed0, static-seed1.\n")


def test_every_row_of_a_table_has_a_cell_for_each_head(tmp_path: Path) -> None:
    study, runs, places = make_study(tmp_path, samples=4)
    for run in runs:
        file = places.run(run.name) / "samples.json"
        found = {"samples": ["1"] * 4, "pass_at": {"1": 0.5, "4": 0.75}}
        file.write_text(json.dumps(found | {"weights_sha256": f"{run.name}-weights"}))
    made = tables(compare_arms(read_results(study, runs, places)))
    assert [table.title for table in made] == ["Success", "Against rl4vlm", "pass@k", "Cost"]
    assert all(len(row) == len(table.heads) for table in made for row in table.rows)
    assert made[2].heads == ("arm", "pass@1", "pass@4")
    assert made[2].rows[0] == ("rl4vlm", "50.0 (50.0 – 50.0)", "75.0 (75.0 – 75.0)")


def test_a_study_of_the_baseline_alone_has_no_table_of_comparisons(tmp_path: Path) -> None:
    made = tables(compare_arms(made_results(tmp_path, arms=["rl4vlm"])))
    assert [table.title for table in made] == ["Success", "Cost"]


def test_without_the_baseline_or_an_update_no_time_is_made_up(tmp_path: Path) -> None:
    comparison = compare_arms(made_results(tmp_path))
    guided = [row for row in comparison.rows if row.arm == "gtr-turbo-kl"]
    alone = cost_table(replace(comparison, rows=guided))
    assert alone.rows[0][5] == "37.5"
    still = replace(guided[0], cost=replace(guided[0].cost, step_milliseconds=None))
    assert cost_table(replace(comparison, rows=[still])).rows[0][5] == "–"


def test_the_csv_files_can_be_read_back(tmp_path: Path) -> None:
    results = made_results(tmp_path)
    comparison = compare_arms(results)
    arms = list(csv.DictReader(io.StringIO(arms_csv(comparison))))
    assert [row["arm"] for row in arms] == ["rl4vlm", "gtr-turbo-kl"]
    assert arms[0]["difference"] == arms[0]["p_value"] == arms[0]["teacher"] == ""
    guided = comparison.rows[1]
    assert guided.agent is not None
    assert float(arms[1]["agent_high"]) == guided.agent.high
    assert float(arms[1]["p_value"]) == 0.5
    runs = list(csv.DictReader(io.StringIO(runs_csv(results))))
    assert [(row["arm"], row["seed"], row["agent"]) for row in runs] == [
        ("rl4vlm", "0", "0.25"),
        ("rl4vlm", "1", "0.5"),
        ("gtr-turbo-kl", "0", "0.375"),
        ("gtr-turbo-kl", "1", "0.75"),
    ]
    assert runs[3]["weights_sha256"] == "gtr-turbo-kl-seed1-weights"
    assert runs[0]["teacher"] == ""
