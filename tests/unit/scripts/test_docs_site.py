"""`make docs`: every page is built, and a link that leads nowhere or a page that no section lists fails the build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.docs_site.__main__ import ROOT, main
from scripts.docs_site.building import SiteError, build_site
from scripts.docs_site.page_list import read_sections

_PAGES = {
    "README.md": "# Tool\n\n[all](docs/README.md)\n",
    "docs/README.md": "# Pages\n\n## How to\n\n| page | for |\n|---|---|\n| [run.md](run.md) | running |\n",
    "docs/run.md": "# Run\n\n## Fast\n\n[home](../README.md), [here](#fast), [a file](../tool.yml)\n",
    "tool.yml": "a: 1\n",
}


def _write_repository(folder: Path, **changes: str) -> Path:
    for name, text in {**_PAGES, **changes}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_pages_of_this_repository_become_a_site(tmp_path: Path) -> None:
    assert main([str(tmp_path / "site")]) == 0
    pages = [page for section in read_sections(ROOT) for page in section.pages]
    names = {page.with_name("index.html" if page.name == "README.md" else page.stem + ".html") for page in pages}
    built = {path.relative_to(tmp_path / "site") for path in (tmp_path / "site").rglob("*.html")}
    assert sorted(names - built) == []
    html = "".join(path.read_text() for path in (tmp_path / "site").rglob("*.html"))
    assert re.findall(r'<(?:script|img|iframe|link)[^>]+(?:src|href)="?https?://[^>]*', html) == []
    assert "assets/javascripts/iframe-worker.js" in html
    assert "checkpoint" in (tmp_path / "site/search.js").read_text()
    assert "docs/search.html" in (tmp_path / "site/llms.txt").read_text()
    assert "# Search" in (tmp_path / "site/llms-full.txt").read_text()


def test_a_site_replaces_the_one_before(tmp_path: Path) -> None:
    root = _write_repository(tmp_path / "tool")
    assert build_site(root, tmp_path / "site") == 3
    (tmp_path / "site/old.html").touch()
    build_site(root, tmp_path / "site")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site", "tool"]
    assert not (tmp_path / "site/old.html").exists()
    assert (tmp_path / "site/tool.yml").read_text() == "a: 1\n"


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("docs/run.md", "[x](nothing.md)", "docs/run.md links to docs/nothing.md, which does not exist"),
        ("docs/run.md", "[x](#nowhere)", "anchor does not exist"),
        ("docs/run.md", "[x](../docs)", "docs/run.md links to the folder docs"),
        ("docs/run.md", "[x](../../tool.yml)", "links to ../tool.yml, which does not exist"),
        ("docs/walk.md", "# Walk", "no section of docs/README.md lists docs/walk.md: add a row there"),
        (
            "docs/README.md",
            "## How to\n\n| [a](run.md), [b](b.md) | x |",
            "docs/README.md links to docs/b.md, which does",
        ),
    ],
)
def test_a_wrong_page_fails_the_build(name: str, text: str, problem: str, tmp_path: Path) -> None:
    root = _write_repository(tmp_path / "tool", **{name: text})
    with pytest.raises(SiteError, match=re.escape(problem)):
        build_site(root, tmp_path / "site")
    assert not (tmp_path / "site").exists()
