from pathlib import Path
from xml.etree import ElementTree

from gtr_turbo.metrics import METRICS
from gtr_turbo.report.markup import style_sheet
from gtr_turbo.studies.plots import (
    PLOTS,
    Figure,
    arm_charts,
    figure_html,
    metric_charts,
    overview,
    picture_files,
    style,
)
from tests.studies.fake_study import made_results


def html(figures: list[Figure]) -> str:
    return "".join(figure_html(figure) for figure in figures)


def test_each_plot_shows_a_number_that_is_logged() -> None:
    assert {plot.metric for plot in PLOTS} <= METRICS.keys()


def test_the_overview_has_one_line_per_arm(tmp_path: Path) -> None:
    page = html(overview(made_results(tmp_path)))
    assert "rl4vlm from 6% at update 0 to 38% at update 2" in page
    assert "gtr-turbo-kl from 6% at update 0 to 56% at update 2" in page
    agents, teachers = page.split("Success on the panel: teacher", 1)
    assert 'class="series arm-0"' in agents
    assert 'class="series arm-1"' in teachers
    assert 'class="series arm-0"' not in teachers  # plain PPO has no teacher


def test_an_arm_stands_beside_the_baseline_with_a_band(tmp_path: Path) -> None:
    page = html(arm_charts(made_results(tmp_path)))
    alone, beside = page.split("<h3>gtr-turbo-kl</h3>")
    assert alone.count('class="band"') == 1
    assert 'class="series training"' not in alone
    assert beside.count('class="band"') == 2
    assert 'class="series training"' in beside


def test_numbers_that_nobody_logged_are_left_out(tmp_path: Path) -> None:
    page = html(metric_charts(made_results(tmp_path)))
    assert "Distance from the start: agent" in page
    assert "Distance from the start: teacher" not in page


def test_sixteen_arms_can_be_told_apart() -> None:
    styles = [style(number) for number in range(16)]
    css = style_sheet("charts")
    assert len(set(styles)) == 16
    assert all(f".{name} path" in css for each in styles for name in each.split())


def test_each_chart_is_a_picture_that_stands_alone(tmp_path: Path) -> None:
    pictures = picture_files(made_results(tmp_path))
    assert {"success-agent.svg", "success-teacher.svg", "arm-rl4vlm.svg"} <= pictures.keys()
    assert "agent-distance.svg" in pictures
    assert "teacher-distance.svg" not in pictures  # nobody logged it
    for text in pictures.values():
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        style_element = root.find("{http://www.w3.org/2000/svg}style")
        assert style_element is not None
        assert style_element.text == style_sheet("charts")
    names = [text.text for text in ElementTree.fromstring(pictures["success-agent.svg"]).iter()]
    assert {"rl4vlm", "gtr-turbo-kl", "Success on the panel: agent"} <= set(names)
