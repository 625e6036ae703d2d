import json
from pathlib import Path

import pytest

from gtr_turbo.teachers.corrector.cache import CACHE_FILE, AnswerCache, Paid


def paid(key: str, text: str | None, cost: float = 0.1, *, given_up: bool = False) -> Paid:
    return Paid(key=key, text=text, input_tokens=10, output_tokens=2, cost=cost, given_up=given_up)


def filled(folder: Path) -> None:
    cache = AnswerCache(folder)
    for entry in (paid("a", "yes"), paid("b", None), paid("c", None, 0.0, given_up=True)):
        cache.add(entry)
    cache.sync()
    cache.close()


def test_answers_and_costs_are_found_again(tmp_path: Path) -> None:
    filled(tmp_path / "new" / "folder")
    cache = AnswerCache(tmp_path / "new" / "folder")
    assert cache.find("a") == (True, "yes")
    assert cache.find("b") == (False, None), "paid for, but no answer"
    assert cache.find("c") == (True, None), "not to be asked again"
    assert cache.find("d") == (False, None)
    assert cache.total_cost == 0.2
    cache.close()


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_a_torn_last_line_is_dropped_and_the_next_one_is_whole(tmp_path: Path, cut: int) -> None:
    filled(tmp_path)
    path = tmp_path / CACHE_FILE
    path.write_bytes(path.read_bytes()[:-cut])
    cache = AnswerCache(tmp_path)
    assert cache.find("a") == (True, "yes")
    assert cache.find("c") == (False, None)
    cache.add(paid("d", "later"))
    cache.close()
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a", "b", "d"]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[1]",
        '{"key": 1, "text": "x", "cost": 0}',
        '{"key": "x", "text": 5, "cost": 0}',
        '{"key": "x", "text": "x", "cost": -1}',
        '{"key": "x", "text": "x", "cost": NaN}',
        '{"key": "x", "text": "x", "cost": true}',
        "[" * 100_000,
    ],
)
def test_a_damaged_line_loses_its_own_answer_only(
    tmp_path: Path, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path)
    path = tmp_path / CACHE_FILE
    path.write_text(f"{line}\n{path.read_text()}")
    cache = AnswerCache(tmp_path)
    assert cache.find("a") == (True, "yes")
    assert cache.find("x") == (False, None)
    cache.close()
    assert "line 1 of" in caplog.text


def test_the_total_does_not_depend_on_the_order(tmp_path: Path) -> None:
    costs = [0.1, 1e9, 0.3, 1e-9, 0.7]
    totals = set()
    for name, order in (("a", costs), ("b", costs[::-1])):
        cache = AnswerCache(tmp_path / name)
        for number, cost in enumerate(order):
            cache.add(paid(str(number), "x", cost))
        totals.add(cache.total_cost)
        cache.close()
    assert len(totals) == 1
