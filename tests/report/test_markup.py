from html.parser import HTMLParser

import pytest

from gtr_turbo.report.markup import Html, element, escape, join
from tests.report.fake_run import HOSTILE


def tags_of(text: str) -> list[str]:
    """Return the start tags that a browser's parser sees."""
    seen: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: seen.append(tag)  # type: ignore[method-assign]
    parser.feed(text)
    parser.close()
    return seen


def test_text_cannot_become_markup() -> None:
    assert tags_of(element("p", HOSTILE)) == ["p"]
    assert "<script>" in HOSTILE


@pytest.mark.parametrize("value", ['" onload="alert(1)', "' onload='alert(1)", "><script>"])
def test_attributes_cannot_be_left(value: str) -> None:
    text = element("img", src=value)
    assert tags_of(text) == ["img"]
    seen: list[list[str]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: seen.append([k for k, _ in attrs])  # type: ignore[method-assign]
    parser.feed(text)
    assert seen == [["src"]]


def test_controls_and_half_characters_are_made_visible() -> None:
    hidden = "a\u202eb\u2066c\x00d\x1be\u200bf\ufeff"
    assert escape(hidden) == "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffd"
    assert escape("tab\tline\nhalf\ud800") == "tab\tline\nhalf?"


def test_attribute_names_and_absent_values() -> None:
    assert element("line", class_="grid", stroke_width=2, x=None) == (
        '<line class="grid" stroke-width="2"></line>'
    )


def test_elements_of_html_without_an_end_have_none() -> None:
    assert element("img", alt="") == '<img alt="">'


def test_only_html_is_left_as_it_is() -> None:
    joined = join([Html("<b></b>"), "<i>", 3, None, 0.5], ", ")
    assert joined == "<b></b>, &lt;i&gt;, 3, 0.5"
    assert isinstance(joined, Html)
