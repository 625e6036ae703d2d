import json

import pytest

from gtr_turbo.envs.cards.prompts import formula_text, write_prompt
from gtr_turbo.envs.cards.replies import REPLY_KEYS
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.ezpoints import GAME as EZPOINTS
from gtr_turbo.envs.points24 import ACTIONS
from gtr_turbo.envs.points24 import GAME as POINTS24


def test_formulas_are_written_without_blanks_but_show_blank_tokens() -> None:
    assert formula_text(("10", "-", "7")) == "10-7"
    assert formula_text(("10", " ", "-")) == "10 -"


def test_the_compact_prompt_is_short() -> None:
    rules = CardRules(prompt="compact", target=12)
    assert write_prompt(EZPOINTS, rules, ("7", "+")) == "make 12 formula: 7+"
    assert write_prompt(EZPOINTS, rules, ()) == "make 12 formula: "


def test_the_full_prompt_says_what_the_lineages_says() -> None:
    prompt = write_prompt(POINTS24, CardRules(), ("(", "10", "-"))
    order = ["24 points", "four cards", '"(10-"', ", ".join(f'"{a}"' for a in ACTIONS),
             "J, Q and K count as 10", "value is 24", "every card exactly once"]  # fmt: skip
    places = [prompt.index(part) for part in order]
    assert places == sorted(places)
    template = prompt[prompt.index("{") :]
    assert tuple(json.loads(template)) == REPLY_KEYS
    assert len(json.loads(template)["cards"]) == 4


@pytest.mark.parametrize(
    ("rules", "part"),
    [
        ({"face_cards_as_ten": False}, "J is 11, Q is 12 and K is 13"),
        ({"face_cards_as_ten": False}, '"13", "+"'),
        ({"must_use_all_cards": False}, "no card more than once"),
        ({"target": 36}, "value is 36"),
    ],
)
def test_the_full_prompt_follows_the_rules(rules: dict[str, object], part: str) -> None:
    default = write_prompt(POINTS24, CardRules(), ())
    changed = write_prompt(POINTS24, CardRules.model_validate(rules), ())
    assert part in changed
    assert part not in default


def test_the_full_prompt_of_the_small_game() -> None:
    prompt = write_prompt(EZPOINTS, EZPOINTS.defaults, ())
    assert "two cards" in prompt
    assert '"10", "+", "*", "="' in prompt
    assert '"("' not in prompt
