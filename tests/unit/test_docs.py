"""The pages agree with the repository: links, paths and names of modules and functions exist."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.spec.config.loader import check_config

ROOT = Path(__file__).parents[2]
CODE_PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "docs/architecture.md", *sorted((ROOT / "docs/decisions").glob("*.md"))]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"^(riseml|tests|scripts|docs|benchmarks|examples|schemas)/[\w./*-]*$")
_NAME = re.compile(r"^[a-z_]+(\.\w+)+$")
_PACKAGES = frozenset(
    path.stem for path in (ROOT / "riseml").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
)


def _find_pages() -> Iterator[Path]:
    """Yield the pages. Folders of tools are not entered: environments may be made in them at the moment."""
    for folder, inner, files in os.walk(ROOT):
        inner[:] = [name for name in inner if not name.startswith(".") and name not in ("build", "node_modules")]
        yield from (Path(folder, name) for name in files if name.endswith(".md"))


PAGES = sorted(_find_pages())


def _name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def _heading_anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", _without_blocks(path.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _broken_links(page: Path) -> Iterator[str]:
    for link in _LINK.findall(_without_blocks(page.read_text())):
        if re.match(r"https?:|mailto:", link):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in _heading_anchors(path)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=_name_of)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert list(_broken_links(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=_name_of)
def test_every_path_of_the_repository_exists(page: Path) -> None:
    words = [word for code in _CODE.findall(page.read_text()) for word in code.split()]
    paths = [word.partition("::")[0] for word in words if _PATH.match(word.partition("::")[0])]
    assert [path for path in paths if not any(ROOT.glob(path.rstrip("/")))] == []


@pytest.mark.parametrize("page", CODE_PAGES, ids=_name_of)
def test_every_dotted_name_is_a_name_of_the_code(page: Path) -> None:
    names = [name for name in _CODE.findall(page.read_text()) if _NAME.match(name)]
    ours = [name.removeprefix("riseml.") for name in names]
    assert [name for name in ours if name.split(".")[0] in _PACKAGES and not _is_name_of_code(name)] == []


def _is_name_of_code(name: str) -> bool:
    """Return True for a module below riseml, or an attribute of one: `control.decide.decide`."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(["riseml", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        try:
            for attribute in parts[length:]:
                found = getattr(found, attribute)
        except AttributeError:
            return False
        return True
    return False


@pytest.mark.parametrize(
    "name", ["server.reconcile.loop.ControlLoop", "control.decide", "client.server_client.Client.submit"]
)
def test_a_name_of_the_code_is_recognised(name: str) -> None:
    assert _is_name_of_code(name)


@pytest.mark.parametrize(
    "name", ["server.reconcile.lop", "control.decide.Nothing", "client.server_client.Client.nothing"]
)
def test_a_name_that_the_code_does_not_have_is_recognised(name: str) -> None:
    assert not _is_name_of_code(name)


def test_a_page_has_a_row_for_each_variable_that_changes_how_riseml_behaves() -> None:
    readers = ("base/settings.py", "client/exchange.py", "files/project/listing.py", "cli/output/printer.py")
    code = "".join((ROOT / "riseml" / reader).read_text() for reader in readers)
    read = set(re.findall(r'"((?:RISEML|DOCKER)_[A-Z_]+|NO_COLOR|FORCE_COLOR)"', code))
    table = (ROOT / "docs/settings.md").read_text().partition("## Settings")[2].partition("## Exit codes")[0]
    assert len(read) >= 18
    assert sorted(read - set(_CODE.findall(table))) == []


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs/README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(index.read_text())}
    unnamed = [page for page in PAGES if page.parent in (ROOT, ROOT / "docs") and page not in linked]
    assert list(map(_name_of, unnamed)) == ["README.md", "docs/README.md"]


README = (ROOT / "README.md").read_text()
MINUS = "\N{MINUS SIGN}"


def test_the_readme_is_one_screen_with_four_links() -> None:
    assert len(README.split()) < 900
    links = [link for link in _LINK.findall(README) if not link.endswith(".svg")]
    assert links == ["docs/getting-started.md", "docs/README.md", "docs/riseml-yml.md", "CONTRIBUTING.md"]
    assert all(command in README.partition("## Install")[0] for command in ("make demo", "make test"))


def test_the_file_of_the_readme_is_valid_and_short() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    checked = check_config(block)
    assert (checked.problems, len(block.splitlines()) <= 15) == ((), True)
    assert checked.spec is not None


@pytest.mark.parametrize("name", ["coming-from-other-tools.md", "getting-started.md"])
def test_the_files_of_a_page_are_valid(name: str) -> None:
    page = (ROOT / "docs" / name).read_text()
    files = re.findall(r"^```yaml[^\n]*\n(project:.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert len(files) >= 2
    assert [problem for text in files for problem in check_config(text).problems] == []


def test_the_commands_of_the_readme_exist() -> None:
    typed = set(re.findall(r"^riseml (\w+) .*#", README, flags=re.MULTILINE))
    pages = (ROOT / "docs/commands.md").read_text()
    assert typed == {"init", "train", "status", "plot", "results", "explain", "diagnose"}
    assert [verb for verb in typed if f"riseml {verb}" not in pages] == []


def test_the_table_beside_other_tools_admits_what_is_missing() -> None:
    rows = [row.split("|")[1:-1] for row in README.splitlines() if row.startswith("| ")]
    assert {len(row) for row in rows} == {6}
    ours = [row[1].strip() for row in rows[2:]]
    assert sum(cell.startswith(MINUS) for cell in ours) >= 3
    assert all(any(row[column].strip().startswith(("+", MINUS)) for row in rows[2:]) for column in range(1, 6))


def test_the_changelog_has_the_form_of_keep_a_changelog() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    kinds = re.findall(r"^### (.+)$", changes, flags=re.MULTILINE)
    assert re.findall(r"^## (.+)$", changes, flags=re.MULTILINE)[0] == "[Unreleased]"
    assert len(kinds) >= 3
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_readme_says_how_many_test_functions_there_are() -> None:
    said = re.search(r"about ([\d,]+) test functions", README)
    assert said is not None
    files = (path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    count = sum(len(re.findall(r"^(?:async )?def test_", text, re.MULTILINE)) for text in files)
    assert abs(count - int(said[1].replace(",", ""))) <= 100, f"there are {count}"
