"""Every task under several rules keeps every law; a task that breaks a law is caught by name."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from gtr_turbo.envs import TASKS, AbstractTask, check_task, make_task
from gtr_turbo.envs.check import EXPERT_LAWS, LAWS
from gtr_turbo.errors import TaskError
from tests.conformance import broken

COMMON: dict[str, dict[str, Any]] = {
    "paper": {},
    "tiny": {"picture": "compact", "prompt": "compact"},
    "training": {"end_at_first_penalty": True},
    "short": {"max_steps": 3},
}
CARDS = COMMON | {
    "training": {"end_at_first_penalty": True, "only_solvable": True},
    "lineage": {
        "illegal_action": "blank_appended",
        "length_limit": "tokens",
        "unreadable_reply": "random_action",
    },
    "loose": {"must_use_all_cards": False, "ranks": [2, 3, 4, 9], "deal": "deck"},
    "faces": {"face_cards_as_ten": False, "deal": "with_replacement"},
    "other": {"target": 10, "reward_success": 1.0, "reward_illegal": 0.0},
}
SMALL_HOUSE = {"picture": "compact", "max_steps": 10, "max_receptacles": 4, "num_objects": 4}
RULES: dict[str, dict[str, dict[str, Any]]] = {
    "points24": CARDS,
    "ezpoints": CARDS,
    "numberline": COMMON
    | {
        "lineage": {"unreadable_reply": "random_action", "goal_draw": "lineage"},
        "two digits": {"max_position": 20, "min_distance": 8},
        "smallest": {"max_position": 1, "max_steps": 1},
        "other": {"reward_success": 5.0, "reward_closer": 0.1, "reward_not_closer": 0.0},
    },
    "blackjack": COMMON
    | {
        "lineage": {"unreadable_reply": "random_action", "max_steps": 300},
        "bonus": {"natural": "bonus"},
        "book": {"natural": "wins"},
        "other": {"reward_draw": 0.5, "reward_loss": 0.0, "reward_illegal": 0.0},
    },
    "household": {
        "tiny": SMALL_HOUSE,
        "lineage": SMALL_HOUSE
        | {
            "vocabulary": "0.3",
            "reward": "lineage",
            "matching": "longest",
            "unreadable_reply": "random_action",
            "early_truncation": True,
            "split": "valid_unseen",
        },
    },
}
"""Task → name of a set of rules → the rules."""
CASES = [(name, rules) for name, sets in RULES.items() for rules in sets]


def test_no_task_is_left_out() -> None:
    assert RULES.keys() == TASKS.keys()


@pytest.mark.parametrize(("name", "rules"), CASES)
def test_every_task_keeps_every_law(name: str, rules: str) -> None:
    report = check_task(lambda seed: make_task(name, RULES[name][rules], seed))
    assert report.laws == tuple(LAWS)
    assert report.task_id == f"{name}-v0"


def test_the_sound_wrapper_keeps_every_law() -> None:
    assert check_task(broken.Broken).num_solvable == 6


BREAKERS: list[tuple[Callable[[int], AbstractTask], str, str]] = [
    # (task, start of the names of the laws that may catch it, part of the message)
    (broken.IgnoresItsSeed, "the same task seed", "of two equal tasks"),
    (broken.MixesItsSeedIn, "an episode seed alone", "differ"),
    (broken.RestartsItsStream, "an episode seed alone", "after a seeded one"),
    (broken.ForgetsItsGenerators, "a snapshot continues", "another state"),
    (broken.RestoresTheStart, "a snapshot continues", "another state"),
    (broken.SnapshotsAreNoJson, "a snapshot continues", "TypeError"),
    (broken.PaintsInSixteenBits, "pictures are uint8", "uint16"),
    (broken.PaintsInGrey, "pictures are uint8", r"\(28, 56, 1\)"),
    (broken.PaintsInTwoSizes, "pictures are uint8", "pictures change"),
    (broken.ChangesWhenLookedAt, "equal state keys", "asked for twice: the pictures differ"),
    (broken.SharesAKey, "equal state keys", 'the state "the same"'),
    (broken.SaysNothing, "prompts and state keys", "a prompt is empty"),
    (broken.HasNoKeys, "prompts and state keys|equal state keys", "empty|differ"),
    (broken.RaisesOnGarbage, "bad replies|the same task seed", "RecursionError"),
    (broken.GivesNoReason, "bad replies", "lacks its reason"),
    (broken.CallsGarbageLegal, "bad replies", "yet a legal one"),
    (broken.NamesWhatItForbids, "admissible actions", "is not legal"),
    (broken.NamesAnActionTwice, "admissible actions", "named twice"),
    (broken.NamesActionsBeforeTheStart, "admissible actions", "before the first reset"),
    (broken.WritesAnotherAction, "a written action", r"read back as .\+."),
    (broken.WritesInBadForm, "a written action", "not of valid format"),
    (broken.HasNoKind, "an episode's kind", "kind is empty"),
    (broken.KindOfTheTask, "an episode's kind", 'seed 0 is "ezpoints-v0 0" and "ezpoints-v0 1"'),
    (broken.KindOfTheTurn, "an episode's kind", "changes on the way"),
    (broken.JudgesInMarks, "a thought is judged", "no mapping from names to True and False"),
    (broken.JudgesByStepping, "a thought is judged", "judging a thought changes the state|again"),
    (broken.JudgesByMood, "a thought is judged", "changes when asked again"),
    (broken.JudgesOnlyWhatItCanRead, "a thought is judged", "this is no reply"),
    (broken.FindsFaultWithItsExpert, "the expert's thoughts", r"not \['plan_right'\]"),
    (broken.EndsBothWays, "episodes end", "both terminated and truncated"),
    (broken.NeverEnds, "episodes end", "no end after"),
    (broken.WinsAndGoesOn, "episodes end", "solved, but not terminated"),
    (broken.PlaysOnAfterTheEnd, "no step outside", "after the end"),
    (broken.PlaysBeforeTheStart, "no step outside", "before the first reset"),
    (broken.CannotWin, "the expert solves", "solvable is True, solved is False"),
    (broken.HasNoExpert, "", "the expert's trace is empty"),
    (broken.StopsHalfWay, "the expert solves", "does not play to the end"),
    (broken.MakesNoMistake, "mistakes are", "a mistake solves"),
    (broken.StumblesInForm, "mistakes are", "not of valid format"),
    (broken.MistakesFromNowhere, "mistakes are", "another generator"),
    (broken.ShowsOneThingAndPlaysAnother, "the expert solves", "the trace's observation"),
    (broken.PaysNothing, "rewards are finite", '"task" is missing'),
    (broken.PaysInfinity, "", "nan"),
    (broken.DrawsFromNumpy, "the same task seed", "a global random generator was used"),
    (broken.DealsFromPython, "the same task seed", "of two equal tasks"),
]


@pytest.mark.parametrize(("make", "law", "detail"), BREAKERS)
def test_each_broken_law_is_named(
    make: Callable[[int], AbstractTask], law: str, detail: str
) -> None:
    with pytest.raises(TaskError, match=rf'the law "({law}).*(?s:.*)({detail})'):
        check_task(make)


IN_A_PLAIN_INTERPRETER = """
import random
from gtr_turbo.envs import check_task, make_task

def make(seed):
    random.random()
    return make_task("ezpoints", {}, seed)

check_task(make)
"""


def test_a_look_at_pythons_generator_suffices_without_the_type_checks() -> None:
    run = [sys.executable, "-c", IN_A_PLAIN_INTERPRETER]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert "a global random generator was used" in done.stderr
    run[-1] = IN_A_PLAIN_INTERPRETER.replace("random.random()", "pass")
    assert subprocess.run(run, check=False).returncode == 0


def test_a_task_without_an_expert_is_held_to_the_other_laws() -> None:
    report = check_task(broken.CannotDemonstrate, with_expert=False)
    assert set(report.laws) == set(LAWS) - EXPERT_LAWS
    assert report.num_turns > 0
    with pytest.raises(TaskError, match="has no expert"):
        check_task(broken.CannotDemonstrate)


def test_every_law_is_broken_by_somebody() -> None:
    named = [law for _, law, _ in BREAKERS if law]
    for law in LAWS:
        assert any(law.startswith(part) for row in named for part in row.split("|")), law
