from pathlib import Path

import pytest

from gtr_turbo.core.plain_yaml import MAX_YAML_BYTES, flatten, parse_yaml, read_yaml
from gtr_turbo.errors import ConfigError


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "the text")
    assert caught.value.__cause__ is None
    return caught.value.message


def test_plain_values_come_as_python_ones() -> None:
    text = "a: [1, 2.5, null, yes]\nb: {c: 1e-5, d: 1.0e-5}\n"
    assert parse_yaml(text, "") == {"a": [1, 2.5, None, True], "b": {"c": "1e-5", "d": 1e-5}}


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "a", 3),
        ("ppo:\n  clip: 1\n  clip: 1\n", "clip", 3),
        ("{1: 2, 1: 3}", 1, 1),
    ],
)
def test_a_key_given_twice_is_refused_with_its_line(text: str, key: object, line: int) -> None:
    assert refused(text) == f'a YAML mapping gives the key "{key}" twice (line {line}).'


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: [", "while parsing a flow node"),
        ("a: b: c", "mapping values are not allowed here"),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: !!bool x", "is not plain YAML"),
        ("a: !!int x", "invalid literal"),
        ("a: !!timestamp x", "is not plain YAML"),
        ("a: 2001-99-99", "month must be in 1..12"),
        ("a: " + "9" * 6000, "Exceeds the limit"),
        ("[" * 50_000, "nested too deeply"),
        ("? [1]\n: 2", "found unhashable key"),
        ("a: 1\n---\nb: 2\n", "expected a single document"),
        ("\x00", "special characters are not allowed"),
        ("!!map [1]", "expected a mapping node"),
    ],
)
def test_what_is_not_plain_data_is_refused_in_one_line(text: str, part: str) -> None:
    message = refused(text)
    assert message.startswith("the text is not plain YAML: ")
    assert part in message
    assert "\n" not in message


def test_a_huge_mapping_is_read_in_linear_time() -> None:
    text = "\n".join(f"k{index}: 1" for index in range(5_000))
    assert len(parse_yaml(text, "")) == 5_000


def read(path: Path, content: bytes) -> ConfigError:
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    return caught.value


def test_files_that_hold_no_mapping_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    with pytest.raises(ConfigError, match="there is no configuration file"):
        read_yaml(path)
    with pytest.raises(ConfigError, match="there is no configuration file"):
        read_yaml(tmp_path)
    assert read(path, b"").message == f"{path} must hold a mapping, got NoneType."
    assert read(path, b"- 1\n").message == f"{path} must hold a mapping, got list."
    assert "with their fields below them" in str(read(path, b"text").hint)
    assert read(path, b"a: \xff\n").message == f"{path} is not UTF-8 text: byte 3 is in the way."
    assert read(path, b"a: [").message.startswith(f"{path} is not plain YAML: ")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    error = read(path, b"a: " + b"x" * MAX_YAML_BYTES)
    assert error.message == f"{path} has 1000003 bytes; at most 1000000 are read."
    path.write_bytes(b"a: " + b"x" * (MAX_YAML_BYTES - 3))
    assert len(read_yaml(path)["a"]) == MAX_YAML_BYTES - 3


def test_nested_mappings_become_dotted_keys() -> None:
    assert flatten({"a": {"b": {"c": 1}, "d": [2]}, "e": None}) == {
        "a.b.c": 1,
        "a.d": [2],
        "e": None,
    }
    assert flatten({"a": {}}) == {}
