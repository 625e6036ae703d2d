from pathlib import Path

import pytest

from gtr_turbo.teachers.corrector import Correction
from tests.teachers.corrector.conftest import Serve
from tests.teachers.corrector.faults import RIGHT, WRONG, corrector_of, say, send, turn

HOPELESS = '{"verdict": "hopeless"}'


def test_each_turn_has_its_correction(serve: Serve, tmp_path: Path) -> None:
    server = serve(say(WRONG), say(RIGHT), say(HOPELESS), send(b"", "404 Not Found"))
    asked = [turn("a"), turn(valid=False), turn("b"), turn("c"), turn("d")]
    with corrector_of(server, tmp_path) as corrector:
        found = corrector.correct(asked)
        metrics = corrector.metrics()
    reply = '{"cards": ["5", "7"], "formula": "", "thoughts": "5+7=12", "action": "5"}'
    assert found == [
        Correction(verdict="wrong", reply=reply),
        Correction(verdict="unasked"),
        Correction(verdict="right"),
        Correction(verdict="hopeless"),
        Correction(verdict="unanswered"),
    ]
    assert metrics == {
        "corrector_requests": 4,
        "corrector_cached": 0,
        "corrector_failures": 1,
        "corrector_input_tokens": 3000,
        "corrector_output_tokens": 300,
        "corrector_cost": 0.0,
        "corrector_right_rate": pytest.approx(1 / 3),
        "corrector_hopeless_rate": pytest.approx(1 / 3),
    }


def test_where_nothing_was_asked_there_are_no_rates(serve: Serve, tmp_path: Path) -> None:
    server = serve(say(RIGHT))
    with corrector_of(server, tmp_path) as corrector:
        assert corrector.correct([turn(valid=False)]) == [Correction(verdict="unasked")]
        assert corrector.correct([]) == []
        metrics = corrector.metrics()
    assert server.requests == []
    assert metrics["corrector_requests"] == 0
    assert metrics["corrector_right_rate"] is None
    assert metrics["corrector_hopeless_rate"] is None


def test_the_metrics_have_names_in_the_log(serve: Serve, tmp_path: Path) -> None:
    from gtr_turbo.metrics import METRICS

    with corrector_of(serve(say(RIGHT)), tmp_path) as corrector:
        corrector.correct([turn()])
        assert set(corrector.metrics()) <= set(METRICS)
