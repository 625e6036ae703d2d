import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console as RichConsole

from gtr_turbo.commands.judge import judge_run, read_scores
from gtr_turbo.core.arguments import JudgeArguments
from gtr_turbo.errors import ConfigError, CorrectorError
from gtr_turbo.report.records import save_episodes
from tests.console import Console
from tests.console import console as console
from tests.teachers.corrector.conftest import Serve
from tests.teachers.corrector.conftest import key_and_short_waits as key_and_short_waits
from tests.teachers.corrector.conftest import serve as serve
from tests.teachers.corrector.faults import KEY, KEY_VARIABLE, FaultyServer, say, send


def scores(factual: int, logical: int, coherent: int) -> str:
    values = {"factual": factual, "logical": logical, "coherent": coherent}
    return json.dumps({"why": "because", **values})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run with three updates, each with two episodes of two turns."""
    (tmp_path / "config.yaml").write_text("{}\n")
    for update in (1, 2, 3):
        names = [[f"update-{update}-e{e}-t{t}.png" for t in range(2)] for e in range(2)]
        episodes = [
            {
                "update": update,
                "turns": [
                    {"picture": name, "prompt": "play", "reply": f'{{"thoughts": "{name}"}}'}
                    for name in own
                ],
            }
            for own in names
        ]
        picture = np.zeros((8, 8, 3), np.uint8)
        save_episodes(tmp_path, update, episodes, {name: picture for own in names for name in own})
    return tmp_path


def arguments(run: Path, server: FaultyServer, **options: Any) -> JudgeArguments:
    small: dict[str, Any] = {"api_key_variable": KEY_VARIABLE, "num_parallel": 1}
    return JudgeArguments(run_dir=run, url=server.url, model="a judge", **(small | options))


def judged(run: Path, server: FaultyServer, **options: Any) -> tuple[dict[str, Any], str]:
    printed = io.StringIO()
    console = RichConsole(file=printed, width=120)
    found = judge_run(arguments(run, server, **options), console)
    return found, printed.getvalue()


def test_thoughts_get_scores(run: Path, serve: Serve) -> None:
    server = serve(say(scores(5, 4, 3)), say(scores(3, 2, 1)), say(scores(4, 4, 4)))
    found, printed = judged(run, server)
    assert (found["turns"], found["scored"], found["without_scores"]) == (12, 12, 0)
    assert found["by_update"]["1"]["means"] == {"factual": 4.0, "logical": 3.5, "coherent": 3.0}
    assert found["by_update"]["3"] == {
        "scored": 4,
        "means": {"factual": 4.0, "logical": 4.0, "coherent": 4.0},
    }
    assert found["means"]["factual"] == pytest.approx((5 + 3 + 10 * 4) / 12)
    assert "12 of 12 turns have scores" in printed
    (_, body) = server.requests[0]
    told, picture, replied = body["messages"][1]["content"]
    assert told["text"].endswith("play")
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert "update-1-e0-t0.png" in replied["text"]
    assert (body["temperature"], body["model"]) == (0.0, "a judge")


def test_some_episodes_are_taken_evenly(run: Path, serve: Serve) -> None:
    found, _ = judged(run, serve(say(scores(1, 1, 1))), episodes=3)
    assert found["turns"] == 6
    assert list(found["by_update"]) == ["1", "2", "3"]


def test_judging_again_is_free(run: Path, serve: Serve) -> None:
    server = serve(say(scores(1, 2, 3)))
    prices = {"price_per_million_input_tokens": 1000.0}
    first, _ = judged(run, server, **prices)
    again, _ = judged(run, server, **prices)
    assert (first["requests"], again["requests"], len(server.requests)) == (12, 0, 12)
    assert first["cost"] == again["cost"] == pytest.approx(12.0)
    assert first["means"] == again["means"]


def test_answers_without_scores_and_lost_pictures_are_counted(run: Path, serve: Serve) -> None:
    (run / "episodes" / "update-1-e0-t0.png").unlink()
    (run / "episodes" / "update-1-e0-t1.png").write_bytes(b"no picture")
    found, printed = judged(run, serve(*[say("5, 5, 5")] * 6, say(scores(2, 2, 2))))
    counted = [found[name] for name in ("not_shown", "without_scores", "scored")]
    assert counted == [2, 1, 9]
    assert found["unreadable_answers"] == 6
    assert "2 could not be shown, 1 got no answer" in printed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        scores(0, 1, 1),
        scores(6, 1, 1),
        '{"factual": 5, "logical": 5}',
        '{"factual": "5", "logical": 5, "coherent": 5}',
        '{"factual": 4.5, "logical": 5, "coherent": 5}',
        '{"factual": true, "logical": 5, "coherent": 5}',
    ],
)
def test_what_is_no_score_is_none(text: str) -> None:
    assert read_scores(text) is None


def test_a_refused_key_ends_it(run: Path, serve: Serve) -> None:
    server = serve(send(KEY.encode(), "401 Unauthorized"))
    with pytest.raises(CorrectorError, match="the judge is down; its last failure: HTTP 401") as up:
        judged(run, server)
    assert len(server.requests) == 1
    assert KEY not in str(up.value)


def test_the_cost_is_limited(run: Path, serve: Serve) -> None:
    server = serve(say(scores(1, 1, 1)))
    with pytest.raises(CorrectorError, match="the judge has cost"):
        judged(run, server, price_per_million_output_tokens=1000.0, max_cost=0.55)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_cost": 1.0}, "limits nothing"),
        ({"episodes": 0}, "at least 1, got 0"),
        ({"num_parallel": 0}, "`--num-parallel`"),
    ],
)
def test_bad_options_are_refused(
    run: Path, serve: Serve, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        judged(run, serve(say("")), **options)


def test_a_run_without_episodes_is_refused(tmp_path: Path, serve: Serve) -> None:
    with pytest.raises(ConfigError, match="no saved episodes"):
        judged(tmp_path, serve(say("")))


def test_the_command(run: Path, serve: Serve, console: Console, tmp_path: Path) -> None:
    server, out = serve(say(scores(5, 5, 5))), tmp_path / "scores.json"
    words = ["judge", run, "--url", server.url, "--model", "m", "--episodes", "1"]
    code, printed, _ = console.run(*words, "--api-key-variable", KEY_VARIABLE, "--json", out)
    assert code == 0
    assert "factual" in printed
    assert json.loads(out.read_text())["scored"] == 2
    assert "no run directory" in console.refused(*words[:1], out.parent / "x", *words[2:])
    assert "http or https" in console.refused("judge", run, "--url", "scripted", "--model", "m")


@pytest.mark.parametrize("url", ["http://localhost:80x/v1", "http://", "http://a..b/v1"])
def test_what_is_no_address_is_refused(run: Path, console: Console, url: str) -> None:
    error = console.refused("judge", run, "--url", url, "--model", "m")
    assert f'ConfigError: `--url` must be an http or https address, got "{url}".' in error
    assert "hint: give the base URL of the API" in error
    assert not (run / "judge").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [("episodes", "a directory"), ("no/such/x.json", "which there is not")],
)
def test_what_cannot_be_written_is_refused_before_anything_is_asked(
    run: Path, serve: Serve, console: Console, name: str, message: str
) -> None:
    server = serve(say(scores(5, 5, 5)))
    words = ["judge", run, "--url", server.url, "--model", "m"]
    error = console.refused(*words, "--api-key-variable", KEY_VARIABLE, "--json", run / name)
    assert "ConfigError: `--json` names " in error
    assert message in error
    assert server.requests == []
