"""Retries are in test_client_drills.py, money in test_asking_money.py; here: all the rest."""

import json
import logging
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from gtr_turbo.core.teaching import CorrectorConfig
from gtr_turbo.errors import ConfigError, CorrectorError
from gtr_turbo.teachers.corrector import Corrector
from gtr_turbo.teachers.corrector.cache import CACHE_FILE
from tests.teachers.corrector.conftest import Serve
from tests.teachers.corrector.faults import (
    KEY,
    KEY_VARIABLE,
    PRICES,
    RIGHT,
    WRONG,
    FaultyServer,
    config_for,
    corrector_of,
    hang,
    reset,
    say,
    send,
    turn,
    turns,
    verdicts,
)

DOWN = send(b"", "500 Internal Server Error")


def test_corrections_come_in_order_whoever_is_faster(serve: Serve, tmp_path: Path) -> None:
    def behave(connection, server) -> None:
        slow = "thought 0" in json.dumps(server.question)
        time.sleep(0.3 if slow else 0.0)
        say(WRONG if slow else RIGHT)(connection, server)

    server = serve(behave)
    with corrector_of(server, tmp_path, num_parallel=4) as corrector:
        assert verdicts(corrector, 5) == ["wrong", "right", "right", "right", "right"]


def test_a_resume_pays_nothing_twice(serve: Serve, tmp_path: Path) -> None:
    server = serve(say(WRONG), say(RIGHT))
    with corrector_of(server, tmp_path, **PRICES) as corrector:
        first = corrector.correct(turns(3))
        cost = corrector.metrics()["corrector_cost"]
    assert cost == pytest.approx(3.3)
    with corrector_of(server, tmp_path, **PRICES) as corrector:
        assert corrector.correct(turns(3)) == first
        metrics = corrector.metrics()
    assert len(server.requests) == 3
    assert (metrics["corrector_requests"], metrics["corrector_cached"]) == (0, 3)
    assert metrics["corrector_cost"] == cost


def test_equal_states_are_asked_about_once(serve: Serve, tmp_path: Path) -> None:
    server = serve(say(RIGHT))
    with corrector_of(server, tmp_path) as corrector:
        corrections = corrector.correct([turn("a"), turn("b"), turn("a"), turn("a", picture=9)])
        assert corrector.metrics()["corrector_cached"] == 1
    assert [c.verdict for c in corrections] == ["right"] * 4
    assert len(server.requests) == 3


def test_a_question_that_only_gets_nonsense_is_given_up_for_good(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(say("hm"))
    for _ in range(2):
        with corrector_of(server, tmp_path) as corrector:
            assert verdicts(corrector, 1) == ["unanswered"]
    assert len(server.requests) == 3, "the attempts of the first time"


def test_a_question_that_met_an_outage_is_asked_again(serve: Serve, tmp_path: Path) -> None:
    server = serve(DOWN, DOWN, DOWN, say(RIGHT))
    with corrector_of(server, tmp_path) as corrector:
        assert verdicts(corrector, 1) == ["unanswered"]
        assert verdicts(corrector, 1) == ["right"]


# An endpoint that is down.
def test_an_endpoint_that_is_down_is_left_alone(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(DOWN)
    fields = {"max_attempts": 1, "max_failures": 3, "pause": 60.0}
    with corrector_of(server, tmp_path, **fields) as corrector:
        assert verdicts(corrector, 20) == ["unanswered"] * 20
        assert corrector.metrics()["corrector_failures"] == 20
    assert len(server.requests) == 3
    assert caplog.text.count("the corrector is down") == 1
    assert "HTTP 500" in caplog.text


def test_skipping_ends_when_the_endpoint_is_back(serve: Serve, tmp_path: Path) -> None:
    server = serve(DOWN, DOWN, DOWN, say(RIGHT))
    fields = {"max_attempts": 1, "max_failures": 2, "pause": 0.3}
    with corrector_of(server, tmp_path, **fields) as corrector:
        assert verdicts(corrector, 4) == ["unanswered"] * 4
        assert len(server.requests) == 2
        time.sleep(0.35)
        assert verdicts(corrector, 4) == ["unanswered"] * 4
        assert len(server.requests) == 3, "one trial, which failed, and another pause"
        time.sleep(0.35)
        assert verdicts(corrector, 4) == ["right"] * 4


@pytest.mark.parametrize("num_parallel", [1, 4])
def test_pausing_waits_and_loses_little(serve: Serve, tmp_path: Path, num_parallel: int) -> None:
    server = serve(*[DOWN] * 4, say(RIGHT))
    fields = {"max_attempts": 1, "max_failures": 2, "on_failure": "pause", "pause": 0.3}
    start = time.monotonic()
    with corrector_of(server, tmp_path, num_parallel=num_parallel, **fields) as corrector:
        found = verdicts(corrector, 6)
    assert found.count("right") >= 4, "those that failed before the outage was known are lost"
    assert time.monotonic() - start > 0.3


def test_stopping_keeps_what_was_answered(serve: Serve, tmp_path: Path) -> None:
    server = serve(say(RIGHT), say(WRONG), DOWN)
    fields = {"max_attempts": 1, "max_failures": 2, "on_failure": "stop", "pause": 60.0}
    with (
        corrector_of(server, tmp_path, **fields) as corrector,
        pytest.raises(CorrectorError, match="the corrector is down; its last failure: HTTP 500"),
    ):
        corrector.correct(turns(9))
    assert len(server.requests) == 4
    back = serve(say(RIGHT))
    with corrector_of(back, tmp_path, **fields) as corrector:
        assert verdicts(corrector, 9) == ["right", "wrong", *["right"] * 7]
    assert len(back.requests) == 7


def test_an_answer_that_was_under_way_does_not_hide_that_the_run_is_to_stop(
    serve: Serve, tmp_path: Path
) -> None:
    is_down = threading.Event()

    def behave(connection: socket.socket, server: FaultyServer) -> None:
        if "thought 0" in json.dumps(server.question):
            is_down.wait(10.0)
            time.sleep(0.3)
            say(RIGHT)(connection, server)
        else:
            DOWN(connection, server)
            is_down.set()

    server = serve(behave)
    fields = {"max_attempts": 1, "max_failures": 1, "num_parallel": 2, "pause": 60.0}
    with corrector_of(server, tmp_path, on_failure="stop", **fields) as corrector:
        with pytest.raises(CorrectorError, match="the corrector is down"):
            corrector.correct(turns(6))
        assert len(server.requests) == 2
        assert verdicts(corrector, 1) == ["right"], "what came late is kept"


def test_stopping_is_said_also_when_a_trial_brought_the_endpoint_back(
    serve: Serve, tmp_path: Path
) -> None:
    """Who was refused meanwhile has no answer, and the next call asks for it."""

    def slow(connection: socket.socket, server: FaultyServer) -> None:
        time.sleep(0.3)
        say(RIGHT)(connection, server)

    server = serve(DOWN, slow, say(RIGHT))
    fields = {"max_attempts": 1, "max_failures": 1, "num_parallel": 2, "pause": 0.5}
    with corrector_of(server, tmp_path, on_failure="stop", **fields) as corrector:
        with pytest.raises(CorrectorError):
            corrector.correct(turns(1))
        time.sleep(0.6)
        with pytest.raises(CorrectorError):
            corrector.correct(turns(4))
        assert verdicts(corrector, 4) == ["right"] * 4


def test_closing_ends_a_wait(serve: Serve, tmp_path: Path) -> None:
    fields = {"max_attempts": 1, "max_failures": 1, "on_failure": "pause", "pause": 60.0}
    corrector = Corrector(config_for(serve(reset), **fields), tmp_path)
    threading.Timer(0.3, corrector.close).start()
    start = time.monotonic()
    assert verdicts(corrector, 3) == ["unanswered"] * 3
    assert time.monotonic() - start < 3


def test_an_interrupt_ends_requests_that_are_under_way(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concurrent.futures import Future

    def interrupted(self: Future, timeout: float | None = None) -> None:
        time.sleep(0.2)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    start = time.monotonic()
    with (
        corrector_of(serve(hang), tmp_path, deadline=30.0, num_parallel=3) as corrector,
        pytest.raises(KeyboardInterrupt),
    ):
        corrector.correct(turns(9))
    assert time.monotonic() - start < 3


# Rate, secrets, disk.
def test_the_rate_is_kept(serve: Serve, tmp_path: Path) -> None:
    server = serve(say(RIGHT))
    fields = {"max_requests_per_minute": 600.0, "num_parallel": 8}
    with corrector_of(server, tmp_path, **fields) as corrector:
        corrector.correct(turns(6))
    assert server.times[-1] - server.times[0] > 0.45


def test_the_key_is_nowhere(serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f'{{"error": {{"message": "no such key: {KEY}"}}}}'.encode()
    answers = (
        send(echo, "500 Oops"),
        say(RIGHT.replace("fine", KEY)),
        say(RIGHT),
        send(echo, "401 Unauthorized", f"X-Echo: {KEY}"),
    )
    server = serve(*answers)
    with corrector_of(server, tmp_path, on_failure="stop") as corrector:
        shown = [repr(corrector), repr(vars(corrector))]
        with pytest.raises(CorrectorError) as caught:
            corrector.correct(turns(2))
    error: BaseException | None = caught.value
    while error is not None:
        shown += [str(error), repr(error), repr(vars(error))]
        error = error.__cause__ or error.__context__
    shown += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(server.requests) == 4
    assert "401" in str(caught.value)
    assert KEY not in "".join(shown)
    assert KEY not in caplog.text


@pytest.mark.parametrize("key", ["", "  ", "two words", "ключ", "a\nb"])
def test_what_is_no_key_is_refused_at_the_start(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(ConfigError, match=KEY_VARIABLE) as caught:
        Corrector(config_for(serve(say(RIGHT))), tmp_path)
    assert not key.strip() or key not in str(caught.value)


def test_what_is_no_address_is_refused(tmp_path: Path) -> None:
    for url in ("api.example", "http://localhost:80x/v1"):
        with pytest.raises(ConfigError, match=r"or https address or \"scripted\", got") as caught:
            Corrector(CorrectorConfig(url=url, api_key_variable=KEY_VARIABLE), tmp_path)
        assert "base URL of the API" in str(caught.value)


def test_without_the_client_the_command_that_installs_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "gtr_turbo.teachers.corrector.client", raising=False)
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigError, match="openai") as caught:
        Corrector(CorrectorConfig(), tmp_path)
    assert caught.value.hint == 'pip install "gtr-turbo[corrector]"'


def test_a_full_disk_stops_the_run(serve: Serve, tmp_path: Path) -> None:
    import resource

    from gtr_turbo.errors import CheckpointError

    server = serve(say(RIGHT))
    with corrector_of(server, tmp_path) as corrector:
        corrector.correct(turns(1))
        size = (tmp_path / CACHE_FILE).stat().st_size
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
        try:
            with pytest.raises(CheckpointError):
                corrector.correct(turns(2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (tmp_path / CACHE_FILE).stat().st_size == size
