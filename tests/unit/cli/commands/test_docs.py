"""`riseml docs`: every page in a terminal and as Markdown, and messages that name pages which exist."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from riseml.cli.docs_topics import find_docs_folder, list_topics
from riseml.cli.output.docs_view import list_docs_topics, render_page
from riseml.cli.output.style import Style
from riseml.cli.output.widths import measure_width
from tests.support.waiting import DEADLINE
from tests.unit.cli.conftest import Riseml

ROOT = Path(__file__).parents[4]
NAMES = [topic.name for topic in list_topics()]
TEXT = """# Page

Read [jobs.md](jobs.md#folders), [why](jobs.md), [here](#page), [Optuna](https://optuna.org) and `a[0](b)`.

![A chart](chart.svg)

```yaml
run: "[jobs.md](jobs.md)"
```
"""


def test_all_pages_are_listed_with_a_line_each(riseml: Riseml) -> None:
    listed = riseml("docs")
    assert listed.code == 0
    assert re.findall(r"^  (\S+) +\S", listed.out, re.MULTILINE) == NAMES
    assert {"getting-started", "riseml-yml", "changelog", "decisions", "seeds"} <= set(NAMES)
    assert "`riseml docs TOPIC` shows a page" in listed.err
    narrow = list_docs_topics(json.loads(riseml("docs", "--json").out)["topics"], Style(width=60))
    assert max(map(len, narrow)) <= 60


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_plain_in_a_pipe_and_fits_a_terminal(riseml: Riseml, name: str) -> None:
    piped = riseml("docs", name)
    assert piped.out == json.loads(riseml("docs", name, "--json").out)["text"]
    shown = render_page(piped.out, lambda _: None, Style(colour=False, width=80))
    assert max(map(measure_width, shown)) <= 80
    assert "\x1b" not in "".join(shown)


def test_links_become_commands() -> None:
    lines = render_page(TEXT, {"jobs.md": "jobs"}.get, Style(width=200))
    text = " ".join(" ".join(lines).split())
    assert text.startswith(
        "Page Read riseml docs jobs, why (riseml docs jobs), here, Optuna (https://optuna.org) and a[0](b). "
        '(A picture: A chart.) run: "[jobs.md](jobs.md)"'
    ), text


def test_a_link_leads_to_the_command_of_its_page(riseml: Riseml) -> None:
    shown = " ".join(riseml("docs", "getting-started", live=True).out.split())
    assert "riseml docs engines" in re.sub(r"\x1b\[[0-9;]*m", "", shown)


@pytest.mark.parametrize("name", ["stores", "Stores", "stores.md", "docs/stores.md"])
def test_a_page_has_several_names(riseml: Riseml, name: str) -> None:
    assert riseml("docs", name).out.startswith("# Data from stores")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("serch", "the nearest: search; `riseml docs` lists all"),
        ("yml", "the nearest: riseml-yml, pool-yml, server-yml; `riseml docs` lists all"),
        ("tensorboard", "the nearest: hands-on, web, "),
        ("zzzz", "`riseml docs` lists all topics"),
        ("../README", "`riseml docs` lists all topics"),
        ("", "`riseml docs` lists all topics"),
    ],
)
def test_an_unknown_page_is_refused_with_the_nearest(riseml: Riseml, name: str, hint: str) -> None:
    refused = riseml("docs", name)
    assert (refused.code, refused.out) == (3, "")
    assert f"error: riseml has no page {name!r}\nhint: {hint}" in refused.err


def test_the_site_opens_in_the_browser(riseml: Riseml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "riseml"
    (package / "cli").mkdir(parents=True)
    (package / "docs").symlink_to(find_docs_folder())
    monkeypatch.setattr("riseml.cli.docs_topics.__file__", str(package / "cli/docs_topics.py"))
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/opened\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    missing = riseml("docs", "search", "--open")
    assert (missing.code, missing.out) == (3, "")
    assert "`make docs` in the repository builds the site" in missing.err
    (package / "docs_site/docs").mkdir(parents=True)
    for page in ("index.html", "docs/search.html"):
        (package / "docs_site" / page).touch()
    assert riseml("docs", "search", "--open").out == f"{package}/docs_site/docs/search.html\n"
    assert json.loads(riseml("docs", "--open", "--json").out) == {"path": f"{package}/docs_site/index.html"}
    opened = (tmp_path / "opened").read_text().splitlines()
    assert opened == [f"file://{package}/docs_site/docs/search.html", f"file://{package}/docs_site/index.html"]


@pytest.mark.parametrize(
    ("pager", "first"),
    [("sed s/^/paged:/", ["paged:"]), ("no-such-pager", []), ("", [])],
    ids=["the pager of the user", "a missing pager", "no pager"],
)
def test_a_terminal_shows_a_page_in_the_pager(pager: str, first: list[str], tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm", "PAGER": pager, "NO_COLOR": "1"}
    command = [sys.executable, "-m", "riseml.cli", "docs", "how-it-works"]
    child = pexpect.spawn(command[0], command[1:], env=environ, dimensions=(100, 80), timeout=DEADLINE)
    shown: bytes = child.read()  # type: ignore[assignment]  # spawn without an encoding reads bytes
    child.close()
    assert child.exitstatus == 0
    assert shown.decode().splitlines()[0].replace(":", ": ").split() == [*first, "How", "it", "works"]


def _list_texts() -> Iterator[tuple[Path, str]]:
    """Yield every text of the code that is no docstring, and every text of the schemas."""
    for file in sorted((ROOT / "riseml").rglob("*.py")):
        tree = ast.parse(file.read_text())
        docstrings = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield file, node.value
    yield from ((file, file.read_text()) for file in sorted((ROOT / "schemas").glob("*.json")))


def test_no_message_names_a_file_that_the_user_does_not_have() -> None:
    texts = list(_list_texts())
    named = [
        (file, name) for file, text in texts for name in re.findall(r"`riseml docs ([a-z0-9][a-z0-9-]*)[^`]*`", text)
    ]
    assert len(named) >= 25
    assert [(file, name) for file, name in named if name not in NAMES] == []
    assert [(file, text) for file, text in texts if re.search(r"\bdocs/[\w-]+\.md", text)] == []
