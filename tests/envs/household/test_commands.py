import pytest

from gtr_turbo.envs.household.commands import (
    LOOK,
    Action,
    Verb,
    read_command,
    write_command,
)

ADMISSIBLE = ("go to cabinet 1", "go to cabinet 10", "take mug 1 from shelf 1", "look")


def test_two_vocabularies_differ_in_one_form() -> None:
    put = Action(Verb.PUT, "mug 1", "shelf 2")
    assert write_command(put, "0.4") == "move mug 1 to shelf 2"
    assert write_command(put, "0.3") == "put mug 1 in/on shelf 2"
    for action in (LOOK, Action(Verb.HEAT, "mug 1", "microwave 1"), Action(Verb.USE, "desklamp 1")):
        assert write_command(action, "0.3") == write_command(action, "0.4")


@pytest.mark.parametrize("matching", ["exact", "longest"])
@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("go to cabinet 1", "go to cabinet 1"),
        ("  Go to  CABINET 10 ", "go to cabinet 10"),
        ("go to cabinet 3", "go to cabinet 3"),  # a command, if not an admissible one
        ("put mug 1 in/on shelf 1", None),  # the other vocabulary's
        ("cabinet 1", None),
        ("", None),
    ],
)
def test_a_command_is_read_as_it_stands(text: str, command: str | None, matching: str) -> None:
    assert read_command(text, ADMISSIBLE, "0.4", matching) == command


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("I go to cabinet 10 now", "go to cabinet 10"),  # the lineage's code takes cabinet 1
        ("I go to cabinet 1.", "go to cabinet 1"),
        ("go to cabinet 12", "go to cabinet 12"),  # cabinet 1 is no whole word of it
        ("overlook it", None),
        ("look, then go to cabinet 1", "go to cabinet 1"),
    ],
)
def test_the_longest_admissible_command_within_a_text(text: str, command: str | None) -> None:
    assert read_command(text, ADMISSIBLE, "0.4", "longest") == command
    if command != text:
        assert read_command(text, ADMISSIBLE, "0.4", "exact") is None


def test_two_commands_of_one_length_are_none() -> None:
    text = "go to shelf 1 or go to shelf 2"
    assert read_command(text, ("go to shelf 1", "go to shelf 2"), "0.4", "longest") is None
