"""Every package that riseml brings has a reason in docs/security.md."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.packages import find_packages

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
_ROW = re.compile(r"^\| ([a-z0-9-]+) \| ([a-z0-9, -]+) \| \S.* \|$", re.MULTILINE)


def _read_table() -> dict[str, set[str]]:
    section = PAGE.read_text().partition("## What `pip install riseml` brings")[2].partition("\n## ")[0]
    rows = _ROW.findall(section.partition("|---|")[2])
    return {name: set(bringers.split(", ")) for name, bringers in rows}


def test_every_package_has_a_reason_and_no_other_is_listed() -> None:
    assert sorted(_read_table()) == sorted(find_packages())


def test_each_package_is_brought_by_those_that_the_page_names() -> None:
    found, named = find_packages(), _read_table()
    # Some packages need others on some versions of Python only, so the page may name more.
    assert {name: bringers - named[name] for name, bringers in found.items() if bringers - named[name]} == {}
    assert all(bringers & found[name] for name, bringers in named.items())
