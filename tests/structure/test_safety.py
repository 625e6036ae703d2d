import ast
from pathlib import Path

import pytest

from tests.structure.source import called, code_strings, name_of, source_files, tree_of

FORBIDDEN_CALLS = {
    "eval": "formulas have an evaluator of their own",
    "exec": "nothing is executed from text",
    "compile": "nothing is executed from text",
    "os.system": "no shell",
    "os.popen": "no shell",
    "yaml.load": "yaml.safe_load, or a SafeLoader of our own",
    "yaml.full_load": "yaml.safe_load",
    "yaml.unsafe_load": "yaml.safe_load",
    "torch.load": "safetensors",
    "torch.save": "safetensors",
    "np.load": "safetensors or JSON",
    "numpy.load": "safetensors or JSON",
}
FORBIDDEN_MODULES = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "random"}
TASK_WORDS = ("points24", "ezpoints", "numberline", "blackjack", "alfworld")
TASK_NAMES_ALLOWED = {
    "presets.py": "a preset is a task with its settings",
    "core/config.py": "the class default is the paper's task",
    "cli.py": "its help shows a preset by name",
}


def imported_modules(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def dangerous_calls(tree: ast.AST) -> list[str]:
    """Return the calls that run text, start a shell or unpickle."""
    found: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = called(node.func)
        if name in FORBIDDEN_CALLS:
            found.append(f"line {node.lineno}: {name} ({FORBIDDEN_CALLS[name]})")
        for keyword in node.keywords:
            value = getattr(keyword.value, "value", None)
            if (keyword.arg, value) in (("shell", True), ("allow_pickle", True)):
                found.append(f"line {node.lineno}: {keyword.arg}=True")
    return found


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_nothing_runs_text_or_unpickles(path: Path) -> None:
    tree = tree_of(path)
    assert not dangerous_calls(tree)
    assert not imported_modules(tree) & FORBIDDEN_MODULES


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_task_names_stay_with_the_tasks(path: Path) -> None:
    name = name_of(path)
    if name.startswith("envs/") or name in TASK_NAMES_ALLOWED:
        return
    tree = tree_of(path)
    found = [
        f"line {node.lineno}: {node.value!r}"
        for node in code_strings(tree)
        if any(word in str(node.value).lower() for word in TASK_WORDS)
    ]
    found += [
        f"line {node.lineno}: {node.module}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and any(word in (node.module or "").lower() for word in TASK_WORDS)
    ]
    assert not found, f"{name} knows a task by name: {found}"


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_no_error_is_swallowed(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"{name_of(path)}:{node.lineno}: bare except"


@pytest.mark.parametrize("folder", ["train/", "ops/"])
def test_the_update_catches_nothing(folder: str) -> None:
    caught = [
        f"{name_of(path)}:{node.lineno}"
        for path in source_files()
        if name_of(path).startswith(folder)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler)
    ]
    assert not caught


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("eval('1')", 1),
        ("model.eval()", 0),
        ("subprocess.run('ls', shell=True)", 1),
        ("subprocess.run(['ls'])", 0),
        ("yaml.load(text, Loader=Safe)", 1),
        ("np.load(path, allow_pickle=True)", 2),
        ("re.compile('x')", 0),
    ],
)
def test_dangerous_calls_are_found(source: str, count: int) -> None:
    assert len(dangerous_calls(ast.parse(source))) == count
