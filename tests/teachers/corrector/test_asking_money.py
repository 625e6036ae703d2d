"""What answers cost, what may be spent, and what is counted of a batch."""

import json
from pathlib import Path

import pytest

from gtr_turbo.errors import CorrectorError
from tests.teachers.corrector.conftest import Serve
from tests.teachers.corrector.faults import (
    KEY,
    PRICES,
    RIGHT,
    completion,
    corrector_of,
    flood,
    say,
    send,
    turn,
    turns,
    verdicts,
)


def test_the_call_that_would_exceed_the_cost_is_not_made(serve: Serve, tmp_path: Path) -> None:
    # Set aside for each: about 2,200 tokens of question and 100 of answer, so 2.3.
    server = serve(say(RIGHT))
    with corrector_of(server, tmp_path, max_cost=4.4, max_tokens=100, **PRICES) as corrector:
        assert verdicts(corrector, 6) == ["right", "right", *["unanswered"] * 4]
        assert corrector.metrics()["corrector_cost"] == pytest.approx(2.2)
        assert verdicts(corrector, 6)[:2] == ["right", "right"], "what is known costs nothing"
    assert len(server.requests) == 2


def test_a_cap_holds_over_a_resume_and_can_be_raised(serve: Serve, tmp_path: Path) -> None:
    server = serve(say(RIGHT))
    money = {"max_tokens": 100, "on_failure": "stop", **PRICES}
    for cap, requests in ((4.4, 2), (4.4, 2), (6.0, 4)):
        with (
            corrector_of(server, tmp_path, max_cost=cap, **money) as corrector,
            pytest.raises(CorrectorError, match="has cost") as caught,
        ):
            corrector.correct(turns(6))
        assert len(server.requests) == requests
        assert "raise `max_cost`" in str(caught.value)
    with corrector_of(server, tmp_path, max_cost=99.0, **money) as corrector:
        assert verdicts(corrector, 6) == ["right"] * 6


def test_parallel_requests_do_not_overspend_together(serve: Serve, tmp_path: Path) -> None:
    server = serve(say(RIGHT))
    money = {"max_cost": 4.4, "max_tokens": 100, "num_parallel": 6, **PRICES}
    with corrector_of(server, tmp_path, **money) as corrector:
        corrector.correct(turns(8))
        assert corrector.metrics()["corrector_cost"] == pytest.approx(2.2)
    assert len(server.requests) == 2


def test_answers_that_cannot_be_used_are_paid_for_too(serve: Serve, tmp_path: Path) -> None:
    server = serve(say("hm"), flood("200 OK"), say(RIGHT))
    for _ in range(2):  # the second time from the cache
        with corrector_of(server, tmp_path, max_tokens=100, **PRICES) as corrector:
            assert verdicts(corrector, 1) == ["right"]
            cost = corrector.metrics()["corrector_cost"]
        assert cost == pytest.approx(1.1 + 2.3 + 1.1, abs=0.1), "the flood counts as the most"


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"input_tokens": 1000, "output_tokens": 100},
        {"prompt_tokens": 1000},
        {"prompt_tokens": None, "completion_tokens": 100},
    ],
)
def test_an_answer_that_does_not_say_its_cost_counts_as_the_most(
    serve: Serve, tmp_path: Path, usage: dict
) -> None:
    body = json.loads(completion(RIGHT)) | {"usage": usage}
    server = serve(send(json.dumps(body).encode()))
    with corrector_of(server, tmp_path, max_cost=4.8, max_tokens=100, **PRICES) as corrector:
        assert verdicts(corrector, 6) == ["right", "right", *["unanswered"] * 4]
        assert corrector.metrics()["corrector_cost"] == pytest.approx(2 * 2.3, abs=0.2)
        assert corrector.metrics()["corrector_input_tokens"] == 0


def test_an_answer_that_is_thrown_away_for_the_key_is_paid_for(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(say(RIGHT.replace("fine", KEY)), say(RIGHT))
    with corrector_of(server, tmp_path, max_tokens=100, **PRICES) as corrector:
        assert verdicts(corrector, 1) == ["right"]
        assert corrector.metrics()["corrector_cost"] == pytest.approx(2.3 + 1.1, abs=0.1)


# What is counted.
def test_every_turn_is_either_asked_about_or_known_or_without_an_answer(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(say(RIGHT), send(b"", "404 Not Found"))
    repeated = [turn("a"), turn("b"), turn("b"), turn("a"), turn("b")]
    for requests, cached in ((2, 1), (1, 2)):  # an answer for a, and then none any more
        with corrector_of(server, tmp_path) as corrector:
            found = [correction.verdict for correction in corrector.correct(repeated)]
            metrics = corrector.metrics()
        assert found == ["right", "unanswered", "unanswered", "right", "unanswered"]
        assert metrics["corrector_requests"] == requests
        assert metrics["corrector_failures"] == 3
        assert metrics["corrector_cached"] == cached


def test_a_question_that_was_given_up_counts_as_a_failure_each_time(
    serve: Serve, tmp_path: Path
) -> None:
    with corrector_of(serve(say("hm")), tmp_path) as corrector:
        for requests in (3, 0):
            corrector.correct([turn("a"), turn("a")])
            metrics = corrector.metrics()
            assert metrics["corrector_requests"] == requests
            assert (metrics["corrector_failures"], metrics["corrector_cached"]) == (2, 0)
