import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gtr_turbo.report.page import result_table, write_report
from tests.report.fake_run import HOSTILE, NUM_UPDATES, evaluation, make_run

VOID = {"meta", "img"}


class Page(HTMLParser):
    """What a browser would see: tags, attributes, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        HTMLParser.__init__(self)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def report_of(run: Path) -> str:
    return write_report(run).read_text(encoding="utf-8")


def test_the_report_is_one_whole_file(tmp_path: Path) -> None:
    run = make_run(tmp_path / "demo")
    text = report_of(run)
    page = Page(text)
    assert not page.open
    assert page.tags.count("svg") > 13
    assert f"Finished after {NUM_UPDATES} updates" in text
    assert "64.9% to 78.5%" in text
    assert "0123456789abcdef" * 4 in text
    assert "7 min 12 s" in text
    assert "num_updates: 30" in text
    assert len(text) < 2_000_000


def test_nothing_is_loaded_from_outside_and_nothing_runs(tmp_path: Path) -> None:
    text = report_of(make_run(tmp_path / "demo", extra_text=HOSTILE))
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "form", "base"} & set(page.tags)
    links = [value or "" for name, value in page.attributes if name in ("src", "href", "data")]
    assert links
    assert all(link.startswith(("data:image/png;base64,", "#")) for link in links)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import", text)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in (
        page.attributes
    )


def test_hostile_text_is_shown_as_text_everywhere(tmp_path: Path) -> None:
    run = make_run(tmp_path / "demo", extra_text=HOSTILE)
    lines = (run / "metrics.jsonl").read_text().splitlines()
    last = json.loads(lines[-1]) | {"teacher_fingerprint": HOSTILE}
    (run / "metrics.jsonl").write_text("\n".join([*lines[:-1], json.dumps(last)]) + "\n")
    (run / "config.yaml").write_text(f"task: {HOSTILE}\n", encoding="utf-8")
    text = report_of(run)
    page = Page(text)
    assert not page.open
    assert "script" not in page.tags
    assert "&lt;script&gt;alert(&#x27;gotcha&#x27;)&lt;/script&gt;" in text
    assert "\u202e" not in text


def test_a_run_under_way_has_a_report(tmp_path: Path) -> None:
    text = report_of(make_run(tmp_path / "demo", finished=False))
    assert "30 updates so far" in text
    assert "final evaluation has not been made" in text


def test_a_run_that_has_only_begun_has_a_report(tmp_path: Path) -> None:
    text = report_of(tmp_path)
    assert "0 updates so far" in text
    assert not Page(text).open


def test_the_same_run_gives_the_same_report(tmp_path: Path) -> None:
    first = report_of(make_run(tmp_path / "a" / "demo"))
    assert report_of(make_run(tmp_path / "b" / "demo")) == first


@pytest.mark.parametrize("teacher", [None, evaluation(0.5)])
def test_a_run_without_a_teacher_has_no_row_for_it(teacher: dict[str, float] | None) -> None:
    table = result_table({"agent": evaluation(0.5), "teacher": teacher})
    assert ("Teacher" in table) is (teacher is not None)
