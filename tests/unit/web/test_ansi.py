"""Escape sequences and progress bars in the lines that the web page shows."""

from __future__ import annotations

import json

import pytest

from tests.support.javascript import run_page

LINES = {
    "as it is\t": "as it is\t",
    "\x1b[91mred\x1b[0m": "red",
    "\x1b[?25lhidden cursor\x1b[?25h": "hidden cursor",
    "\x1b[>4;1mkeys\x1b[0 q": "keys",
    "\x1b(Bplain\x1b[m": "plain",
    "\x1b7saved\x1b8": "saved",
    "\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\": "link",
    "\x1bPq#0\x1b\\picture": "picture",
    " 50 %\r100 %\r": "100 %",
    "done\r\x1b[2K": "done",
    "\r\r": "",
    "wrongly decoded: \u00e2\u0080\u009d text": "wrongly decoded: \u00e2 text",
}


@pytest.fixture(scope="module")
def shown() -> list[str]:
    """What the page shows of each line."""
    script = """
    const { stripControls, takeLastState } = await import("./ansi.js");
    """
    return list(
        run_page(f"{script} return {json.dumps(list(LINES))}.map((line) => stripControls(takeLastState(line)));")
    )


@pytest.mark.parametrize("line", LINES)
def test_a_line_shows_what_a_user_reads(line: str, shown: list[str]) -> None:
    assert shown[list(LINES).index(line)] == LINES[line]


def test_colours_are_kept_and_nothing_else() -> None:
    script = r"""
    const { appendColoured } = await import("./ansi.js");
    const row = document.createElement("span");
    appendColoured(row, "\x1b[?25l\x1b[1;32mok\x1b(B\x1b[m \x1b[>1;31mnot red \x1b[58;5;1mnot bold");
    return row.childNodes.map((one) => [one.className ?? "", one.textContent]);
    """
    assert run_page(script) == [["ansi-green ansi-bold", "ok"], ["", " "], ["", "not red "], ["", "not bold"]]
