"""Escape sequences and progress bars of other programs."""

from __future__ import annotations

import pytest

from riseml.base.terminal_text import plain_line


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("as it is\t", "as it is\t"),
        ("\x1b[91mred\x1b[0m", "red"),
        ("\x1b[?25lhidden cursor\x1b[?25h", "hidden cursor"),
        ("\x1b[38;5;208morange", "orange"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("\x1b(Bplain", "plain"),
        (" 50 %\r100 %", "100 %"),
        (" 50 %\r100 %\r", "100 %"),
        ("done\r\x1b[2K", "done"),
        ("\r\r", ""),
        ("größe", "größe"),
    ],
)
def test_a_line_shows_what_a_user_reads(text: str, plain: str) -> None:
    assert plain_line(text) == plain
