import pytest

from gtr_turbo.envs.alfworld.commands import Vocabulary, read_command, write_command


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("go to cabinet 10", "go to cabinet 10"),
        ("  Go  to Cabinet 1. ", "go to cabinet 1"),
        ("put mug 1 in/on shelf 2", "move mug 1 to shelf 2"),
        ("put mug 1 on shelf 2", "move mug 1 to shelf 2"),
        ("toggle desklamp 1", "use desklamp 1"),
        ("heat egg 12 with microwave 1", "heat egg 12 with microwave 1"),
        ("look", "look"),
        ("fly to the moon", None),
        ("go to cabinet 1 and open it", None),
        ("", None),
        ("go to " + "a" * 200 + " 1", None),
    ],
)
def test_a_whole_command_is_read_in_either_vocabulary(text: str, command: str | None) -> None:
    assert read_command(text, ()) == command


def test_an_admissible_command_needs_no_known_form() -> None:
    assert read_command("Dance", ("dance",)) == "dance"
    assert read_command("dance", ()) is None


@pytest.mark.parametrize(
    ("command", "vocabulary", "shown"),
    [
        ("move mug 1 to shelf 2", "0.3", "put mug 1 in/on shelf 2"),
        ("use desklamp 1", "0.3", "toggle desklamp 1"),
        ("take mug 1 from shelf 2", "0.3", "take mug 1 from shelf 2"),
        ("move mug 1 to shelf 2", "0.4", "move mug 1 to shelf 2"),
    ],
)
def test_what_is_written_can_be_read(command: str, vocabulary: Vocabulary, shown: str) -> None:
    assert write_command(command, vocabulary) == shown
    assert read_command(shown, ()) == command
