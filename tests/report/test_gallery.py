import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gtr_turbo.report.gallery import MAX_EPISODES, MAX_TEXT, MAX_TURNS, gallery, spread
from tests.report.fake_run import HOSTILE, make_run, play_episodes
from tests.report.test_markup import tags_of


def turn(**more: Any) -> dict[str, Any]:
    return {"picture": "x.png", "prompt": "p", "reply": "r", "action": "7", "legal": True,
            "reason": None, "rewards": {"task": 0.0}, "kl": None, "value": 0.5, **more}  # fmt: skip


def episode(*turns: Any, **more: Any) -> dict[str, Any]:
    return {"update": 1, "environment": 0, "seed": 1, "end": "terminated", "success": False,
            "return": -1.0, "turns": list(turns), **more}  # fmt: skip


def test_a_played_episode_is_shown_as_it_was(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    episodes, _ = play_episodes(30, 3)
    page = gallery(run, {30: episodes})
    assert page.count("<article") == 3
    assert page.count("data:image/png;base64,") == sum(len(e["turns"]) for e in episodes)
    assert "no picture" not in page
    reply = json.loads(episodes[0]["turns"][0]["reply"])
    assert f'<dt>thoughts</dt><dd class="said">{reply["thoughts"][:20]}' in page
    assert "not solved" in page
    assert "return 10" in page
    assert "<dt>KL</dt><dd>0.02</dd>" in page


@pytest.mark.parametrize(
    "reply",
    [HOSTILE, json.dumps({"thoughts": HOSTILE, HOSTILE: 1}), json.dumps([HOSTILE]), "[" * 50_000],
)
def test_hostile_text_stays_text(tmp_path: Path, reply: str) -> None:
    harmless = gallery(tmp_path, {1: [episode(turn(reply="x"))]})
    spoilt = turn(
        reply=reply, prompt=HOSTILE, action=HOSTILE, reason=HOSTILE, rewards={HOSTILE: 1.0}
    )
    page = gallery(tmp_path, {1: [episode(spoilt, end=HOSTILE, seed=HOSTILE, environment=HOSTILE)]})
    assert set(tags_of(page)) <= set(tags_of(harmless)) | {"dl", "dt", "dd", "pre", "span"}
    assert "<script" not in page
    assert "\u202e" not in page


def test_a_reply_that_is_not_json_is_shown_as_it_is(tmp_path: Path) -> None:
    assert "<pre>I say 7.</pre>" in gallery(tmp_path, {1: [episode(turn(reply="I say 7."))]})


def test_illegal_actions_say_why(tmp_path: Path) -> None:
    page = gallery(tmp_path, {1: [episode(turn(legal=False, action=None, reason="not a card"))]})
    assert "not legal" in page
    assert "<dd>not a card</dd>" in page


def test_long_things_are_cut_and_say_so(tmp_path: Path) -> None:
    long = episode(*[turn(reply="y" * (MAX_TEXT + 5))] * (MAX_TURNS + 5))
    page = gallery(tmp_path, {1: [long] * (MAX_EPISODES + 2)})
    assert page.count("<article") == MAX_EPISODES
    assert page.count("<section") == MAX_EPISODES * MAX_TURNS
    assert "(5 more characters)" in page
    assert f"{MAX_TURNS + 5} turns" in page


@pytest.mark.parametrize("odd", [{}, {"turns": None}, {"turns": [3, "x"]}, {"turns": [{}]}])
def test_odd_episodes_do_not_break_the_page(tmp_path: Path, odd: dict[str, Any]) -> None:
    assert gallery(tmp_path, {1: [odd]}).count("<article") == 1


def test_the_newest_update_comes_first_and_open(tmp_path: Path) -> None:
    page = gallery(tmp_path, {k: [episode(turn())] for k in (1, 2, 3)})
    assert [page.index(f"Update {k}:") for k in (3, 2, 1)] == sorted(
        page.index(f"Update {k}:") for k in (1, 2, 3)
    )
    assert page.count("<details open") == 1
    assert page.startswith("<details open")


def test_updates_are_spread_over_a_long_run() -> None:
    chosen = spread(list(range(1, 1001)), 12)
    assert len(chosen) == 12
    assert (chosen[0], chosen[-1]) == (1, 1000)
    steps = [b - a for a, b in pairwise(chosen)]
    assert max(steps) - min(steps) <= 1
    assert spread([4, 5], 12) == [4, 5]


def test_no_episode_is_said(tmp_path: Path) -> None:
    assert "no episode was saved" in gallery(tmp_path, {1: []})
