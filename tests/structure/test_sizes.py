import ast
import re
from pathlib import Path

import pytest

from tests.structure.source import (
    ROOT,
    SRC,
    THE_FILE,
    functions,
    name_of,
    source_files,
    tree_of,
)

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 8
MAX_ALGORITHM_LINES = 300
MAX_ALGORITHM_IMPORTS = 14
STEPS = ("TEACH", "ACT", "GUIDE", "CREDIT", "IMPROVE", "REMEMBER")


def tests_and_benchmarks() -> list[Path]:
    return sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])


def step_comments(source: str) -> list[tuple[int, str]]:
    """Return (number, word) of comments like `# 3  GUIDE    how differently …`, in order."""
    found = re.findall(r"^\s*#\s*([1-9])\s+([A-Z]{3,})\b", source, re.MULTILINE)
    return [(int(number), word) for number, word in found]


def project_imports(tree: ast.Module) -> list[str]:
    """Return one entry per import statement that names this project."""
    return [
        node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gtr_turbo"))
        or (
            isinstance(node, ast.Import)
            and any(alias.name.startswith("gtr_turbo") for alias in node.names)
        )
    ]


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_a_file_fits_on_a_few_screens(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MAX_FILE_LINES, f"{name_of(path)} has {lines} lines"


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_a_function_fits_on_one_screen(path: Path) -> None:
    for node in functions(tree_of(path)):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        assert lines <= MAX_FUNCTION_LINES, f"{name_of(path)}:{node.name} has {lines} lines"


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_a_function_takes_few_parameters(path: Path) -> None:
    for node in functions(tree_of(path)):
        named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        count = len([arg for arg in named if arg.arg not in ("self", "cls")])
        assert count <= MAX_PARAMETERS, f"{name_of(path)}:{node.name} takes {count}"


def test_tests_and_benchmarks_stay_short_too() -> None:
    long = {
        path.relative_to(ROOT).as_posix(): count
        for path in tests_and_benchmarks()
        if (count := path.read_text(encoding="utf-8").count("\n")) > MAX_FILE_LINES
    }
    assert not long


def test_the_algorithm_is_one_short_file() -> None:
    source = THE_FILE.read_text(encoding="utf-8")
    assert source.count("\n") <= MAX_ALGORITHM_LINES


def test_the_algorithm_imports_little_of_the_project() -> None:
    imports = project_imports(tree_of(THE_FILE))
    assert 1 <= len(imports) <= MAX_ALGORITHM_IMPORTS, imports


def test_the_algorithm_shows_its_six_steps_in_order() -> None:
    expected = list(enumerate(STEPS, start=1))
    assert step_comments(THE_FILE.read_text(encoding="utf-8")) == expected


def test_the_algorithm_has_no_nested_function() -> None:
    for outer in functions(tree_of(THE_FILE)):
        inner = [node.name for node in functions(outer) if node is not outer]
        assert not inner, f"{outer.name} contains {inner}"


def test_step_comments_are_read_in_order_of_appearance() -> None:
    source = "# 1  TEACH  merge\n    # 2 ACT\n# 10 years\nx = 1  # 3 GUIDE is not a step here\n"
    assert step_comments(source) == [(1, "TEACH"), (2, "ACT")]


def test_the_package_is_where_these_tests_look() -> None:
    assert (SRC / "errors.py").is_file()
