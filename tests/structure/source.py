"""What the structure tests look at: the repository's files and their syntax trees."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "gtr_turbo"
THE_FILE = SRC / "train" / "gtr_turbo.py"

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def source_files() -> list[Path]:
    """Return every Python file of the package."""
    files = sorted(SRC.rglob("*.py"))
    assert files, "the package has no source files"
    return files


def name_of(path: Path) -> str:
    """Return the path below src/gtr_turbo, with forward slashes."""
    return path.relative_to(SRC).as_posix()


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file; nobody may change it."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(tree: ast.AST) -> Iterator[FunctionNode]:
    """Yield every function and method, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            yield node


def classes(tree: ast.AST) -> Iterator[ast.ClassDef]:
    """Yield every class, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node


def dotted(node: ast.AST) -> str:
    """Return `a.b.c` for a chain of names and attributes, else an empty string.

    >>> dotted(ast.parse("torch.nn.Module", mode="eval").body)
    'torch.nn.Module'
    """
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def called(node: ast.AST) -> str:
    """Return the dotted name of a decorator or base, without its arguments or type parameters."""
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    return dotted(node)


def docstring_nodes(tree: ast.AST) -> set[ast.AST]:
    """Return every string that stands alone as a statement: docstrings and field texts."""
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def code_strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the string constants that are not documentation."""
    texts = docstring_nodes(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in texts:
            yield node


@functools.cache
def read(relative: str) -> str:
    """Return a file of the repository as text."""
    return (ROOT / relative).read_text(encoding="utf-8")


def fenced_blocks(markdown: str) -> str:
    """Return the text inside the fenced and indented code blocks of a Markdown page."""
    fenced = "\n".join(re.findall(r"^```[^\n]*\n(.*?)^```", markdown, re.DOTALL | re.MULTILINE))
    indented = "\n".join(re.findall(r"^ {4}.*$", markdown, re.MULTILINE))
    return f"{fenced}\n{indented}"
