"""Every package that riseml brings has a reason in docs/packages.md."""

from __future__ import annotations

import re

from scripts.packages import PAGE, find_packages, read_rows, write_page


def _read_table() -> dict[str, set[str]]:
    return {row.name: set(row.bringers.split(", ")) for row in read_rows(PAGE.read_text())}


def test_the_page_is_as_the_script_writes_it_but_for_sizes() -> None:
    without_sizes = re.compile(r"\| [\d.]+ \||\d+ packages, \d+ MB")
    page = PAGE.read_text()
    assert without_sizes.sub("", write_page(page)) == without_sizes.sub("", page), (
        "run `.venv/bin/python -m scripts.packages --write`"
    )


def test_every_package_has_a_reason_and_no_other_is_listed() -> None:
    assert sorted(_read_table()) == sorted(find_packages())


def test_each_package_is_brought_by_those_that_the_page_names() -> None:
    found, named = find_packages(), _read_table()
    # Some packages need others on some versions of Python only, so the page may name more.
    assert {name: bringers - named[name] for name, bringers in found.items() if bringers - named[name]} == {}
    assert all(bringers & found[name] for name, bringers in named.items())
