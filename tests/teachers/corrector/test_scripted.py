"""The scripted corrector, and a whole way through: tasks, advice, real HTTP, corrections."""

import json
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gtr_turbo.core.teaching import CorrectorConfig
from gtr_turbo.core.turns import Turn
from gtr_turbo.envs.registry import make_task
from gtr_turbo.teachers.corrector import Corrector
from gtr_turbo.teachers.corrector.scripted import ScriptedServer, judge
from tests.teachers.corrector.faults import turn

REPLY = '{"thoughts": "5+7=12", "action": "5"}'


def played(task: str, rules: dict, *, mistake: bool, seed: int) -> list[Turn]:
    """Return the turns of an expert, or of its mistake, each with advice."""
    player = make_task(task, rules | {"advice": True}, 0)
    player.reset(seed)
    trace = player.demonstrate(np.random.default_rng(seed), mistake=mistake)
    return [
        replace(turn(), observation=step.observation, reply=replace(turn().reply, text=step.reply))
        for step in trace
    ]


TASKS: list[tuple[str, dict]] = [
    ("ezpoints", {"prompt": "compact", "picture": "compact"}),
    ("points24", {"only_solvable": True}),
    ("numberline", {}),
    ("blackjack", {}),
    ("household", {"expert": "planner", "num_scenes": 1, "max_steps": 12}),
]


@pytest.mark.parametrize(("task", "rules"), TASKS)
def test_the_expert_is_right_in_every_task(task: str, rules: dict, tmp_path: Path) -> None:
    corrector = Corrector(CorrectorConfig(), tmp_path)
    turns = played(task, rules, mistake=False, seed=1)
    assert {c.verdict for c in corrector.correct(turns)} == {"right"}
    corrector.close()


@pytest.mark.parametrize(("task", "rules"), TASKS)
def test_a_mistake_is_corrected_and_keeps_its_action(
    task: str, rules: dict, tmp_path: Path
) -> None:
    corrector = Corrector(CorrectorConfig(), tmp_path)
    turns = [t for seed in range(4) for t in played(task, rules, mistake=True, seed=seed)]
    corrections = corrector.correct(turns)
    corrector.close()
    verdicts = [c.verdict for c in corrections]
    assert "wrong" in verdicts
    assert set(verdicts) <= {"wrong", "right", "hopeless"}
    for asked, correction in zip(turns, corrections, strict=True):
        hopeless = "hopeless" in asked.observation.advice
        assert (correction.verdict == "hopeless") == hopeless
        if correction.reply is not None:
            own, new = json.loads(asked.reply.text), json.loads(correction.reply)
            expert = json.loads(asked.observation.advice.splitlines()[-1])
            assert new == expert | {"action": own["action"]}
            assert list(new)[-1] == "action"


def test_the_judgement_itself() -> None:
    assert judge(REPLY, f"5+7=12\n{REPLY}")["verdict"] == "right"
    assert judge(REPLY.replace("5+7", "7+5"), f"5+7=12\n{REPLY}") == {
        "check": "not as the solver says",
        "verdict": "wrong",
        "thought": {"thoughts": "5+7=12"},
    }
    assert judge(REPLY.replace('"5"', '"7"'), REPLY)["verdict"] == "right", "thoughts alone count"
    assert judge(REPLY, "It is hopeless.")["verdict"] == "hopeless"


def test_other_spellings_of_a_key_are_kept() -> None:
    own = '{"current_number": "1", "thoughts": "x", "action": "+"}'
    expert = '{"current number": "2", "thoughts": "y", "action": "+"}'
    assert judge(own, expert)["thought"] == {"current_number": "2", "thoughts": "y"}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/chat/completions", b"{}", 400),
        ("/chat/completions", b"\xff", 400),
        ("/chat/completions", b'{"messages": [{"role": "user", "content": []}]}', 400),
        ("/chat/completions", b'{"messages": 5}', 400),
        ("/elsewhere", b"{}", 404),
    ],
)
def test_what_is_no_question_is_refused(path: str, body: bytes, status: int) -> None:
    server = ScriptedServer()
    try:
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(server.url + path, body)
        assert caught.value.code == status
        caught.value.close()
    finally:
        server.close()


def test_the_loopback_is_reached_without_a_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    corrector = Corrector(CorrectorConfig(max_attempts=1), tmp_path)
    asked = turn(advice="It is hopeless.")
    assert [c.verdict for c in corrector.correct([asked])] == ["hopeless"]
    corrector.close()
