import base64
import io
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from gtr_turbo.core.turns import Turn
from gtr_turbo.teachers.corrector.questions import (
    CHARACTERS_PER_TOKEN,
    PICTURE_TOKENS,
    REPLIED,
    SOLVER,
    TOLD,
    Question,
    picture_url,
    thought_question,
)
from tests.teachers.corrector.faults import turn


def question(asked: Turn, **fields: Any) -> Question:
    given = {"model": "m", "temperature": 0.4, "tell_solution": True} | fields
    return thought_question(asked, is_readable=lambda text: bool(text), **given)


def parts(asked: Question) -> list[dict[str, Any]]:
    return asked.messages[1]["content"]


def test_a_question_has_the_prompt_the_picture_the_reply_and_the_solution() -> None:
    told, picture, replied, solver = parts(question(turn("5+6=12", "5+7=12\n{}")))
    assert told["text"] == TOLD + "make 12 formula: "
    assert picture["type"] == "image_url"
    assert replied["text"].startswith(REPLIED + '{"cards"')
    assert solver["text"] == SOLVER + "5+7=12\n{}"


def test_the_solution_is_told_only_where_it_is_known_and_wanted() -> None:
    assert len(parts(question(turn("x")))) == 3
    assert len(parts(question(turn("x", "advice"), tell_solution=False))) == 3


def test_the_picture_is_the_one_that_was_seen() -> None:
    seen = np.arange(28 * 56 * 3, dtype=np.uint8).reshape(28, 56, 3)
    kind, _, data = picture_url(seen).partition(",")
    assert kind == "data:image/png;base64"
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    assert (shown == seen).all()


def test_the_key_tells_apart_what_may_be_answered_differently() -> None:
    asked = turn("a", "advice")
    other_prompt = replace(asked, observation=replace(asked.observation, prompt="other"))
    keys = [
        question(asked).key,
        question(turn("b", "advice")).key,
        question(turn("a", "other")).key,
        question(turn("a", "advice", picture=1)).key,
        question(other_prompt).key,
        question(asked, model="n").key,
        question(asked, temperature=0.5).key,
    ]
    assert len(set(keys)) == len(keys)
    assert question(turn("a", "advice")).key == keys[0]


def test_the_estimate_counts_all_text_and_the_picture() -> None:
    asked = question(turn("x" * 1000))
    texts = [asked.messages[0]["content"], *(p["text"] for p in parts(asked) if "text" in p)]
    expected = sum(map(len, texts)) // CHARACTERS_PER_TOKEN + PICTURE_TOKENS
    assert asked.max_input_tokens == expected
