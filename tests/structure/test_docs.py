import re
import tomllib
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

import gtr_turbo
from gtr_turbo.core.config import Config
from gtr_turbo.envs.cards.rules import CardRules
from tests.structure.source import ROOT, fenced_blocks, name_of, read, source_files

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
MACHINE_PATHS = re.compile(r"(?<![\w./~$])/(?:home|root|work|Users|opt)/")


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def config_fields(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Return the dotted names of every field that is not itself a section."""
    names: list[str] = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names += config_fields(kind, f"{prefix}{name}.")
        else:
            names.append(f"{prefix}{name}")
    return names


def table_keys(markdown: str) -> list[str]:
    """Return the first cell of each table row that is one piece of code."""
    return re.findall(r"^\| `([^`]+)` \|", markdown, re.MULTILINE)


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))


def test_the_configuration_is_found_at_all() -> None:
    fields = config_fields(Config)
    assert {"guidance.coef", "merge.density", "run.seed"} <= set(fields)
    assert len(fields) <= 125, "too many knobs"


@pytest.mark.parametrize("field", config_fields(Config))
def test_each_field_is_set_against_the_paper(field: str) -> None:
    text = read("docs/paper.md")
    rows = table_keys(text)
    infrastructure = text[text.index("## Infrastructure") :].split("\n## ")[0]
    assert (field in rows) != (f"`{field}`" in infrastructure), (
        f"docs/paper.md has no row for {field}, or lists it as infrastructure too"
    )


def test_the_paper_page_names_no_field_that_is_gone() -> None:
    sections = "|".join(Config.model_fields)
    named = set(re.findall(rf"`((?:{sections})\.[a-z_]+)`", read("docs/paper.md")))
    assert named <= set(config_fields(Config))


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_make_commands_exist(path: Path) -> None:
    code = fenced_blocks(path.read_text(encoding="utf-8"))
    inline = "\n".join(re.findall(r"`(make[^`]*)`", path.read_text(encoding="utf-8")))
    words = re.findall(r"\bmake((?: [A-Z_]+=(?:\"[^\"]*\"|\S*))*) ([a-z]+)\b", f"{code}\n{inline}")
    assert {target for _, target in words} <= make_targets()


def test_the_two_commands_stand_in_the_readme() -> None:
    code = fenced_blocks(read("README.md"))
    assert "make demo" in code
    assert "make test" in code


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_presets_in_commands_exist(path: Path) -> None:
    from gtr_turbo.presets import PRESETS

    named = set(re.findall(r"--preset ([a-z0-9][\w-]*)", path.read_text(encoding="utf-8")))
    assert named <= set(PRESETS)


def test_continuous_integration_runs_what_people_run() -> None:
    lines = [line for line in read(".ci/run").splitlines() if line and not line.startswith("#")]
    assert lines == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "make test"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111, ".ci/run is not executable"


def test_one_version_everywhere() -> None:
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    newest = re.search(r"^## \[(?P<version>[^\]]+)\]", read("CHANGELOG.md"), re.MULTILINE)
    cited = yaml.safe_load(read("CITATION.cff"))["version"]
    assert newest is not None
    assert {version, newest["version"], cited, gtr_turbo.__version__} == {version}


def test_the_changelog_speaks_of_numbers() -> None:
    assert "### Numerics" in read("CHANGELOG.md")


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_included_files_exist(path: Path) -> None:
    for name in re.findall(r'^--8<-- "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
        assert (ROOT / name.partition(":")[0]).is_file(), name


def test_the_algorithm_page_shows_the_file_itself() -> None:
    assert '--8<-- "src/gtr_turbo/train/gtr_turbo.py"\n' in read("docs/algorithm.md")


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_files_named_in_the_documentation_exist(path: Path) -> None:
    named = re.findall(
        r"`((?:src|docs|tests|benchmarks)/[\w./-]+\.\w+)`", path.read_text(encoding="utf-8")
    )
    missing = [name for name in named if "NAME" not in name and not (ROOT / name).exists()]
    assert not missing


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_pages_named_in_the_source_exist(path: Path) -> None:
    named = set(re.findall(r"\bdocs/[\w-]+\.md\b", path.read_text(encoding="utf-8")))
    assert not [name for name in named if not (ROOT / name).is_file()]


def test_each_rule_switch_of_the_card_games_is_explained() -> None:
    listed = table_keys(read("docs/environments.md"))
    assert sorted(set(listed) & set(CardRules.model_fields)) == sorted(CardRules.model_fields)


def test_each_logged_number_is_explained() -> None:
    from gtr_turbo.metrics import METRICS

    listed = table_keys(read("docs/metrics.md"))
    assert sorted(listed) == sorted(METRICS)


def test_navigation_leads_to_every_page() -> None:
    text = read("mkdocs.yml")
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    missing = {page for page in pages if not re.search(rf"^\s+- .*{page}$", text, re.MULTILINE)}
    assert not missing


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    suffixes = {".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".cff", ".json"}
    folders = ("src", "tests", "docs", "benchmarks", ".github", ".ci")
    files = [p for folder in folders for p in (ROOT / folder).rglob("*") if p.suffix in suffixes]
    files += [p for p in ROOT.iterdir() if p.is_file() and p.suffix in suffixes]
    files += [ROOT / "Makefile", ROOT / ".ci" / "run"]
    named = [
        f"{page_name(path)}:{number}"
        for path in files
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if MACHINE_PATHS.search(line)
    ]
    assert not named
