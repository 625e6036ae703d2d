from html.parser import HTMLParser
from pathlib import Path
from typing import final

from gtr_turbo.report.markup import EMPTY_ELEMENTS
from gtr_turbo.studies.comparison import compare_arms
from gtr_turbo.studies.page import LINKS, interval_table, study_page
from tests.studies.fake_study import made_results


@final
class Nesting(HTMLParser):
    """Checks that every element is closed, in order, and collects what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loaded += [str(given[key]) for key in ("src", "href") if key in given]
        self.ids += [str(given["id"])] if "id" in given else []
        if tag not in EMPTY_ELEMENTS:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing(tmp_path: Path) -> None:
    results = made_results(tmp_path, question="<script>alert(1)</script>")
    page = study_page(results, compare_arms(results), "name: small # <b>\n")
    reader = Nesting()
    reader.feed(page)
    assert reader.open == []
    assert reader.loaded == [f"#{place}" for place in LINKS]
    assert reader.ids == list(LINKS)
    assert "<script" not in page
    assert "name: small # &lt;b&gt;" in page
    assert "4 finished runs of 2 arms." in page
    assert "guidance.kind none" in page


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    results = made_results(tmp_path, seeds=[0, 1, 2])
    page = study_page(results, compare_arms(results), "")
    assert "Not finished: rl4vlm-seed2, gtr-turbo-kl-seed2." in page


def test_intervals_stand_on_one_scale(tmp_path: Path) -> None:
    table = interval_table(compare_arms(made_results(tmp_path)))
    assert table.count("<tr>") == 1 + 3  # heads, two agents, one teacher
    assert 'cx="227.5"' in table  # 37.5 % of 580, from 10 on
