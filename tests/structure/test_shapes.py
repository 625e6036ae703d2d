import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.structure.source import called, functions, name_of, read, source_files, tree_of

ARRAYS = {"Tensor", "torch.Tensor", "np.ndarray", "numpy.ndarray", "ndarray", "NDArray"}
DTYPE = re.compile(
    r"^(?:jaxtyping\.)?(?:Shaped|Num|Real|Inexact|Complex|Bool|Key|(?:BF|U?)?(?:Float|Int)\d*)$"
)
WORD = re.compile(r"^[*#?]*(?P<word>[a-z_]+)$")
LEGEND_START, LEGEND_END = "<!-- axis-words -->", "<!-- /axis-words -->"


def axis_words() -> set[str]:
    """Return the vocabulary that CONTRIBUTING.md lays down."""
    text = read("CONTRIBUTING.md")
    legend = text[text.index(LEGEND_START) : text.index(LEGEND_END)]
    words = set(re.findall(r"^\| `(\w+)` \|", legend, re.MULTILINE))
    assert {"turn", "seq"} <= words
    return words


def annotations(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the annotations of parameters, results and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            yield node.annotation
    for node in functions(tree):
        if node.returns is not None:
            yield node.returns


def bare_arrays(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the array types in an annotation that stand outside a jaxtyping shape."""
    if isinstance(node, ast.Subscript) and DTYPE.match(called(node.value)):
        return
    if isinstance(node, ast.Name | ast.Attribute) and called(node) in ARRAYS:
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from bare_arrays(child)


def shapes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, shape) of each jaxtyping annotation with a literal shape."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Subscript) and DTYPE.match(called(node.value))):
            continue
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        for part in parts[1:]:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield node.lineno, part.value


def strange_axes(shape: str, known: set[str]) -> list[str]:
    """Return the axes of a shape that are not in the vocabulary.

    Whole numbers, `...` and sums of known axes such as `seq-1` are fine.
    """
    strange: list[str] = []
    for axis in shape.split():
        if axis in ("...", "_") or axis.lstrip("*#").isdigit():
            continue
        parts = [part for part in re.split(r"[-+*/]", axis.lstrip("*#?")) if not part.isdigit()]
        words = [match["word"] if (match := WORD.match(part)) else part for part in parts]
        strange += [word for word in words if word not in known]
    return strange


@pytest.mark.parametrize(
    "path",
    [p for p in source_files() if name_of(p).startswith(("core/", "ops/"))],
    ids=name_of,
)
def test_tensors_in_core_and_ops_carry_their_shape(path: Path) -> None:
    bare = [node for note in annotations(tree_of(path)) for node in bare_arrays(note)]
    where = [f"{name_of(path)}:{getattr(node, 'lineno', '?')}" for node in bare]
    assert not where


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_shapes_use_one_axis_vocabulary(path: Path) -> None:
    known = axis_words()
    strange = {
        f"{name_of(path)}:{line}": axes
        for line, shape in shapes(tree_of(path))
        if (axes := strange_axes(shape, known))
    }
    assert not strange, f"not in CONTRIBUTING.md's legend: {strange}"


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_one_dimensional_shapes_do_not_look_like_names(path: Path) -> None:
    bad = [
        (line, shape) for line, shape in shapes(tree_of(path)) if re.fullmatch(r"[a-z_]+", shape)
    ]
    assert not bad, 'write " turn", with a leading space'


@pytest.mark.parametrize(
    ("source", "num_bare"),
    [
        ("def f(x: Tensor) -> None: ...", 1),
        ('def f(x: Float[Tensor, " turn"]) -> Tensor: ...', 1),
        ('def f(x: Float[Tensor, "turn seq"] | None) -> None: ...', 0),
        ("x: dict[str, torch.Tensor]", 1),
        ('x: UInt8[np.ndarray, "height width channel"]', 0),
    ],
)
def test_bare_arrays_are_found(source: str, num_bare: int) -> None:
    found = [n for note in annotations(ast.parse(source)) for n in bare_arrays(note)]
    assert len(found) == num_bare


@pytest.mark.parametrize(
    ("shape", "strange"),
    [
        ("turn seq", []),
        (" turn", []),
        ("turn 3 seq", []),
        ("*shape", ["shape"]),
        ("batch seq", ["batch"]),
        ("turn seq-1", []),
        ("turn seq+extra", ["extra"]),
        ("...", []),
    ],
)
def test_strange_axes_are_found(shape: str, strange: list[str]) -> None:
    assert strange_axes(shape, {"turn", "seq"}) == strange
