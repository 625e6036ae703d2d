import ast
from pathlib import Path

import pytest

from tests.structure.source import called, classes, functions, name_of, source_files, tree_of

OPEN_BASES = {
    "Section": "the parts of the configuration share one set of pydantic settings",
    "EpisodeRecord": "a protocol: the fields that every task's record of an episode has",
}
ENUM_BASES = {"Enum", "IntEnum", "StrEnum", "enum.Enum", "enum.IntEnum", "enum.StrEnum"}
FRAMEWORK_SUPER = {"nn.Module", "torch.nn.Module", "Module", "gym.Env", "gymnasium.Env", "Env"}


def decorators(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {called(decorator).rpartition(".")[2] for decorator in node.decorator_list}


def bases(node: ast.ClassDef) -> set[str]:
    return {called(base) for base in node.bases}


def is_abstract_method(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and "abstractmethod" in decorators(node)


def allowed_in_interface(node: ast.stmt) -> bool:
    """Docstrings, annotated attributes without a value, and abstract methods."""
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Expr | ast.Pass) or is_abstract_method(node)


def may_stay_open(node: ast.ClassDef, file: str) -> bool:
    """Return whether a class needs no @final: the error family, enums, named bases."""
    return file == "errors.py" or node.name in OPEN_BASES or bool(bases(node) & ENUM_BASES)


def violations(tree: ast.Module, file: str) -> list[str]:
    """Return a line for each class that is neither an interface nor final."""
    found: list[str] = []
    for node in classes(tree):
        where = f"{file}:{node.lineno} {node.name}"
        if node.name.startswith("Abstract"):
            if not all(allowed_in_interface(part) for part in node.body):
                found.append(f"{where}: an interface holds only abstract methods")
        elif any(is_abstract_method(part) for part in node.body):
            found.append(f"{where}: a class with abstract methods is called Abstract…")
        elif not (may_stay_open(node, file) or "final" in decorators(node)):
            found.append(f"{where}: a concrete class is marked @final")
    return found


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_each_class_is_an_interface_or_final(path: Path) -> None:
    assert not violations(tree_of(path), name_of(path))


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_super_is_called_only_where_a_framework_demands_it(path: Path) -> None:
    for node in classes(tree_of(path)):
        calls = [
            call
            for call in ast.walk(node)
            if isinstance(call, ast.Call) and called(call.func) == "super"
        ]
        if calls:
            assert bases(node) & FRAMEWORK_SUPER, f"{name_of(path)}:{node.name} calls super()"


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_hasattr_is_not_used(path: Path) -> None:
    names = [called(c.func) for c in ast.walk(tree_of(path)) if isinstance(c, ast.Call)]
    assert "hasattr" not in names


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_masks_say_what_true_means(path: Path) -> None:
    if name_of(path) == "merging/dare.py":
        pytest.skip("`masks` is DARE's own word for what is kept, and its public option")
    vague = {"mask", "masks", "bad_mask", "bad_masks"}
    tree = tree_of(path)
    fields = {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    parameters = {arg.arg for node in functions(tree) for arg in ast.walk(node.args)
                  if isinstance(arg, ast.arg)}  # fmt: skip
    assert not (fields | parameters) & vague


@pytest.mark.parametrize(
    ("source", "complaints"),
    [
        ("class A: pass", 1),
        ("@final\nclass A: pass", 0),
        (
            "class AbstractA(ABC):\n 'doc'\n x: int\n @abstractmethod\n def f(self): ...",
            0,
        ),
        ("class AbstractA(ABC):\n    def f(self): return 1", 1),
        ("class A(ABC):\n    @abstractmethod\n    def f(self): ...", 1),
        ("class Colour(StrEnum):\n    RED = 'red'", 0),
    ],
)
def test_the_rule_itself(source: str, complaints: int) -> None:
    assert len(violations(ast.parse(source), "x.py")) == complaints
