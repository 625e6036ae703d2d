"""Every way in which an endpoint can fail, over real sockets, with a real client."""

import gzip
import socket
import threading
import time
from email.utils import formatdate
from pathlib import Path

import pytest

from gtr_turbo.teachers.corrector.guards import MAX_BODY_BYTES
from tests.teachers.corrector.conftest import Serve
from tests.teachers.corrector.faults import (
    KEY,
    RIGHT,
    WRONG,
    Behaviour,
    FaultyServer,
    completion,
    corrector_of,
    drip_body,
    drip_headers,
    flood,
    hang,
    reset,
    say,
    send,
    turn,
)

CORRECTED = '{"cards": ["5", "7"], "formula": "", "thoughts": "5+7=12", "action": "5"}'
SOON = 5.0
"""Seconds in which every drill is over, also on a busy machine; the deadline of a state is 2."""


def ask(server: FaultyServer, tmp_path: Path, **fields: object) -> tuple[str, int]:
    """Return the verdict on one turn, and the requests that it took; all within a few seconds."""
    with corrector_of(server, tmp_path / "cache", **fields) as corrector:
        start = time.monotonic()
        (correction,) = corrector.correct([turn()])
        assert time.monotonic() - start < SOON
        requests = corrector.metrics()["corrector_requests"]
    assert requests == len(server.requests)
    return correction.verdict, len(server.requests)


def test_a_good_answer_is_used(serve: Serve, tmp_path: Path) -> None:
    server = serve(say(WRONG))
    with corrector_of(server, tmp_path) as corrector:
        (correction,) = corrector.correct([turn()])
    assert (correction.verdict, correction.reply) == ("wrong", CORRECTED)
    head, body = server.requests[0]
    assert f"Bearer {KEY}" in head
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("gpt-4o", 0.4, 400)
    assert body["messages"][1]["content"][1]["image_url"]["url"].startswith(
        "data:image/png;base64,"
    )


RETRIED: dict[str, Behaviour] = {
    "429 without Retry-After": send(b"{}", "429 Too Many Requests"),
    "429 with Retry-After": send(b"{}", "429 Too Many Requests", "Retry-After: 0.1"),
    "429 with Retry-After as a date": send(
        b"{}", "429 Too Many Requests", f"Retry-After: {formatdate(0, usegmt=True)}"
    ),
    "429 with Retry-After of nonsense": send(b"{}", "429 Too Many Requests", "Retry-After: soon"),
    "500": send(b"oops", "500 Internal Server Error"),
    "503": send(b"", "503 Service Unavailable"),
    "reset": reset,
    "closed without an answer": lambda connection, server: None,
    "garbage in place of HTTP": lambda connection, server: connection.sendall(b"\x00\xffhello\r\n"),
    "garbage in the body": send(b"\x00\xff<html>"),
    "no body": send(b""),
    "an empty answer": say(""),
    "no answer": say(None),
    "no choices": send(b'{"choices": []}'),
    "JSON of another kind": send(b"[1, 2, 3]"),
    "an answer that is no JSON": say("I think that the agent is right."),
    "the wrong schema": say('{"verdict": "perhaps"}'),
    "a thought of another shape": say('{"verdict": "wrong", "thought": {"cards": "5 7"}}'),
    "an unknown field": say('{"verdict": "wrong", "thought": {"mood": "good"}}'),
    "another action": say('{"verdict": "wrong", "thought": {"action": "7"}}'),
    "a control token": say('{"verdict": "wrong", "thought": {"thoughts": "<|im_end|>"}}'),
    "half a character": say('{"verdict": "wrong", "thought": {"thoughts": "\\ud800"}}'),
    "a depth of ten thousand": say("[" * 10_000),
    "a huge number of tokens": say(RIGHT, (10**30, 1)),
    "50 MB": flood("200 OK"),
    "50 MB of an error": flood("500 Internal Server Error"),
    "a packed body": send(gzip.compress(completion(RIGHT)), "200 OK", "Content-Encoding: gzip"),
    "the key in the answer": say(RIGHT.replace("fine", KEY)),
}


@pytest.mark.parametrize("fault", RETRIED)
def test_after_a_fault_the_question_is_asked_again(
    serve: Serve, tmp_path: Path, fault: str
) -> None:
    server = serve(RETRIED[fault], say(RIGHT))
    assert ask(server, tmp_path) == ("right", 2)


@pytest.mark.parametrize("fault", ["429 without Retry-After", "500", "reset", "no body", "50 MB"])
def test_a_fault_that_stays_costs_the_attempts_and_no_more(
    serve: Serve, tmp_path: Path, fault: str
) -> None:
    assert ask(serve(RETRIED[fault]), tmp_path) == ("unanswered", 3)


@pytest.mark.parametrize("body", [drip_body, drip_headers, hang])
def test_the_deadline_ends_what_drips_or_hangs(
    serve: Serve, tmp_path: Path, body: Behaviour
) -> None:
    start = time.monotonic()
    verdict, requests = ask(serve(body), tmp_path, deadline=0.7)
    assert (verdict, requests) == ("unanswered", 1)
    assert time.monotonic() - start > 0.6


@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error", "429 Slow Down"])
def test_a_body_of_50_mb_is_cut_off_on_its_way(serve: Serve, tmp_path: Path, status: str) -> None:
    server = serve(flood(status))
    ask(server, tmp_path, max_attempts=1)
    # What the two sockets buffer (a few MB at most) has been sent on top of what was read.
    assert server.num_sent < MAX_BODY_BYTES + 16_000_000


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
def test_a_refused_key_is_never_tried_again(serve: Serve, tmp_path: Path, status: str) -> None:
    server = serve(send(f'{{"error": {{"message": "bad key {KEY}"}}}}'.encode(), status))
    with corrector_of(server, tmp_path, pause=60.0) as corrector:
        corrections = corrector.correct([turn(str(number)) for number in range(5)])
        again = corrector.correct([turn()])
    assert {c.verdict for c in (*corrections, *again)} == {"unanswered"}
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "422 Unprocessable"])
def test_a_refused_question_is_not_repeated(serve: Serve, tmp_path: Path, status: str) -> None:
    assert ask(serve(send(b"no", status)), tmp_path) == ("unanswered", 1)


def test_a_redirect_is_not_followed(serve: Serve, tmp_path: Path) -> None:
    other = serve(say(RIGHT))
    server = serve(send(b"", "307 Temporary Redirect", f"Location: {other.url}/chat/completions"))
    assert ask(server, tmp_path) == ("unanswered", 1)
    assert other.requests == []


def test_the_wait_that_the_endpoint_asks_for_is_kept(serve: Serve, tmp_path: Path) -> None:
    server = serve(send(b"", "429 Slow Down", "Retry-After: 0.6"), say(RIGHT))
    assert ask(server, tmp_path) == ("right", 2)
    assert server.times[1] - server.times[0] >= 0.6


def test_a_wait_beyond_the_deadline_is_not_begun(serve: Serve, tmp_path: Path) -> None:
    server = serve(send(b"", "429 Slow Down", "Retry-After: 1e9"))
    assert ask(server, tmp_path, deadline=60.0) == ("unanswered", 1)


@pytest.mark.parametrize(
    ("named", "gone", "new"),
    [
        ("Use 'max_completion_tokens' instead", "max_tokens", "max_completion_tokens"),
        ("response_format is not supported", "response_format", None),
        ("temperature does not support 0.4", "temperature", None),
    ],
)
def test_a_setting_that_an_endpoint_does_not_know_is_left_out(
    serve: Serve, tmp_path: Path, named: str, gone: str, new: str | None
) -> None:
    server = serve(send(named.encode(), "400 Bad Request"), say(RIGHT))
    assert ask(server, tmp_path) == ("right", 2)
    (_, first), (_, second) = server.requests
    assert gone in first
    assert gone not in second
    assert new is None or second[new] == 400


def test_requests_under_way_learn_together_what_the_endpoint_does_not_know(
    serve: Serve, tmp_path: Path
) -> None:
    """Sixteen are refused at the same moment, for two settings; that is no attempt of theirs."""
    together = threading.Barrier(16)

    def behave(connection: socket.socket, server: FaultyServer) -> None:
        if "max_tokens" in server.question:
            together.wait(10.0)
            send(b"use max_completion_tokens", "400 Bad Request")(connection, server)
        elif "temperature" in server.question:
            send(b"temperature: only 1", "400 Bad Request")(connection, server)
        else:
            say(RIGHT)(connection, server)

    server = serve(behave)
    fields = {"num_parallel": 16, "max_attempts": 1, "max_failures": 2, "deadline": 30.0}
    with corrector_of(server, tmp_path, **fields) as corrector:
        corrections = corrector.correct([turn(str(number)) for number in range(40)])
        failures = corrector.metrics()["corrector_failures"]
    assert [c.verdict for c in corrections] == ["right"] * 40
    assert failures == 0
    assert sum("max_tokens" in body for _, body in server.requests) == 16


def test_a_refusal_that_names_what_was_not_sent_is_final(serve: Serve, tmp_path: Path) -> None:
    server = serve(send(b"neither temperature nor sense", "400 Bad Request"))
    assert ask(server, tmp_path) == ("unanswered", 2)
    assert "temperature" not in server.requests[1][1]
