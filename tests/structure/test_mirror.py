import ast
from pathlib import Path

import pytest

from tests.structure.source import ROOT, SRC, classes, functions, name_of, source_files, tree_of

TESTED_ELSEWHERE = {
    "errors.py": "a test per message stands with the code that raises it",
    "envs/base.py": "an interface; tests/conformance/ holds every task to it",
    "envs/household/view.py": "data only; tested through the engine and the renderer",
    "policies/base.py": "an interface; tests/conformance/ holds every policy to it",
    "teachers/base.py": "an interface; tested through the teachers",
    "teachers/corrector/outcomes.py": "values and an interface; tested through the client",
    "__main__.py": "tests/structure/test_public.py runs it",
}


def has_code(path: Path) -> bool:
    """Return whether a file defines a function or a class."""
    tree = tree_of(path)
    return any(True for _ in functions(tree)) or any(True for _ in classes(tree))


def mirrored() -> list[Path]:
    """Return the source files that need a test file."""
    return [
        path
        for path in source_files()
        if has_code(path) and name_of(path) not in TESTED_ELSEWHERE and path.stem != "__init__"
    ]


def mirrors_of(path: Path) -> list[Path]:
    """Return the test files that mirror a source file.

    src/gtr_turbo/a/b/c.py is mirrored by tests/a/b/test_c.py or test_c_*.py, or, one level up, by
    tests/a/test_b_c.py.
    """
    below = path.relative_to(SRC)
    home = ROOT / "tests" / below.parent
    flat = f"test_{below.parent.name}_{below.stem}"
    return [
        *home.glob(f"test_{below.stem}.py"),
        *home.glob(f"test_{below.stem}_*.py"),
        *home.parent.glob(f"{flat}.py"),
        *home.parent.glob(f"{flat}_*.py"),
    ]


@pytest.mark.parametrize("path", mirrored(), ids=name_of)
def test_each_module_has_a_test_file(path: Path) -> None:
    assert mirrors_of(path), f"no test file mirrors {name_of(path)}"


def test_the_exceptions_exist() -> None:
    assert all((SRC / name).is_file() for name in TESTED_ELSEWHERE)


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=lambda p: p.name)
def test_each_test_file_has_tests_that_assert(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            text = ast.unparse(node)
            assert any(word in text for word in ("assert", "raises", "check", "warns")), (
                f"{path.name}:{node.name} cannot fail on a wrong result"
            )
